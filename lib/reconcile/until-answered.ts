import { setTimeout as sleep } from 'node:timers/promises';
import { isError } from '../model/errors.ts';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

/** Asks until the server answers, or the invocation's time is up (then what was thrown last is thrown). */
export async function untilAnswered<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (!isError(error, 'unavailable', 'throttled') || signal.aborted) throw error;
      await sleep(pause, undefined, { signal }).catch(() => {
        throw error;
      });
    }
  }
}
