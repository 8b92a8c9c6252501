import pLimit from 'p-limit';
import type { ChainedRequest } from '../queue/dead-letters.ts';
import type { DeadEntry } from './entry.ts';

/** What a reconcile of an entry's key would do now. */
export const prospects = [
  /** It would write something, or tell somebody. */
  'would-act',
  /** It would fail. */
  'failing',
  /** It would wait: for a deletion, a permission, a conflict to end. */
  'waiting',
  /** Everything is as it should be. */
  'healed',
  /** Nothing can be done about it now; what stands in the way says so itself, and its end sweeps. */
  'idle',
  /** The object is gone. */
  'gone',
  /** A sweep: what it would find is not known before it runs. */
  'sweep',
  'cluster-paused',
  'cluster-removed',
  'cluster-unknown',
  /** The registry, or the cluster, does not say. */
  'unresolved',
  /** A heartbeat or refresh: nobody needs it any more. */
  'obsolete',
  'unreadable',
] as const;
export type Prospect = (typeof prospects)[number];

export interface Finding {
  readonly prospect: Prospect;
  /** One line. */
  readonly detail: string;
}

/** Tries a request in a dry run. Never throws for what the clusters say. */
export type Examine = (request: ChainedRequest) => Promise<Finding>;

/** Dry runs side by side. */
const AT_ONCE = 8;

/** Those whose dead letter has served its purpose. */
export const isSettled = ({ prospect }: Finding): boolean =>
  prospect === 'healed' || prospect === 'gone' || prospect === 'obsolete' || prospect === 'cluster-removed';

export interface Examined {
  readonly entry: DeadEntry;
  readonly finding: Finding;
}

/** What a reconcile would do now, entry by entry; entries of one key share one dry run. */
export async function examineEntries(
  entries: readonly DeadEntry[],
  examine: Examine,
  onProgress?: (examined: number) => void,
): Promise<Examined[]> {
  const limit = pLimit(AT_ONCE);
  const byKey = new Map<string, Promise<Finding>>();
  let examined = 0;
  return Promise.all(
    entries.map(async (entry) => {
      const finding = byKey.get(entry.key) ?? limit(() => examineEntry(entry, examine));
      byKey.set(entry.key, finding);
      const result = { entry, finding: await finding };
      examined += 1;
      onProgress?.(examined);
      return result;
    }),
  );
}

function examineEntry({ request, unfit, error }: DeadEntry, examine: Examine): Promise<Finding> {
  if (request !== undefined) return examine(request);
  const prospect = unfit ?? 'unreadable';
  const detail = prospect === 'obsolete' ? 'sent anew every minute' : error.message;
  return Promise.resolve({ prospect, detail });
}
