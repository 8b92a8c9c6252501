import type { KubeObject } from '../../model/api.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { isDeleting } from '../../model/crd.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { listsApi } from '../../model/may-act.ts';
import { DELETION_GRACE_MS } from '../world.ts';

/** The diamonds of the deletion chart and when it is walked: pure. */

/** Seconds: how soon a walk follows another (spec §4). */
const FIRST_DELAY = 2;
const MAX_DELAY = 60;

/** When a deletion is looked at. */
export interface DeletionTimes {
  /** Epoch ms of the deletionTimestamp. */
  readonly deletedAt: number;
  /** Wall clock, epoch ms. */
  readonly now: number;
  /** Latest `Date` that the consumer's API server has shown in an earlier answer, epoch ms. */
  readonly serverDate: number | undefined;
}

/** Why 0 ms are left, or how many, before the chart may be walked: both clocks must have passed the 8 s (spec §8). */
export function graceLeftMs({ deletedAt, now, serverDate }: DeletionTimes): number {
  const earliest = Math.min(now, serverDate ?? Number.NEGATIVE_INFINITY);
  if (earliest === Number.NEGATIVE_INFINITY) return DELETION_GRACE_MS;
  return Math.max(0, deletedAt + DELETION_GRACE_MS - earliest);
}

/** Seconds for which this binding has been walked. */
const walkedFor = ({ deletedAt, now }: DeletionTimes): number =>
  Math.max(0, (now - deletedAt - DELETION_GRACE_MS) / 1000);

/** Pauses until the longest, each twice the one before: 2, 4, 8, 16 and 32 s. */
const DOUBLINGS = Math.floor(Math.log2(MAX_DELAY / FIRST_DELAY)) + 1;
const DOUBLED_FOR = FIRST_DELAY * (2 ** DOUBLINGS - 1);

/**
 * Which walk this is: the pauses that have passed, so that nothing has to be remembered for it. Walks that were waited for
 * each have their own number. One that an event brings about in between has the number of the last, and so has a doubled
 * delivery: the queue swallows what either enqueues again.
 */
export function walkNumber(times: DeletionTimes): number {
  const seconds = walkedFor(times);
  if (seconds >= DOUBLED_FOR) return DOUBLINGS + Math.floor((seconds - DOUBLED_FOR) / MAX_DELAY);
  return Math.floor(Math.log2(seconds / FIRST_DELAY + 1));
}

/** Seconds until the next walk: 2, doubling to 60. */
export function nextWalkSeconds(times: DeletionTimes): number {
  return Math.min(MAX_DELAY, FIRST_DELAY + Math.round(walkedFor(times)));
}

/** Another non-deleting binding, of either kind, anywhere, that lists the API. */
export const coveringOther = (
  binding: AnyBinding,
  others: readonly AnyBinding[],
  api: string,
): AnyBinding | undefined =>
  others.find((other) => other.metadata.uid !== binding.metadata.uid && !isDeleting(other) && listsApi(other, api));

/** Why a consumer CRD is not what this binding synchronized; undefined: it is. */
export function whyNotOurs(crd: KubeObject, { spec }: AnyBinding): string | undefined {
  const { name, labels, annotations } = crd.metadata;
  const pinned = annotations?.[CONNECTION_ANNOTATION];
  if (labels?.[MANAGED_LABEL] !== TRUE) {
    return `CustomResourceDefinition ${name} is left alone: it has no label ${MANAGED_LABEL}, so it is not what this binding synchronized`;
  }
  if (pinned === spec.connectionRef.name) return undefined;
  const owner = pinned === undefined ? 'no Connection' : `Connection ${pinned}`;
  return `CustomResourceDefinition ${name} is left alone: it is pinned to ${owner}, not to Connection ${spec.connectionRef.name}`;
}
