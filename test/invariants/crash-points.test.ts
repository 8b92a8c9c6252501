import { describe, expect, test } from 'vitest';
import { paths, planOfPath } from './campaign/crash-points.ts';
import { reportOf } from './campaign/report.ts';
import { run } from './campaign/run.ts';

/** Crash points per path: one in `npm test`, more with CRASH_POINTS=N, each and every one with CRASH_POINTS=all. */
const wanted = process.env['CRASH_POINTS'] ?? '1';
/** Spread over the path, neither its first nor its last await. */
const points = (awaits: number): number[] => {
  if (wanted === 'all') return Array.from({ length: awaits }, (_, index) => index + 1);
  const count = Number(wanted);
  return [...new Set(Array.from({ length: count }, (_, index) => Math.ceil((awaits * (index + 0.4)) / count)))];
};

describe('killed at any await, a function leaves nothing undone and nothing behind', () => {
  test.each(paths)('$name', { timeout: 3_600_000 }, async (path) => {
    const whole = await run(planOfPath(path, 0));
    expect(reportOf(whole)).toBe('');
    expect(whole.awaits).toBeGreaterThan(0);
    for (const point of points(whole.awaits)) {
      const result = await run(planOfPath(path, point));
      expect(reportOf(result, `killed at await ${point} of ${whole.awaits}`)).toBe('');
    }
  });
});
