import type { Result } from './result.ts';

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = low] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return (low + high) / 2;
}

/** Which loop of bare writes each scenario is held against. */
const LIMITS: Readonly<Record<string, string>> = { create: 'limit of create', change: 'limit of change' };

/** One scenario over all rounds of a run. */
export interface Summary {
  readonly scenario: string;
  readonly runs: number;
  readonly medianMs: number;
  readonly medianCpuMs: number;
  /** Wall time and CPU time of all processes over those of the bare loop of the same round, medians of the rounds. */
  readonly overLimit?: number;
  readonly cpuOverLimit?: number;
}

const msOf = ({ ms }: Result): number => ms;
const cpuOf = ({ processes }: Result): number => processes.reduce((sum, { cpuMs }) => sum + cpuMs, 0);

/** What the runs take beside the bare ones, round by round: a machine's speed drifts between rounds. */
function overBare(runs: readonly Result[], bare: readonly Result[], of: (result: Result) => number): number {
  const ratios = runs.flatMap((run, round) => {
    const beside = bare[round];
    return beside === undefined ? [] : [of(run) / of(beside)];
  });
  return Math.round(100 * median(ratios)) / 100;
}

/** Medians of the scenarios that ran, and what `create` and `change` take beside the bare writes. */
export function summarize(results: readonly Result[]): Summary[] {
  const byName = Map.groupBy(results, ({ scenario }) => scenario);
  return [...byName].map(([scenario, runs]) => {
    const medianOf = (of: (result: Result) => number): number => Math.round(median(runs.map(of)));
    const own = { scenario, runs: runs.length, medianMs: medianOf(msOf), medianCpuMs: medianOf(cpuOf) };
    const bare = byName.get(LIMITS[scenario] ?? '');
    if (bare === undefined) return own;
    return { ...own, overLimit: overBare(runs, bare, msOf), cpuOverLimit: overBare(runs, bare, cpuOf) };
  });
}

/** Of each scenario the run whose wall time is the median: its counts stand for all. */
export function medianRuns(results: readonly Result[]): Result[] {
  return [...Map.groupBy(results, ({ scenario }) => scenario).values()].flatMap((runs) => {
    const sorted = [...runs].sort((a, b) => a.ms - b.ms);
    const middle = sorted[Math.floor((sorted.length - 1) / 2)];
    return middle === undefined ? [] : [middle];
  });
}
