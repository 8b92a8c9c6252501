import { expect, it } from 'vitest';
import { silentLogger } from '../../../lib/model/log.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import type { LocalFunction } from '../../../lib/local/lambda/invoke.ts';
import { startSchedule } from '../../../lib/local/schedule.ts';
import { readServerlessFile } from '../../../lib/local/stack/serverless-file.ts';
import { until } from '../../support/e2e/until.ts';
import { smallServerlessFile, Stacks } from '../../support/local/stacks.ts';

it.each([
  ['rate(1 minute)', 60_000],
  ['rate(3 hours)', 10_800_000],
])('a rate of %s in serverless.yml is what the schedule runs at', async (rate, everyMs) => {
  const stacks = new Stacks();
  const path = await stacks.file(smallServerlessFile({ rate }));
  const clock = readServerlessFile(path, { stage: 'local' }).functions.find(({ name }) => name === 'clock');
  expect(clock?.schedules).toEqual([{ everyMs }]);
  await stacks.stop();
});

it('fires at once, then at its rate, although invocations fail; fires no more once stopped', async () => {
  const outcomes: unknown[] = [];
  let calls = 0;
  const target = {
    declared: { name: 'clock' },
    invoke: async () => {
      calls += 1;
      if (calls === 2) throw new Error('no');
    },
  } as unknown as LocalFunction;
  const schedule = startSchedule({
    everyMs: 10,
    region: 'r',
    target,
    clock: systemClock,
    log: silentLogger,
    onFired: (error) => outcomes.push(error),
  });
  expect(calls).toBe(1);
  await until('it has fired four times', () => outcomes.length >= 4);
  await schedule.stop();
  const atStop = calls;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(calls).toBe(atStop);
  expect(outcomes[1]).toEqual(new Error('no'));
  expect(outcomes[2]).toBeUndefined();
});
