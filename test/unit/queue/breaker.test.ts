import { describe, expect, it } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import { createBreaker } from '../../../lib/queue/breaker.ts';

function clockAt(): { now(): number; monotonic(): number; pass(seconds: number): void } {
  let ms = 1000;
  return {
    now: () => ms,
    monotonic: () => ms,
    pass: (seconds) => {
      ms += seconds * 1000;
    },
  };
}

const silence = new KbindError('unavailable', 'no answer');

describe('a cluster that answers nothing', () => {
  it('is left alone for a second, doubling to 30 with each probe that fails', () => {
    const clock = clockAt();
    const breaker = createBreaker(clock);
    const pauses: number[] = [];
    for (let n = 0; n < 7; n += 1) {
      breaker.failed('c', silence);
      pauses.push(breaker.enter('c'));
      clock.pass(pauses.at(-1) ?? 0);
      expect(breaker.enter('c')).toBe(0);
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30]);
  });

  it('lets one probe through after the pause and holds the others', () => {
    const clock = clockAt();
    const breaker = createBreaker(clock);
    breaker.failed('c', silence);
    clock.pass(1);
    expect(breaker.enter('c')).toBe(0);
    expect(breaker.enter('c')).toBeGreaterThan(0);
    breaker.succeeded('c');
    expect(breaker.enter('c')).toBe(0);
    expect(breaker.enter('c')).toBe(0);
  });

  it('is not left alone longer because many failed together', () => {
    const breaker = createBreaker(clockAt());
    for (let n = 0; n < 10; n += 1) breaker.failed('c', silence);
    expect(breaker.enter('c')).toBe(1);
  });

  it('does not hold up others', () => {
    const breaker = createBreaker(clockAt());
    breaker.failed('c', silence);
    expect(breaker.enter('d')).toBe(0);
  });
});

describe('what counts', () => {
  it.each([
    ['429', new KbindError('throttled', 'busy', { status: 429, retryAfterSeconds: 7 }), 7],
    ['429 without Retry-After', new KbindError('throttled', 'busy', { status: 429 }), 1],
    [
      '429 of a collection whose cache fills',
      new KbindError('throttled', 'x', { status: 429, fillsItsCache: true }),
      0,
    ],
    ['a Retry-After of an hour, cut', new KbindError('throttled', 'busy', { retryAfterSeconds: 3600 }), 60],
    ['503', new KbindError('unavailable', 'x', { status: 503 }), 1],
    ['500: an answer', new KbindError('unavailable', 'x', { status: 500 }), 0],
    ['403: an answer', new KbindError('forbidden', 'x', { status: 403 }), 0],
    ['a bug of ours', new KbindError('internal', 'x'), 0],
  ])('%s', (_name, error, seconds) => {
    const breaker = createBreaker(clockAt());
    breaker.failed('c', error);
    expect(breaker.enter('c')).toBe(seconds);
  });

  it('any other answer ends a pause', () => {
    const breaker = createBreaker(clockAt());
    breaker.failed('c', silence);
    breaker.failed('c', new KbindError('conflict', 'x', { status: 409 }));
    expect(breaker.enter('c')).toBe(0);
  });
});
