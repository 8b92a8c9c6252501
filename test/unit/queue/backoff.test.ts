import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketSeconds, retrySeconds, waitSeconds } from '../../../lib/queue/backoff.ts';

describe('waits', () => {
  it.each([
    [{ firstSeconds: 2, maxSeconds: 60 }, [2, 4, 8, 16, 32, 60, 60]],
    [{ firstSeconds: 2, maxSeconds: 30 }, [2, 4, 8, 16, 30, 30]],
    [{ firstSeconds: 60, maxSeconds: 600 }, [60, 120, 240, 480, 600, 600]],
    [{ firstSeconds: 30, maxSeconds: 30 }, [30, 30, 30]],
  ])('double from the first to the last: %j', (bounds, expected) => {
    let waited: number | undefined;
    const delays = expected.map(() => (waited = waitSeconds(bounds, waited)));
    expect(delays).toEqual(expected);
  });
});

describe('retries', () => {
  it('double from 1 s to 300 s', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => retrySeconds(attempt, 0.5))).toEqual([
      1, 2, 4, 8, 16, 32, 64, 128, 256, 300,
    ]);
  });

  it('vary by a fifth either way', () => {
    expect(retrySeconds(3, 0)).toBeCloseTo(6.4);
    expect(retrySeconds(3, 1)).toBeCloseTo(9.6);
  });

  it('honour Retry-After up to 900 s, and are never shortened by it', () => {
    expect(retrySeconds(0, 0.5, 120)).toBe(120);
    expect(retrySeconds(0, 0.5, 5000)).toBe(900);
    expect(retrySeconds(8, 0.5, 3)).toBe(256);
  });
});

describe('buckets', () => {
  it('are the largest power of two that is at most half the delay; none under 2 s', () => {
    expect([0, 1, 1.9, 2, 3, 4, 7.9, 8, 30, 60, 600, 900].map(bucketSeconds)).toEqual([
      undefined,
      undefined,
      undefined,
      1,
      1,
      2,
      2,
      4,
      8,
      16,
      256,
      256,
    ]);
  });

  it('never are wider than half the delay, nor narrower than a quarter', () => {
    fc.assert(
      fc.property(fc.double({ min: 2, max: 900, noNaN: true }), (delay) => {
        const width = bucketSeconds(delay) ?? Number.NaN;
        expect(width).toBeLessThanOrEqual(delay / 2);
        expect(width).toBeGreaterThan(delay / 4);
        expect(Number.isInteger(Math.log2(width))).toBe(true);
      }),
    );
  });
});
