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

/**
 * Which walk this is: the whole seconds since the deletion. Walks are 2 s and more apart, so each has its own number, and a
 * doubled delivery of one walk has the same: deduplication ids need both. Nothing has to be remembered for it.
 */
export const walkNumber = ({ deletedAt, now }: DeletionTimes): number => Math.floor((now - deletedAt) / 1000);

/** Seconds until the next walk: as long again as walking has lasted, which doubles from 2 s to 60 s. */
export function nextWalkSeconds({ deletedAt, now }: DeletionTimes): number {
  const walkedFor = Math.round((now - deletedAt - DELETION_GRACE_MS) / 1000);
  return Math.min(MAX_DELAY, Math.max(FIRST_DELAY, walkedFor));
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
