import { mergeConditions, type WantedCondition } from '../../model/conditions.ts';
import type { BindingStatus, BoundApi, Connection } from '../../model/kinds.ts';
import { jsonEqual } from '../../kube/json.ts';
import { writeStatus } from '../object-writes.ts';
import { tellBindingDependents } from '../tell-dependents.ts';
import type { World } from '../world.ts';
import type { ApiResult } from './process-apis.ts';
import { rewritten, type Target } from './target.ts';

/**
 * `boundAPIs` by name: each requested API whose CRD stands in the consumer, with the hash recorded on it. The counts that the
 * backstop writes are kept as they are.
 */
export function boundApis(results: readonly ApiResult[], before: readonly BoundApi[] = []): BoundApi[] {
  const earlier = new Map(before.map((api) => [api.name, api]));
  return results
    .flatMap((result) => boundApi(result, earlier.get(result.api)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** States in which nothing was learnt of the CRD that stands in the consumer. */
const UNSEEN: ReadonlySet<string> = new Set(['not-exported', 'forbidden']);

function boundApi({ api, state, crd, hash, conflicts }: ApiResult, earlier: BoundApi | undefined): BoundApi[] {
  if (crd === undefined) return UNSEEN.has(state) && earlier !== undefined ? [earlier] : [];
  const crdHash = hash === undefined ? {} : { crdHash: hash };
  return [{ ...withoutOurs(earlier), name: api, ...crdHash, conflictCount: conflicts.length }];
}

function withoutOurs(before: BoundApi | undefined): Pick<BoundApi, 'instances' | 'synced' | 'pending'> {
  if (before === undefined) return {};
  const { instances, synced, pending } = before;
  return Object.fromEntries(Object.entries({ instances, synced, pending }).filter(([, value]) => value !== undefined));
}

/** The status as it should stand: what is not decided here stays. */
export function wantedStatus(
  { binding }: Target,
  change: { readonly conditions: readonly WantedCondition[]; readonly boundAPIs?: readonly BoundApi[] },
  nowMs: number,
): BindingStatus {
  const { status, metadata } = binding;
  const at = { generation: metadata.generation ?? 0, nowMs };
  return {
    ...status,
    ...(change.boundAPIs === undefined ? {} : { boundAPIs: change.boundAPIs }),
    conditions: mergeConditions(status.conditions ?? [], change.conditions, at),
  };
}

/** True where a status says something new. */
export const statusDiffers = ({ binding }: Target, wanted: BindingStatus): boolean =>
  !jsonEqual(binding.status, wanted);

/** Persists a changed status and then tells the instances, if they were not told of this state yet (design.md, rule 6). */
export async function persist(
  world: World,
  target: Target,
  wanted: BindingStatus,
  connection: Connection | undefined,
): Promise<void> {
  let after = target;
  if (statusDiffers(target, wanted)) {
    const { ref, binding } = target;
    const options = { signal: world.signal };
    after = rewritten(target, await writeStatus(world.consumer.client, { ref, object: binding.raw }, wanted, options));
  }
  await tellBindingDependents(world, after.ref, { binding: after.binding, connection });
}
