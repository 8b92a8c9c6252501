import { keyOf, keyText, resources, type ResourceRef } from '../model/api.ts';
import { isDeleting } from '../model/crd.ts';
import { isError } from '../model/errors.ts';
import { parseBinding, type AnyBinding, type BoundApi } from '../model/kinds.ts';
import { listsApi } from '../model/may-act.ts';
import type { BindingLists } from '../reconcile/instance/which-binding.ts';
import { writeStatus } from '../reconcile/object-writes.ts';
import type { World } from '../reconcile/world.ts';
import type { Tally } from './tally.ts';

/** Tallies of the APIs that a sweep has finished, by name. */
export type Tallies = ReadonlyMap<string, Tally>;

/** `boundAPIs` of a binding with the counts that were taken; undefined where nothing changes. */
export function withCounts(binding: AnyBinding, tallies: Tallies): readonly BoundApi[] | undefined {
  const before = binding.status.boundAPIs ?? [];
  let changed = false;
  const after = before.map((bound): BoundApi => {
    const tally = tallies.get(bound.name);
    if (tally === undefined || !tally.bothSides || !listsApi(binding, bound.name)) return bound;
    const [instances, synced] = tally.bindings[binding.metadata.uid] ?? [0, 0];
    const pending = instances - synced;
    if (bound.instances === instances && bound.synced === synced && bound.pending === pending) return bound;
    changed = true;
    return { ...bound, instances, synced, pending };
  });
  return changed ? after : undefined;
}

/** Writes how far delivery is into the bindings' status; only the ten-minute backstop does (spec §10). */
export async function writeCounts(world: World, lists: BindingLists, tallies: Tallies): Promise<void> {
  for (const binding of [...lists.clusterBindings, ...lists.bindings]) {
    if (isDeleting(binding) || withCounts(binding, tallies) === undefined) continue;
    await writeOne(world, binding, tallies);
  }
}

const refOf = ({ kind }: AnyBinding): ResourceRef =>
  kind === 'ClusterBinding' ? resources.clusterBindings : resources.bindings;

/** Read again, because a sweep may have taken minutes. A binding that changes under the write has the next one's counts. */
async function writeOne(world: World, { kind, raw }: AnyBinding, tallies: Tallies): Promise<void> {
  const ref = refOf({ kind } as AnyBinding);
  const { signal } = world;
  try {
    const object = await world.consumer.client.find(ref, keyOf(raw), { signal });
    const boundAPIs = object === undefined ? undefined : withCounts(parseBinding(object, kind), tallies);
    if (object === undefined || boundAPIs === undefined || isDeleting(object)) return;
    const status = { ...(object.status as object | undefined), boundAPIs };
    await writeStatus(world.consumer.client, { ref, object }, status, { signal });
  } catch (error) {
    if (!isError(error, 'conflict')) throw error;
    world.log.info('binding changed meanwhile, its counts are left to the next sweep', { key: keyText(keyOf(raw)) });
  }
}
