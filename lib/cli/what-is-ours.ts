import { resources, type ResourceRef } from '../model/api.ts';
import { instanceResource } from '../model/crd.ts';
import { CLEANUP_FINALIZER, SYNCER_FINALIZER } from '../model/markers.ts';
import type { World } from '../reconcile/world.ts';

/** Objects of a consumer that hold finalizers of ours: without us nobody can delete them. */
export interface Ours {
  readonly total: number;
  readonly byKind: Readonly<Record<string, number>>;
  /** `3 widgets.example.org, 1 connections`. */
  readonly text: string;
}

/** Counts them, with complete lists. Throws what a failed list throws: an unread kind is never taken for empty. */
export async function countOurs(world: World): Promise<Ours> {
  const byKind: Record<string, number> = {};
  for (const ref of [resources.connections, resources.clusterBindings, resources.bindings]) {
    await count(world, ref, { name: ref.resource, finalizer: CLEANUP_FINALIZER, byKind });
  }
  for (const crd of (await world.reads.managedCrds({ fresh: true })).value) {
    const ref = instanceResource(crd);
    if (ref !== undefined) await count(world, ref, { name: crd.metadata.name, finalizer: SYNCER_FINALIZER, byKind });
  }
  const total = Object.values(byKind).reduce((sum, one) => sum + one, 0);
  const text = Object.entries(byKind)
    .map(([name, one]) => `${one} ${name}`)
    .join(', ');
  return { total, byKind, text };
}

async function count(
  { consumer, signal }: World,
  ref: ResourceRef,
  {
    name,
    finalizer,
    byKind,
  }: { readonly name: string; readonly finalizer: string; readonly byKind: Record<string, number> },
): Promise<void> {
  const { items } = await consumer.client.listAllMetadata(ref, { signal });
  const held = items.filter(({ metadata }) => metadata.finalizers?.includes(finalizer)).length;
  if (held > 0) byKind[name] = held;
}
