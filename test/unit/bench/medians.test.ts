import { expect, test } from 'vitest';
import { summarize } from '../../bench/medians.ts';
import type { Result } from '../../bench/result.ts';

const result = (scenario: string, ms: number): Result =>
  ({ scenario, ms, processes: [{ name: 'bench', cpuMs: 2 * ms, rssMb: 1 }] }) as unknown as Result;

/** Rounds on a machine whose speed drifts: what a round took only means something beside the bare loop of that round. */
test('what a scenario takes beside the bare writes is the median of what it took in each round', () => {
  const rounds = [
    [100, 150],
    [300, 450],
    [150, 300],
  ].flatMap(([bare = 0, own = 0]) => [result('limit of create', bare), result('create', own)]);
  expect(summarize(rounds)).toEqual([
    { scenario: 'limit of create', runs: 3, medianMs: 150, medianCpuMs: 300 },
    { scenario: 'create', runs: 3, medianMs: 300, medianCpuMs: 600, overLimit: 1.5, cpuOverLimit: 1.5 },
  ]);
});

test('a scenario without its bare loop has no ratio', () => {
  expect(summarize([result('create', 10)])).toEqual([{ scenario: 'create', runs: 1, medianMs: 10, medianCpuMs: 20 }]);
});
