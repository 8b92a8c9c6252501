import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ResourceRef } from '../../../lib/model/api.ts';
import type { Actor, Network } from '../../support/faults/network.ts';

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
/** Cluster-scoped, and without a status subresource. */
export const gizmos: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'gizmos',
  kind: 'Gizmo',
  namespaced: false,
};
export const apis = { 'widgets.example.org': widgets, 'gizmos.example.org': gizmos } as const;
export type ApiName = keyof typeof apis;

export const NAMESPACES = ['team-a', 'team-b'] as const;
export const CONNECTION = 'provider';
export const SECRET = { namespace: 'default', name: 'kubeconfig' } as const;

const crdFolder = join(import.meta.dirname, '..', '..', '..', 'infra', 'crds');
const kbindCrds = readdirSync(crdFolder).map(
  (file) => parse(readFileSync(join(crdFolder, file), 'utf8')) as SentObject,
);

function crdOf(ref: ResourceRef, status: boolean): SentObject {
  const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: free, status: free } } };
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    schema,
    ...(status ? { subresources: { status: {} } } : {}),
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${ref.resource}.${ref.group}`, labels: { 'core.kbind.io/exported': 'true' } },
    spec: {
      group: ref.group,
      scope: ref.namespaced ? 'Namespaced' : 'Cluster',
      names: { plural: ref.resource, kind: ref.kind },
      versions: [version],
    },
  };
}

/** The host that the kubeconfig in a Secret leads to; undefined where it holds none. */
export function hostOf(secret: KubeObject): string | undefined {
  const data = secret['data'] as Readonly<Record<string, string>> | undefined;
  const text = Buffer.from(data?.['kubeconfig'] ?? '', 'base64').toString('utf8');
  return /server: https:\/\/(\S+)/.exec(text)?.[1];
}

export const kubeconfigFor = (host: string): string => `apiVersion: v1
kind: Config
clusters: [{ name: p, cluster: { server: https://${host} } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: c, context: { cluster: p, user: u, namespace: default } }]
current-context: c
`;

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

export interface Person {
  readonly actor: Actor;
  client(host: string): KubeClient;
}

/** Somebody with kubectl on every cluster, whom no fault touches. */
export function personOf(network: Network): Person {
  const actor: Actor = {
    name: 'person',
    product: false,
    clock: network.time.clock(),
    alive: true,
    awaits: 0,
    diesAt: undefined,
  };
  const clients = new Map<string, KubeClient>();
  return {
    actor,
    client(host) {
      const client = clients.get(host) ?? network.client(host, actor, 'consumer');
      clients.set(host, client);
      return client;
    },
  };
}

export function connectionObject({ source = 'CRD', autoBind = false } = {}): SentObject {
  return {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'Connection',
    metadata: { name: CONNECTION },
    spec: { kubeconfigSecretRef: { ...SECRET }, schema: { source }, autoBind },
  };
}

export function bindingObject(
  kind: 'ClusterBinding' | 'Binding',
  options: { namespace?: string; apis: readonly string[]; adopt: boolean },
): SentObject {
  const { namespace, adopt } = options;
  return {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind,
    metadata: { name: 'binding', ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      connectionRef: { name: CONNECTION },
      apis: options.apis.map((name) => ({ name })),
      conflictPolicy: adopt ? 'Adopt' : 'Fail',
    },
  };
}

/** Everything that stands before a history begins. */
export async function setUp(network: Network, person: Person, consumers: readonly string[]): Promise<void> {
  const provider = person.client('provider.test');
  // The one that an address may lead to by mistake offers the same: what is taken for the provider there goes a long way.
  const offerings = network.clusters.has('impostor') ? [provider, person.client('impostor.test')] : [provider];
  for (const offering of offerings) {
    await offering.create(resources.crds, crdOf(widgets, true));
    await offering.create(resources.crds, crdOf(gizmos, false));
  }
  for (const name of network.clusters.has('impostor') ? [...consumers, 'impostor'] : consumers)
    for (const crd of kbindCrds) await person.client(`${name}.test`).create(resources.crds, crd);
  for (const name of consumers) {
    const client = person.client(`${name}.test`);
    for (const namespace of NAMESPACES)
      await client.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    network.routes.set(`${name}-0.provider.test`, { cluster: 'provider', valid: true });
    const data = { kubeconfig: base64(kubeconfigFor(`${name}-0.provider.test`)) };
    await client.create(resources.secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { ...SECRET }, data });
  }
}
