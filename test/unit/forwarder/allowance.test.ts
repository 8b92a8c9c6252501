import { describe, expect, it } from 'vitest';
import { Allowance, AMPLE, UNASKED, UNASKED_PER_SECOND } from '../../../lib/forwarder/allowance.ts';
import { MAX_BATCH } from '../../../lib/forwarder/sink.ts';

/** Takes batches until none may go; answers with the keys that went. */
function takeAll(allowance: Allowance, now = 0): number {
  let sum = 0;
  for (let taken = -1; taken !== 0; sum += taken) taken = allowance.take(MAX_BATCH, now);
  return sum;
}
const spent = (): Allowance => {
  const allowance = new Allowance();
  takeAll(allowance);
  return allowance;
};

describe('leave to send', () => {
  it('is there for some keys at once, and comes back with time, up to that many', () => {
    const allowance = new Allowance();
    expect(takeAll(allowance, 1_000)).toBe(UNASKED);
    expect(takeAll(allowance, 1_000)).toBe(0);
    expect(takeAll(allowance, 2_000)).toBe(UNASKED_PER_SECOND);
    expect(takeAll(allowance, 2_050)).toBe(0);
    expect(takeAll(allowance, 2_100)).toBe(1);
    expect(takeAll(allowance, 999_999_000)).toBe(UNASKED);
  });

  it('never asks on behalf of keys that come one by one', () => {
    const allowance = new Allowance();
    const gap = 1000 / UNASKED_PER_SECOND;
    expect(Array.from({ length: 1000 }, (_, n) => allowance.take(1, n * gap)).every((taken) => taken === 1)).toBe(true);
  });

  it.each([
    [0, AMPLE],
    [1, AMPLE - 1],
    [AMPLE - 1, 1],
    [undefined, AMPLE],
  ])('is, with %s waiting, there for %i more without a pause', (backlog, room) => {
    const allowance = spent();
    expect(allowance.told(backlog)).toBe(0);
    expect(takeAll(allowance)).toBe(room);
  });

  it('is refused while enough waits, for longer each time; then as many go as unasked, however much that is', () => {
    const allowance = spent();
    const steps = Array.from({ length: 7 }, () => [allowance.told(AMPLE + 1), takeAll(allowance)]);
    expect(steps).toEqual([
      [50, 0],
      [100, 0],
      [200, 0],
      [400, 0],
      [800, 0],
      [1000, UNASKED],
      [1000, UNASKED],
    ]);
    expect(allowance.told(AMPLE - 5)).toBe(0);
    expect(takeAll(allowance)).toBe(5);
    expect(allowance.told(AMPLE)).toBe(50);
  });

  it('given for an answer does not add up with what an earlier one left', () => {
    const allowance = spent();
    allowance.told(0);
    allowance.told(AMPLE - 3);
    expect(takeAll(allowance)).toBe(3);
  });
});
