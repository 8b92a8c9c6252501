import { describe, expect, test } from 'vitest';
import { seeded } from '../support/faults/random.ts';
import { paths, planOfPath, type Path } from './campaign/crash-points.ts';
import { pathsWithFaults } from './campaign/paths-with-faults.ts';
import { reportOf } from './campaign/report.ts';
import { run } from './campaign/run.ts';

/** Each path is killed at this many of its awaits, drawn by CRASH_SEED. `npm run crash-points` kills at each and every one. */
const POINTS = Number(process.env['CRASH_POINTS'] ?? '1');
const SEED = Number(process.env['CRASH_SEED'] ?? '1');
/** An eighth of the paths, drawn by the seed too, where people wait for `npm test`; all of them in CI. */
const drawn = (all: readonly Path[]): readonly Path[] =>
  process.env['CI'] === undefined ? all.filter((_path, index) => index % 8 === SEED % 8) : all;

describe('a fault at a chosen place breaks no line of spec §8', () => {
  test.each(drawn(pathsWithFaults))('$name', { timeout: 60_000 }, async (path) => {
    expect(reportOf(await run(planOfPath(path, 0)))).toBe('');
  });
});

describe(`killed at an await drawn by seed ${SEED}, a function leaves nothing undone and nothing behind`, () => {
  test.each(drawn(paths))('$name', { timeout: 60_000 + POINTS * 30_000 }, async (path) => {
    const whole = await run(planOfPath(path, 0));
    expect(reportOf(whole)).toBe('');
    expect(whole.awaits).toBeGreaterThan(0);
    const random = seeded(SEED).fork(path.name);
    for (let killed = 0; killed < POINTS; killed += 1) {
      const point = 1 + random.below(whole.awaits);
      const result = await run(planOfPath(path, point));
      expect(reportOf(result, `killed at await ${point} of ${whole.awaits}`)).toBe('');
    }
  });
});
