import type { KubeObject } from '../../model/api.ts';
import { APPLIED_HASH_ANNOTATION } from '../../model/markers.ts';
import { holdsSpec } from './holds-spec.ts';
import { carriesEveryMarker, specHash } from './what-to-apply.ts';
import type { Owner } from './who-owns-it.ts';

/**
 * `no`: the copy is as it should be. `yes`: the source changed, or a marker is missing. `drifted`: this very spec was
 * applied, but the copy does not hold it: a dry run tells whether an apply would help.
 */
export type NeedsApply = 'no' | 'yes' | 'drifted';

/** Compares a copy of ours with its source. */
export function needsApply(source: KubeObject, copy: KubeObject, owner: Owner): NeedsApply {
  const sameHash = copy.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === specHash(source);
  if (!sameHash || !carriesEveryMarker(copy, owner)) return 'yes';
  return holdsSpec(copy, source) ? 'no' : 'drifted';
}
