import pLimit from 'p-limit';
import { toKbindError } from '../model/errors.ts';
import { plainText } from '../queue/dead-letters.ts';
import type { FleetEntry } from './fleet/fleet.ts';
import type { Session } from './session.ts';
import { withProgress } from './terminal.ts';

/** Clusters that are asked side by side. */
const AT_ONCE = 32;
const MAX_REASON = 300;

export type Asked<T> =
  { readonly entry: FleetEntry; readonly value: T } | { readonly entry: FleetEntry; readonly problem: string };

/** Asks every cluster something, so many at a time; one that hangs or fails is named with why, and keeps nobody waiting. */
export function askClusters<T>(
  session: Session,
  { what, entries }: { readonly what: string; readonly entries: readonly FleetEntry[] },
  ask: (entry: FleetEntry, signal: AbortSignal) => Promise<T>,
): Promise<Asked<T>[]> {
  const limit = pLimit(AT_ONCE);
  let answered = 0;
  return withProgress(session.terminal, what, ({ tell }) =>
    Promise.all(
      entries.map((entry) =>
        limit(async () => {
          const asked = await askOne(session, entry, ask);
          answered += 1;
          tell(`${answered} of ${entries.length} clusters`);
          return asked;
        }),
      ),
    ),
  );
}

async function askOne<T>(
  { options, limit }: Session,
  entry: FleetEntry,
  ask: (entry: FleetEntry, signal: AbortSignal) => Promise<T>,
): Promise<Asked<T>> {
  if (entry.problem !== undefined) return { entry, problem: entry.problem };
  const signal = limit();
  try {
    return { entry, value: await Promise.race([ask(entry, signal), whenUp(signal)]) };
  } catch (thrown) {
    const { message } = toKbindError(thrown);
    return {
      entry,
      problem: signal.aborted ? `no answer within ${options.timeout} s` : plainText(message, MAX_REASON),
    };
  }
}

/** Rejects when the time is up, whatever what was asked makes of the signal. */
function whenUp(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('time is up'))));
}
