import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createForwarder, type Forwarder, type ForwarderOptions } from '../../../lib/forwarder/forwarder.ts';
import { createOpenProvider } from '../../../lib/forwarder/providers.ts';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import type { ClusterKind, TestCluster } from '../../support/apiserver/kinds.ts';
import { RecordingSink } from '../../support/forwarder/recording-sink.ts';

/** Two API servers, the objects of one bound API on them, and a forwarder that may do only what its RBAC manifest says. */

const infra = join(import.meta.dirname, '../../../infra');
export const egress = { allowLoopback: true };

export const WIDGETS = 'widgets.example.org';
export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
export const SECRET = { namespace: 'kbind', name: 'east-kubeconfig' };
export const EAST = { name: 'east' };

export interface Cluster {
  readonly server: TestCluster;
  readonly admin: OpenKubeClient;
  readonly uid: string;
}

export interface Pair {
  readonly consumer: Cluster;
  readonly provider: Cluster;
  /** The consumer through the eyes of the forwarder's user. */
  readonly limited: OpenKubeClient;
  stop(): Promise<void>;
}

export const clientOf = (kubeconfig: string): OpenKubeClient =>
  createKubeClient(parseForeignKubeconfig(kubeconfig, egress), { clock: systemClock, egress });

export async function startPair(kind: ClusterKind): Promise<Pair> {
  const [consumer, provider] = await Promise.all([startCluster(kind, 'consumer'), startCluster(kind, 'provider')]);
  await install(consumer.admin, await kbindCrds());
  await create(consumer.admin, resources.namespaces, { metadata: { name: SECRET.namespace } });
  if (!kind.embedded) await applyRbac(consumer);
  const crd = (labels: Record<string, string>) => widgetCrd(labels);
  await install(provider.admin, [crd({ 'core.kbind.io/exported': 'true' })]);
  await install(consumer.admin, [crd({ 'core.kbind.io/managed': 'true' })]);
  await writeConnection({ consumer, provider });
  await plan(consumer, { epoch: 'e1', provider: true });
  const limited = clientOf((await consumer.server.addUser({ name: 'forwarder' })).kubeconfig);
  return {
    consumer,
    provider,
    limited,
    async stop() {
      await Promise.all([limited.close(), consumer.admin.close(), provider.admin.close()]);
      await Promise.all([consumer.server.stop(), provider.server.stop()]);
    },
  };
}

async function startCluster(kind: ClusterKind, name: string): Promise<Cluster> {
  const server = await kind.start(name);
  const admin = clientOf(server.kubeconfig);
  // A fresh API server makes its namespaces a moment after it answers.
  const uid = await vi.waitFor(() => readClusterIdentity(admin), { timeout: 30_000, interval: 100 });
  return { server, admin, uid };
}

async function kbindCrds(): Promise<SentObject[]> {
  const names = await readdir(join(infra, 'crds'));
  return Promise.all(names.map(async (name) => parse(await readFile(join(infra, 'crds', name), 'utf8')) as SentObject));
}

async function install(client: KubeClient, crds: readonly SentObject[]): Promise<void> {
  for (const crd of crds) {
    await client.create(resources.crds, crd);
    const name = crd.metadata.name ?? '';
    await until(async () => {
      const { status } = await client.get(resources.crds, { name });
      const conditions = (status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions ?? [];
      expect(conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'True' }));
    });
  }
}

const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const widgetCrd = (labels: Record<string, string>): SentObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: WIDGETS, labels },
  spec: {
    group: 'example.org',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: freeForm, status: freeForm } } },
      },
    ],
  },
});

/** The documents of an RBAC manifest. */
export async function rbacDocuments(file = 'rbac.yaml'): Promise<SentObject[]> {
  const text = await readFile(join(infra, 'forwarder', file), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS() as SentObject);
}

/** Applies one, with the test's user in place of the service account. */
export async function applyRbac({ admin }: Cluster, file?: string): Promise<void> {
  for (const document of await rbacDocuments(file)) {
    if (document.kind === 'ServiceAccount') continue;
    const subjects = [{ kind: 'User', name: 'forwarder', apiGroup: 'rbac.authorization.k8s.io' }];
    await admin.create(rbacRef(document.kind), 'subjects' in document ? { ...document, subjects } : document);
  }
}

