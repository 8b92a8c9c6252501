import type { Result } from './result.ts';

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = low] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return Math.round((low + high) / 2);
}

/** Which loop of bare writes each scenario is held against. */
const LIMITS: Readonly<Record<string, string>> = { create: 'limit of create', change: 'limit of change' };

/** One scenario over all rounds of a run. */
export interface Summary {
  readonly scenario: string;
  readonly runs: number;
  readonly medianMs: number;
  readonly medianCpuMs: number;
  /** Wall time and CPU time of all processes over those of the bare loop. */
  readonly overLimit?: number;
  readonly cpuOverLimit?: number;
}

const cpuOf = ({ processes }: Result): number => processes.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
const ratio = (part: number, whole: number): number => Math.round((100 * part) / whole) / 100;

/** Medians of the scenarios that ran, and what `create` and `change` take beside the bare writes. */
export function summarize(results: readonly Result[]): Summary[] {
  const byName = Map.groupBy(results, ({ scenario }) => scenario);
  const ms = (name: string): number => median((byName.get(name) ?? []).map((result) => result.ms));
  const cpu = (name: string): number => median((byName.get(name) ?? []).map(cpuOf));
  return [...byName].map(([scenario, runs]) => {
    const own = { scenario, runs: runs.length, medianMs: ms(scenario), medianCpuMs: cpu(scenario) };
    const bare = LIMITS[scenario];
    if (bare === undefined || !byName.has(bare)) return own;
    return { ...own, overLimit: ratio(ms(scenario), ms(bare)), cpuOverLimit: ratio(cpu(scenario), cpu(bare)) };
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
