import type { DeadQueues } from './dead-queues.ts';
import type { DeadEntry } from './entry.ts';
import { examineEntries, isSettled, type Examine } from './examine.ts';
import { matches, type DeadFilter } from './filter.ts';
import { Hold, oldestFirst } from './hold.ts';

export interface DropOptions {
  readonly filter: DeadFilter;
  /** Only entries that have served their purpose: healed, gone, obsolete. Needs `examine`. */
  readonly settledOnly: boolean;
  readonly max: number;
  readonly nowMs: () => number;
  /** Epoch ms after which no further entry is begun. */
  readonly deadline?: number | undefined;
  readonly onProgress?: ((report: DropReport) => void) | undefined;
}

export interface DropReport {
  readonly matched: number;
  readonly dropped: number;
  /** Matched, and still of use. */
  readonly kept: number;
  readonly stopped?: 'maximum' | 'deadline' | undefined;
}

/** Entries that are looked at together. */
const CHUNK = 50;
/** Dry runs take their time; seconds. */
const HOLD_SECONDS = 900;

/**
 * Takes dead entries out for good.
 * @throws KbindError class `unavailable` when a queue does not answer; what was dropped is dropped
 */
export async function dropDead(queues: DeadQueues, examine: Examine, options: DropOptions): Promise<DropReport> {
  const hold = new Hold(queues, HOLD_SECONDS);
  let report: DropReport = { matched: 0, dropped: 0, kept: 0 };
  try {
    for (;;) {
      const found = (await hold.take()).filter((entry) => matches(options.filter, entry, options.nowMs()));
      report = { ...report, matched: report.matched + found.length };
      const before = report.dropped;
      report = await dropFound(hold, oldestFirst(found), examine, { options, report });
      if (report.stopped !== undefined || report.dropped === before) return report;
    }
  } finally {
    await hold.release();
  }
}

async function dropFound(
  hold: Hold,
  entries: DeadEntry[],
  examine: Examine,
  { options, report: start }: { readonly options: DropOptions; readonly report: DropReport },
): Promise<DropReport> {
  let report = start;
  while (entries.length > 0) {
    if (report.dropped >= options.max) return { ...report, stopped: 'maximum' };
    if (options.deadline !== undefined && options.nowMs() >= options.deadline) {
      return { ...report, stopped: 'deadline' };
    }
    const chunk = entries.splice(0, Math.min(CHUNK, options.max - report.dropped));
    const useless = options.settledOnly ? await withoutUse(chunk, examine) : chunk;
    const left = await hold.remove(useless);
    const dropped = useless.length - left;
    report = { ...report, dropped: report.dropped + dropped, kept: report.kept + chunk.length - dropped };
    options.onProgress?.(report);
  }
  return report;
}

async function withoutUse(entries: readonly DeadEntry[], examine: Examine): Promise<DeadEntry[]> {
  const examined = await examineEntries(entries, examine);
  return examined.filter(({ finding }) => isSettled(finding)).map(({ entry }) => entry);
}
