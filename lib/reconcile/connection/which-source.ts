import { kubeTime } from '../../model/conditions.ts';
import type { ConnectionSpec } from '../../model/kinds.ts';

/** Between the first empty list of exports and the second one that is acted on, ms (spec §2.4 and §2.6). */
export const EMPTY_MS = 60_000;

export type Source = 'CRD' | 'OpenAPI';

/** What the choice of a source rests on. */
export interface SourceFacts {
  readonly configured: ConnectionSpec['schema']['source'];
  /** The source in use so far. */
  readonly active: Source | undefined;
  /** Exports in the complete list of labelled CRDs; a list that failed never gets here. */
  readonly labelled: number;
  /** Since when that list is empty, as the status remembers it. */
  readonly emptySince: string | undefined;
  /** A binding that is not deleting refers to this Connection. */
  readonly bound: boolean;
  readonly nowMs: number;
}

/**
 * Auto: labelled CRDs first; an empty list of them means OpenAPI. While a binding is live, one empty list is not believed:
 * the source changes with a second one, at least a minute later.
 */
export function whichSource(facts: SourceFacts): Source {
  const { configured, active, labelled, bound } = facts;
  if (configured !== 'Auto') return configured;
  if (labelled > 0) return 'CRD';
  return active === 'CRD' && bound && !emptyForLong(facts) ? 'CRD' : 'OpenAPI';
}

/** True when the list has been empty before, at least a minute ago. */
export const emptyForLong = ({ emptySince, nowMs }: Pick<SourceFacts, 'emptySince' | 'nowMs'>): boolean =>
  emptySince !== undefined && nowMs - Date.parse(emptySince) >= EMPTY_MS;

/** `status.exportsEmptySince` after a list: set by the first empty one, gone with the first that is not. Rounded up. */
export function emptySinceAfter(exports: number, before: string | undefined, nowMs: number): string | undefined {
  if (exports > 0) return undefined;
  return before ?? kubeTime(Math.ceil(nowMs / 1000) * 1000);
}
