import type { MetaObject } from '../../model/api.ts';
import type { CopySummary, SourceSummary } from './read-both-sides.ts';
import { carriesEveryMarker } from './what-to-copy.ts';
import { whoMade, type CopyOwner, type Maker } from './who-made-it.ts';

/** What a pass has to do about one selected source. */
export type ToDo = 'nothing' | 'create' | 'update' | 'wait' | 'collision';

/**
 * Decides by what stands under the source's name: ours → made to match, and waited for where it is going; nothing → made;
 * anything else is in the way. Pure.
 */
export function whatToDo(
  source: SourceSummary,
  target: Pick<CopySummary, 'object' | 'hash'> | { readonly object: MetaObject | undefined; readonly hash?: undefined },
  owner: CopyOwner,
): ToDo {
  const { object, hash } = target;
  const maker: Maker = whoMade(object, owner);
  if (object === undefined || maker === 'absent') return 'create';
  if (maker !== 'ours') return 'collision';
  if (object.metadata.deletionTimestamp !== undefined) return 'wait';
  return hash === source.hash && carriesEveryMarker(object, owner) ? 'nothing' : 'update';
}

/** Copies of this binding that no source asks for any more. */
export const toPrune = (
  copies: Iterable<readonly [string, CopySummary]>,
  sources: ReadonlyMap<string, SourceSummary>,
  owner: CopyOwner,
): CopySummary[] =>
  [...copies].flatMap(([key, copy]) => (whoMade(copy.object, owner) === 'ours' && !sources.has(key) ? [copy] : []));
