import { keyOf, resources, type KubeObject } from '../model/api.ts';
import { isDeleting } from '../model/crd.ts';
import { isError } from '../model/errors.ts';
import { WATCH_PLAN_ANNOTATION } from '../model/markers.ts';
import { reconcileRequest } from '../model/request.ts';
import { watchPlanOf } from '../model/watch-plan.ts';
import type { Connection } from '../model/kinds.ts';
import { connectionIsReady } from '../model/may-act.ts';
import { setMarkers } from '../reconcile/object-writes.ts';
import type { World } from '../reconcile/world.ts';
import type { Outbox } from './outbox.ts';

/** What is to become of a CRD's watch plan (spec §6). */
export type PlanFate = 'keep' | 'shrink' | 'remove';

/**
 * A plan whose provider is not engaged any more shrinks to the consumer watch (the CRD's own reconcile does that); a shrunk
 * one goes once no instance carries our finalizer.
 */
export function planFate(crd: KubeObject, connection: Connection | undefined, finalizers: number): PlanFate {
  const plan = watchPlanOf(crd);
  if (plan === undefined || (connectionIsReady(connection) && !isDeleting(crd))) return 'keep';
  if (plan.provider) return 'shrink';
  return finalizers === 0 ? 'remove' : 'keep';
}

/** Removes or shrinks a plan that is done. A CRD that changed meanwhile is left to the next backstop. */
export async function tidyPlan(
  world: World,
  outbox: Outbox,
  { crd, fate, retry }: { readonly crd: KubeObject; readonly fate: PlanFate; readonly retry: boolean },
): Promise<void> {
  if (fate === 'shrink') await outbox.add(reconcileRequest(world.cluster, 'crd', keyOf(crd), { retry }));
  if (fate !== 'remove') return;
  const without = { annotations: { [WATCH_PLAN_ANNOTATION]: undefined } };
  try {
    await setMarkers(world.consumer.client, { ref: resources.crds, object: crd }, without, { signal: world.signal });
  } catch (error) {
    if (!isError(error, 'conflict')) throw error;
    world.log.info('watch plan changed meanwhile, left to the next sweep', { crd: crd.metadata.name });
  }
}
