import { expect, test } from 'vitest';
import { allFaults } from '../support/faults/plan.ts';
import { narrow, reportOf, Summary } from './campaign/report.ts';
import { planOf, run } from './campaign/run.ts';

/** A short run of the campaign; longer with CAMPAIGN_RUNS and another CAMPAIGN_SEED. */
const RUNS = Number(process.env['CAMPAIGN_RUNS'] ?? '8');
const FIRST_SEED = Number(process.env['CAMPAIGN_SEED'] ?? '1');

test('random histories under random faults break no line of spec §8', { timeout: 60_000 + RUNS * 20_000 }, async () => {
  const summary = new Summary();
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed += 1) {
    const result = await run(planOf(seed));
    summary.add(result);
    const smallest = result.violations.length === 0 ? result : await narrow(result);
    expect(reportOf(smallest, 'the smallest failing case')).toBe('');
  }
  expect(summary.toString()).toContain(`${RUNS} runs`);
});

test('the same seed does the same', { timeout: 60_000 }, async () => {
  const plan = { ...planOf(77), rate: 0.05, kinds: allFaults };
  const [first, second] = [await run(plan, { verbose: true }), await run(plan, { verbose: true })];
  expect(second.log).toEqual(first.log);
  expect(second.faults).toEqual(first.faults);
});
