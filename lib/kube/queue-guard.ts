import type { Dispatcher } from 'undici';
import { ageMs, instant, type Clock } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import type { Belief } from './types.ts';

/** How long a write may wait for a free connection before its `timeout` says too much, ms. */
const MAX_QUEUED_MS = 500;

/**
 * A write that rests on a belief says with its `timeout` how long that holds, from when it is received. One that had to
 * queue for a connection would say too much: it is not sent (class `stale`).
 */
export function beforeSending(dispatcher: Dispatcher, belief: Belief | undefined, clock: Clock): Dispatcher {
  if (belief === undefined) return dispatcher;
  const queuedAt = instant(clock);
  const isLate = (): boolean => ageMs(clock, queuedAt) > MAX_QUEUED_MS;
  return dispatcher.compose((dispatch) => (options, handler) => dispatch(options, startedInTime(handler, isLate)));
}

/** The same handler, but a request whose turn comes too late ends before a byte of it is written. */
function startedInTime(handler: Dispatcher.DispatchHandler, isLate: () => boolean): Dispatcher.DispatchHandler {
  return {
    onRequestStart(controller, context: object) {
      handler.onRequestStart?.(controller, context);
      if (isLate()) controller.abort(new KbindError('stale', 'a write waited too long for a connection'));
    },
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  };
}
