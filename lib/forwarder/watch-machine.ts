import type { ErrorClass } from '../model/errors.ts';

/**
 * One watch as a state machine of pure transitions. The state says what to do (list, connect, read, rest); the runner
 * (watcher.ts) does it and feeds back what happened.
 *
 *   listing ──listed──▶ connecting ──opened──▶ streaming ──ended──▶ connecting (no gap: from the last version seen)
 *      ▲                    │ 410, or 3 failures     │ 410
 *      └────────────────────┴────────────────────────┘          any failure rests first, with a delay that doubles
 */
export type WatchState =
  /** Ask for the list's resourceVersion: everything before it is unknown, hence a gap. */
  | { readonly phase: 'listing'; readonly failures: number; readonly connects: number }
  | Positioned<'connecting'>
  | Positioned<'streaming'>
  | Resting
  | { readonly phase: 'stopped' };

interface Positioned<Phase extends string> {
  readonly phase: Phase;
  /** Where to watch from: of the list, the last event or the last bookmark. */
  readonly resourceVersion: string;
  /** True until the first stream after a list stands: then, and only then, what was missed must be caught up. */
  readonly gap: boolean;
  /** Failures in a row. Only progress (an event, a bookmark, a stream that lived) ends a row. */
  readonly failures: number;
  /** Streams that stood so far: tells two sweeps with the same starting version apart. */
  readonly connects: number;
}

interface Resting {
  readonly phase: 'resting';
  readonly delayMs: number;
  readonly next: Exclude<WatchState, Resting | { readonly phase: 'stopped' }>;
}

export type WatchInput =
  | { readonly type: 'listed'; readonly resourceVersion: string }
  /** The server answered the watch with 200. */
  | { readonly type: 'opened' }
  | { readonly type: 'event'; readonly resourceVersion: string }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  /** The server ended the stream as servers do. `barren`: at once and without a word, which must not become a hot loop. */
  | { readonly type: 'ended'; readonly barren: boolean }
  | {
      readonly type: 'failed';
      readonly errorClass: ErrorClass;
      readonly retryAfterSeconds?: number | undefined;
      /** The stream had stood for a good while: the failure is the first of its row. */
      readonly lived?: boolean | undefined;
    }
  | { readonly type: 'rested' }
  | { readonly type: 'stop' };

export const firstState: WatchState = { phase: 'listing', failures: 0, connects: 0 };

/** Failed attempts to resume before the version counts as lost: a restored cluster may never know it again. */
export const MAX_RESUMES = 3;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** An API that is not served is usually about to be: its CRD was just installed, or is being replaced. */
const MAX_UNSERVED_DELAY_MS = 5_000;
/** The longest that a server's Retry-After is honoured. */
const MAX_RETRY_AFTER_MS = 900_000;
const JITTER = 0.2;

/**
 * The next state. `chance` in [0, 1) spreads delays. An input that does not fit the phase (a late event after a stop)
 * leaves the state alone.
 */
export function nextState(state: WatchState, input: WatchInput, chance: number): WatchState {
  if (state.phase === 'stopped' || input.type === 'stop') return { phase: 'stopped' };
  if (state.phase === 'resting') return input.type === 'rested' ? state.next : state;
  if (input.type === 'failed') return afterFailure(state, input, chance);
  if (state.phase === 'streaming') return whileStreaming(state, input, chance);
  if (state.phase === 'connecting') return whileConnecting(state, input, chance);
  return input.type === 'listed' ? position(state, input.resourceVersion) : state;
}

function whileConnecting(state: Positioned<'connecting'>, input: WatchInput, chance: number): WatchState {
  if (input.type === 'opened') return { ...state, phase: 'streaming', connects: state.connects + 1 };
  // A stream that ended before it stood.
  if (input.type === 'ended') return afterFailure(state, { type: 'failed', errorClass: 'unavailable' }, chance);
  return state;
}

function position(
  state: { readonly failures: number; readonly connects: number },
  resourceVersion: string,
): WatchState {
  const { failures, connects } = state;
  return { phase: 'connecting', resourceVersion, gap: true, failures, connects };
}

function whileStreaming(state: Positioned<'streaming'>, input: WatchInput, chance: number): WatchState {
  switch (input.type) {
    case 'event':
    case 'bookmark':
      return { ...state, resourceVersion: input.resourceVersion, gap: false, failures: 0 };
    case 'ended':
      if (input.barren) return afterFailure(state, { type: 'failed', errorClass: 'unavailable' }, chance);
      return { ...state, phase: 'connecting', gap: false, failures: 0 };
    default:
      return state;
  }
}

type Failed = Extract<WatchInput, { readonly type: 'failed' }>;
type Working = Exclude<WatchState, Resting | { readonly phase: 'stopped' }>;

function afterFailure(state: Working, input: Failed, chance: number): WatchState {
  const failures = (input.lived === true ? 0 : state.failures) + 1;
  const relist: Working = { phase: 'listing', failures, connects: state.connects };
  // A 410 for a version that was good once is ordinary; for one that was just listed it must not become a hot loop.
  if (input.errorClass === 'expired' && state.phase !== 'listing' && !state.gap) return relist;
  const delayMs = restMs(failures, input, chance);
  return { phase: 'resting', delayMs, next: mustRelist(state, input.errorClass) ? relist : resume(state, failures) };
}

function mustRelist(state: Working, errorClass: ErrorClass): boolean {
  if (state.phase === 'listing') return true;
  // An API that went and came back may have lost what it held.
  if (errorClass === 'expired' || errorClass === 'unserved' || errorClass === 'absent') return true;
  return state.phase === 'connecting' && state.failures + 1 >= MAX_RESUMES;
}

function resume(state: Working, failures: number): Working {
  if (state.phase === 'listing') return { ...state, failures };
  // A stream that stood has announced itself already: whoever heard it has been told to catch up.
  const gap = state.phase === 'connecting' && state.gap;
  return { ...state, phase: 'connecting', gap, failures };
}

/** 1 s doubling to 30 s, ± 20 %; a longer Retry-After wins. */
function restMs(failures: number, { errorClass, retryAfterSeconds }: Failed, chance: number): number {
  const most = errorClass === 'unserved' ? MAX_UNSERVED_DELAY_MS : MAX_DELAY_MS;
  const doubled = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), most);
  const spread = Math.round(doubled * (1 - JITTER + 2 * JITTER * chance));
  return Math.max(spread, Math.min((retryAfterSeconds ?? 0) * 1000, MAX_RETRY_AFTER_MS));
}