const rbacRef = (kind: string): ResourceRef => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: `${kind.toLowerCase()}s`,
  kind,
  namespaced: !kind.startsWith('Cluster'),
});

/** Waits until a check passes; two cores, two API servers and other tests may make it slow. */
export const until = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 30_000, interval: 50 });

export function create(client: KubeClient, ref: ResourceRef, object: Record<string, unknown>): Promise<KubeObject> {
  const apiVersion = ref.group === '' ? ref.version : `${ref.group}/${ref.version}`;
  return client.create(ref, { apiVersion, kind: ref.kind, ...object } as SentObject);
}

/** A merge of labels, by the guarded patch. */
export async function label(client: KubeClient, key: ObjectKey, labels: Record<string, string>): Promise<void> {
  const read = await client.get(widgets, key);
  await client.patch(widgets, key, {
    read: read.metadata,
    operations: [{ op: 'add', path: '/metadata/labels', value: labels }],
  });
}

export async function remove(client: KubeClient, ref: ResourceRef, key: ObjectKey): Promise<void> {
  await client.delete(ref, key, (await client.get(ref, key)).metadata);
}

export async function setStatus(client: KubeClient, ref: ResourceRef, key: ObjectKey, status: unknown): Promise<void> {
  const read = await client.get(ref, key);
  await client.patch(ref, key, {
    read: read.metadata,
    operations: [{ op: 'add', path: '/status', value: status }],
    subresource: 'status',
  });
}

const connected = (remoteClusterUID: string, secretVersion: string) => ({
  remoteClusterUID,
  secretVersion,
  conditions: [
    {
      type: 'Connected',
      status: 'True',
      reason: 'AsExpected',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
});

async function writeConnection({ consumer, provider }: Pick<Pair, 'consumer' | 'provider'>): Promise<void> {
  const data = { kubeconfig: Buffer.from(provider.server.kubeconfig).toString('base64') };
  await create(consumer.admin, resources.secrets, { metadata: SECRET, data });
  await create(consumer.admin, resources.connections, { metadata: EAST, spec: { kubeconfigSecretRef: SECRET } });
  await setStatus(consumer.admin, resources.connections, EAST, connected(provider.uid, 's1'));
}

/** What the Connection controller does after the Secret has changed. */
export async function rotate({ consumer, provider }: Pair, kubeconfig: string, secretVersion: string): Promise<void> {
  const secret = await consumer.admin.get(resources.secrets, SECRET);
  await consumer.admin.patch(resources.secrets, SECRET, {
    read: secret.metadata,
    operations: [{ op: 'replace', path: '/data/kubeconfig', value: Buffer.from(kubeconfig).toString('base64') }],
  });
  await setStatus(consumer.admin, resources.connections, EAST, connected(provider.uid, secretVersion));
}

/** Writes a watch plan as the managed-CRD controller does. */
export async function plan(consumer: Cluster, change: { epoch: string; provider: boolean }): Promise<void> {
  const { metadata } = await consumer.admin.get(resources.crds, { name: WIDGETS });
  const cluster = consumer.uid;
  const written = { v: 1, generation: 1, version: 'v1', scope: 'Namespaced', connection: 'east', cluster, ...change };
  const value = { ...metadata.annotations, 'core.kbind.io/watch-plan': JSON.stringify(written) };
  await consumer.admin.patch(
    resources.crds,
    { name: WIDGETS },
    { read: metadata, operations: [{ op: 'add', path: '/metadata/annotations', value }] },
  );
}

/** A forwarder with its queue. */
export async function startForwarder(
  pair: Pair,
  change: Partial<ForwarderOptions> = {},
): Promise<{ forwarder: Forwarder; sink: RecordingSink }> {
  const sink = new RecordingSink();
  const consumer = change.client ?? pair.limited;
  const forwarder = createForwarder({
    client: consumer,
    clusterUid: pair.consumer.uid,
    openProvider: createOpenProvider({ consumer, clock: systemClock, egress }),
    sink,
    clock: systemClock,
    log: silentLogger,
    ...change,
  });
  await forwarder.start();
  return { forwarder, sink };
}
