import { isError } from '../model/errors.ts';
import type { Outcome } from '../model/outcome.ts';
import type { World } from './world.ts';

/** How often a reconcile starts over on the spot before the guard's failure becomes a requeue (design.md, Writes). */
const MAX_STARTS = 3;

/**
 * Runs a reconcile from its first read, and again when a guard failed or a belief ran out: both mean that the world moved.
 * After {@link MAX_STARTS} the last error is thrown, which the retry policy turns into a requeue.
 */
export async function withReadAgain(world: World, reconcile: () => Promise<Outcome>): Promise<Outcome> {
  for (let start = 1; ; start += 1) {
    try {
      return await reconcile();
    } catch (error) {
      if (!isError(error, 'conflict', 'stale') || start === MAX_STARTS || world.signal.aborted) throw error;
      world.trace.step('read again', error.message);
    }
  }
}
