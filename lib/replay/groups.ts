import { apiOf, clusterOf, type DeadClass, type DeadEntry } from './entry.ts';

/** Dead entries with one error, of one API of one cluster. */
export interface DeadGroup {
  readonly error: DeadClass;
  readonly status?: number | undefined;
  readonly cluster: string;
  /** `<plural>.<group>`, or what was reconciled. */
  readonly api: string;
  readonly entries: number;
  /** How many keys they are of: one key may have left several letters. */
  readonly keys: number;
  /** Epoch ms of the oldest and of the newest failure. */
  readonly oldest: number;
  readonly newest: number;
  /** One of their messages. */
  readonly example: string;
}

/** Groups entries by error, cluster and API; the largest first. Pure. */
export function groupEntries(entries: readonly DeadEntry[]): DeadGroup[] {
  const groups = Map.groupBy(entries, (entry) =>
    JSON.stringify([entry.error.class, entry.error.status, clusterOf(entry), apiOf(entry)]),
  );
  return [...groups.values()].map(groupOf).sort((a, b) => b.entries - a.entries || a.oldest - b.oldest);
}

function groupOf(entries: readonly DeadEntry[]): DeadGroup {
  const [first] = entries.toSorted((a, b) => b.lastFailure - a.lastFailure);
  if (first === undefined) throw new RangeError('a group without entries');
  return {
    error: first.error.class,
    ...(first.error.status === undefined ? {} : { status: first.error.status }),
    cluster: clusterOf(first),
    api: apiOf(first),
    entries: entries.length,
    keys: new Set(entries.map(({ key }) => key)).size,
    oldest: Math.min(...entries.map(({ firstFailure }) => firstFailure)),
    newest: first.lastFailure,
    example: first.error.message,
  };
}
