import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { startEmbeddedCluster } from '../../../lib/embedded/index.ts';
import { startRealCluster } from '../apiserver/real.ts';
import { until } from './until.ts';

const cached = (name: string): string => join(homedir(), '.cache', 'kube-assets', '3', name);

/** What these tests need of an API server, whichever it is. */
export interface TestedCluster {
  readonly kubeconfig: string;
  /** gitVersion. */
  readonly version: string;
  /** A user without any permission. */
  addStranger(name: string): Promise<{ readonly kubeconfig: string }>;
  compact(): Promise<void>;
  stop(): Promise<void>;
}

interface TestedServer {
  readonly name: string;
  readonly start: () => Promise<TestedCluster>;
}

/** API servers that the same tests run against: the embedded one, and those real ones that this machine has. */
export function testedServers(): TestedServer[] {
  const assets = [
    process.env['KUBEBUILDER_ASSETS'] ?? cached('current'),
    process.env['KUBE_ASSETS_OLD'] ?? cached('1.20'),
  ];
  const real = assets.filter((folder) => existsSync(join(folder, 'kube-apiserver')));
  return [
    { name: 'embedded', start: startEmbedded },
    ...real.map((folder) => ({ name: `kube-apiserver of ${basename(folder)}`, start: () => startReal(folder) })),
  ];
}

async function startReal(assets: string): Promise<TestedCluster> {
  const cluster = await startRealCluster({ assets });
  return { ...cluster, addStranger: (name) => cluster.addUser({ name }) };
}

async function startEmbedded(): Promise<TestedCluster> {
  const cluster = await startEmbeddedCluster();
  const addStranger = async (name: string): Promise<{ readonly kubeconfig: string }> => {
    const user = await cluster.addUser({ name });
    cluster.deny({ user: name });
    return user;
  };
  return { ...cluster, addStranger, compact: async () => cluster.compact() };
}

/** A client by a kubeconfig of a test's cluster, or with another credential than it holds. */
export const clientOf = (kubeconfig: string, credential: Partial<ConnectionTarget> = {}): OpenKubeClient =>
  createKubeClient(
    { ...parseForeignKubeconfig(kubeconfig, { allowLoopback: true }), ...credential },
    { clock: systemClock, egress: { allowLoopback: true } },
  );

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

/** Installs an API with an open `spec.any`, a bounded `spec.n`, a set, and a status subresource on demand. */
export async function installApi(client: OpenKubeClient, ref: ResourceRef, status: boolean): Promise<void> {
  const { group, resource, kind, version } = ref;
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const spec = {
    type: 'object',
    properties: {
      n: { type: 'integer', maximum: 5 },
      text: { type: 'string' },
      set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
      any: open,
    },
  };
  await client.create(resources.crds, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource}.${group}` },
    spec: {
      group,
      scope: ref.namespaced ? 'Namespaced' : 'Cluster',
      names: { plural: resource, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(status ? { subresources: { status: {} } } : {}),
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: open } } },
        },
      ],
    },
  });
  await until(() =>
    client.list(ref).then(
      () => true,
      () => false,
    ),
  );
}
