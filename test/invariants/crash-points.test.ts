import { describe, expect, test } from 'vitest';
import { paths, planOfPath } from './campaign/crash-points.ts';
import { reportOf } from './campaign/report.ts';
import { run } from './campaign/run.ts';

/** Crash points per path: spread evenly in `npm test`, each and every one with CRASH_POINTS=all. */
const wanted = process.env['CRASH_POINTS'] ?? '2';
const points = (awaits: number): number[] => {
  const all = Array.from({ length: awaits }, (_, index) => index + 1);
  if (wanted === 'all') return all;
  const stride = Math.max(1, awaits / Number(wanted));
  return all.filter((point) => Math.floor(point / stride) !== Math.floor((point - 1) / stride));
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
