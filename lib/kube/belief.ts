import { BELIEF_MARGIN_MS, BELIEF_MS } from '../model/belief.ts';
import { ageMs, type Clock } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import type { Belief } from './types.ts';

/**
 * The `timeout` that a write carries: what is left of the 5 s for which the reads under it are believed (spec §8).
 * Throws class `stale` with less than 1 s left; undefined where nothing is rested on.
 */
export function timeoutFor(belief: Belief | undefined, clock: Clock): number | undefined {
  if (belief === undefined) return undefined;
  const left = BELIEF_MS - ageMs(clock, belief.sentAt);
  if (left < BELIEF_MARGIN_MS) {
    throw new KbindError('stale', 'what was read of Connections and bindings is too old to write on');
  }
  return Math.floor(Math.min(left, BELIEF_MS));
}
