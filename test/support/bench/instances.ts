import pLimit from 'p-limit';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { SYNCER_FINALIZER } from '../../../lib/model/markers.ts';
import { ensureNamespace } from '../../../lib/reconcile/ensure-namespace.ts';
import { copyOf } from '../../../lib/reconcile/instance/what-to-apply.ts';
import { NAMESPACE, widgets, type BenchCell, type Cluster } from './cell.ts';

/** Requests of a user's hands under way together. */
export const HANDS_AT_ONCE = 16;

export const nameOf = (index: number): string => `w-${String(index).padStart(6, '0')}`;
export const keyAt = (index: number): ObjectKey => ({ namespace: NAMESPACE, name: nameOf(index) });
export const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index);

/** Does something for each index, some of it at once. */
export async function forEach(
  indices: readonly number[],
  act: (index: number) => Promise<unknown>,
  atOnce = HANDS_AT_ONCE,
): Promise<void> {
  const limit = pLimit(atOnce);
  await Promise.all(indices.map((index) => limit(() => act(index))));
}

/** About half a kilobyte of spec, as services have it. */
export const specOf = (index: number, size = 1): Record<string, unknown> => ({
  size,
  plan: 'small',
  region: 'eu-central-1',
  settings: { owner: `team-${index % 7}`, retention: '7d', replicas: 3, zones: ['a', 'b', 'c'] },
  note: 'x'.repeat(200),
});

export function widgetManifest(key: ObjectKey, spec: unknown, ref: ResourceRef = widgets): SentObject {
  return { apiVersion: `${ref.group}/${ref.version}`, kind: ref.kind, metadata: { ...key }, spec };
}

const asHands = { fieldManager: 'hands' } as const;

export const createInstance = ({ hands }: Cluster, index: number, key = keyAt(index)): Promise<KubeObject> =>
  hands.create(widgets, widgetManifest(key, specOf(index)), asHands);

/** What `kubectl patch` does: one request. */
async function setField(
  client: KubeClient,
  object: Pick<KubeObject, 'metadata'>,
  change: { readonly path: string; readonly value: unknown; readonly subresource?: 'status' },
): Promise<KubeObject> {
  const { namespace, name, uid } = object.metadata;
  const { path, value, subresource } = change;
  return client.patch(
    widgets,
    { namespace, name },
    { read: { uid }, operations: [{ op: 'add', path, value }], subresource },
    asHands,
  );
}

/** One request: who edits has seen the object. */
export const setSpec = ({ hands }: Cluster, object: Pick<KubeObject, 'metadata'>, size: number): Promise<KubeObject> =>
  setField(hands, object, { path: '/spec/size', value: size });

export async function editSpec(cluster: Cluster, key: ObjectKey, size: number): Promise<void> {
  await setSpec(cluster, await cluster.hands.get(widgets, key), size);
}

export const setStatus = (
  { hands }: Cluster,
  object: Pick<KubeObject, 'metadata'>,
  phase: string,
): Promise<KubeObject> =>
  setField(hands, object, {
    path: '/status',
    value: { phase, endpoint: `https://${object.metadata.name}.example.org` },
    subresource: 'status',
  });

export async function editStatus(provider: Cluster, key: ObjectKey, phase: string): Promise<void> {
  await setStatus(provider, await provider.hands.get(widgets, key), phase);
}

export async function annotate({ hands }: Cluster, key: ObjectKey, value: string): Promise<void> {
  await setField(hands, await hands.get(widgets, key), { path: '/metadata/annotations', value: { touched: value } });
}

export async function remove({ hands }: Cluster, key: ObjectKey): Promise<void> {
  const { uid, resourceVersion } = (await hands.get(widgets, key)).metadata;
  await hands.delete(widgets, key, { uid, resourceVersion });
}

/** Synced pairs as reconciles leave them, made by hand: for what is measured of many objects at rest. No forwarder may run. */
export async function layOut(cell: BenchCell, indices: readonly number[], ref = widgets): Promise<void> {
  const { consumer, provider } = cell;
  if ((await provider.hands.find(resources.namespaces, { name: NAMESPACE })) === undefined)
    await ensureNamespace(provider.hands, NAMESPACE, {});
  await forEach(indices, async (index) => {
    const key = keyAt(index);
    const manifest = widgetManifest(key, specOf(index), ref);
    const source = await consumer.hands.create(
      ref,
      { ...manifest, metadata: { ...manifest.metadata, finalizers: [SYNCER_FINALIZER] } },
      asHands,
    );
    const owner = { cluster: consumer.uid, object: source.metadata.uid };
    await provider.hands.create(ref, copyOf(source, { ref, key }, owner));
  });
}
