import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  firstState,
  MAX_RESUMES,
  nextState,
  type WatchInput,
  type WatchState,
} from '../../../lib/forwarder/watch-machine.ts';
import { errorClasses } from '../../../lib/model/errors.ts';

const MIDDLE = 0.5;

const connecting = { phase: 'connecting', resourceVersion: '10', gap: true, failures: 0, connects: 0 } as const;
const streaming = { phase: 'streaming', resourceVersion: '10', gap: true, failures: 0, connects: 1 } as const;
const listing = { phase: 'listing', failures: 0, connects: 2 } as const;

const reset: WatchInput = { type: 'failed', errorClass: 'unavailable' };
const gone: WatchInput = { type: 'failed', errorClass: 'expired' };

const rows: readonly [string, WatchState, WatchInput, WatchState][] = [
  [
    'starts from a list, so everything before is a gap',
    firstState,
    { type: 'listed', resourceVersion: '10' },
    connecting,
  ],
  ['stands once the server answered', connecting, { type: 'opened' }, streaming],
  [
    'advances with an event',
    streaming,
    { type: 'event', resourceVersion: '11' },
    { ...streaming, resourceVersion: '11', gap: false },
  ],
  [
    'advances with a bookmark, and with nothing else',
    streaming,
    { type: 'bookmark', resourceVersion: '12' },
    { ...streaming, resourceVersion: '12', gap: false },
  ],
  [
    'an ordinary end resumes at once from the last version, without a gap',
    { ...streaming, resourceVersion: '12', gap: false },
    { type: 'ended', barren: false },
    { ...connecting, resourceVersion: '12', gap: false, connects: 1 },
  ],
  [
    'a stream that stood and broke resumes after a rest, without a gap',
    { ...streaming, resourceVersion: '12' },
    reset,
    {
      phase: 'resting',
      delayMs: 1000,
      next: { phase: 'connecting', resourceVersion: '12', gap: false, failures: 1, connects: 1 },
    },
  ],
  [
    'a barren end rests like a failure: no hot loop',
    streaming,
    { type: 'ended', barren: true },
    {
      phase: 'resting',
      delayMs: 1000,
      next: { phase: 'connecting', resourceVersion: '10', gap: false, failures: 1, connects: 1 },
    },
  ],
  [
    'a connect that failed keeps its gap',
    connecting,
    reset,
    { phase: 'resting', delayMs: 1000, next: { ...connecting, failures: 1 } },
  ],
  [
    'a version that could not be resumed is given up',
    { ...connecting, gap: false, failures: MAX_RESUMES - 1 },
    reset,
    { phase: 'resting', delayMs: 4000, next: { phase: 'listing', failures: MAX_RESUMES, connects: 0 } },
  ],
  [
    '410 when resuming lists anew at once, also after a failure',
    { ...connecting, gap: false, failures: 1 },
    gone,
    { phase: 'listing', failures: 2, connects: 0 },
  ],
  [
    '410 in a stream lists anew at once',
    { ...streaming, gap: false },
    gone,
    { phase: 'listing', failures: 1, connects: 1 },
  ],
  [
    'a 410 for a version that was just listed rests first: no hot loop',
    { ...connecting, failures: 1 },
    gone,
    { phase: 'resting', delayMs: 2000, next: { phase: 'listing', failures: 2, connects: 0 } },
  ],
  [
    'an API that is not served lists anew: it may come back empty',
    streaming,
    { type: 'failed', errorClass: 'unserved' },
    { phase: 'resting', delayMs: 1000, next: { phase: 'listing', failures: 1, connects: 1 } },
  ],
  [
    'a list that failed is tried again',
    listing,
    reset,
    { phase: 'resting', delayMs: 1000, next: { ...listing, failures: 1 } },
  ],
  [
    'Retry-After is honoured',
    listing,
    { type: 'failed', errorClass: 'throttled', retryAfterSeconds: 7 },
    { phase: 'resting', delayMs: 7000, next: { ...listing, failures: 1 } },
  ],
  [
    'delays stop growing at 30 s',
    { ...listing, failures: 40 },
    reset,
    { phase: 'resting', delayMs: 30_000, next: { ...listing, failures: 41 } },
  ],
  [
    'an API that is not served is looked for every 5 s',
    { ...listing, failures: 40 },
    { type: 'failed', errorClass: 'unserved' },
    { phase: 'resting', delayMs: 5_000, next: { ...listing, failures: 41 } },
  ],
  [
    'a failure after a stream that lived is the first of its row',
    { ...streaming, failures: 7, gap: false },
    { type: 'failed', errorClass: 'unavailable', lived: true },
    {
      phase: 'resting',
      delayMs: 1000,
      next: { phase: 'connecting', resourceVersion: '10', gap: false, failures: 1, connects: 1 },
    },
  ],
  ['goes on after the rest', { phase: 'resting', delayMs: 1, next: listing }, { type: 'rested' }, listing],
  ['stops while it rests', { phase: 'resting', delayMs: 1, next: listing }, { type: 'stop' }, { phase: 'stopped' }],
  ['stops while it streams', streaming, { type: 'stop' }, { phase: 'stopped' }],
  ['stays stopped', { phase: 'stopped' }, { type: 'event', resourceVersion: '9' }, { phase: 'stopped' }],
  ['ignores an event before it stands', connecting, { type: 'event', resourceVersion: '9' }, connecting],
];

describe('watch machine', () => {
  it.each(rows)('%s', (_name, state, input, expected) => {
    expect(nextState(state, input, MIDDLE)).toEqual(expected);
  });

  const inputs = fc.oneof(
    fc.record({ type: fc.constant('listed' as const), resourceVersion: fc.string({ minLength: 1 }) }),
    fc.constant({ type: 'opened' as const }),
    fc.record({ type: fc.constantFrom('event' as const, 'bookmark' as const), resourceVersion: fc.string() }),
    fc.record({ type: fc.constant('ended' as const), barren: fc.boolean() }),
    fc.record({ type: fc.constant('failed' as const), errorClass: fc.constantFrom(...errorClasses) }),
    fc.constant({ type: 'rested' as const }),
  );

  it('never reports a stream without a gap before one with a gap stood, whatever happens', () => {
    fc.assert(
      fc.property(
        fc.array(inputs, { maxLength: 60 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (all, chance) => {
          let state: WatchState = firstState;
          let caughtUp = false;
          const violations: WatchState[] = [];
          for (const input of all) {
            const before = state;
            state = nextState(state, input, chance);
            if (state.phase === 'listing' || (state.phase === 'resting' && state.next.phase === 'listing'))
              caughtUp = false;
            if (before.phase === 'connecting' && state.phase === 'streaming') {
              if (!before.gap && !caughtUp) violations.push(before);
              caughtUp = true;
            }
            if (state.phase === 'resting' && state.delayMs > 36_000) violations.push(state);
          }
          expect(violations).toEqual([]);
        },
      ),
    );
  });
});
