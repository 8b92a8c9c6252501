import type { Wait } from '../model/outcome.ts';

/** How long until the next look. Pure; all in seconds (design.md, rules 4 and 5). */

/** The longest delay that SQS holds a message for. */
export const MAX_DELAY_SECONDS = 900;
/** Failed attempts after which a chain ends in a dead letter. */
export const MAX_ATTEMPTS = 10;
const FIRST_RETRY_SECONDS = 1;
const MAX_RETRY_SECONDS = 300;
/** Part of a retry's delay that chance decides, either way: keys that failed together do not come back together. */
const JITTER = 0.2;
/** Shorter delays do not collapse: a bucket must be at most half the delay, and a whole second. */
const SHORTEST_BUCKETED_DELAY = 2;

/** The delay of a wait: twice the last one, within the outcome's bounds. */
export function waitSeconds(wait: Pick<Wait, 'firstSeconds' | 'maxSeconds'>, waited = 0): number {
  return Math.min(Math.max(2 * waited, wait.firstSeconds), wait.maxSeconds);
}

/**
 * The delay before the retry that follows a failure.
 * @param attempt failed attempts before that failure
 * @param chance in [0, 1)
 * @param retryAfterSeconds what the server asked for: honoured up to 900 s, and never shortened by it
 */
export function retrySeconds(attempt: number, chance: number, retryAfterSeconds = 0): number {
  const doubled = Math.min(FIRST_RETRY_SECONDS * 2 ** attempt, MAX_RETRY_SECONDS);
  const spread = doubled * (1 + JITTER * (2 * chance - 1));
  return Math.max(spread, Math.min(retryAfterSeconds, MAX_DELAY_SECONDS));
}

/**
 * The width of the bucket in which chains of one key collapse: the largest power of two that is at most half the delay.
 * A wider one could drop a requeue that was asked for after the kept one had run. Undefined: no collapsing.
 */
export function bucketSeconds(delaySeconds: number): number | undefined {
  if (delaySeconds < SHORTEST_BUCKETED_DELAY) return undefined;
  return 2 ** Math.floor(Math.log2(delaySeconds / 2));
}
