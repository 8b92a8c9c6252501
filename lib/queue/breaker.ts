import { isFillingCache, type KbindError } from '../model/errors.ts';
import type { Clock } from '../model/clock.ts';

/**
 * Leaves a cluster that answers 429 or nothing alone for a while, per container (design.md, rule 7). After the pause one
 * piece of work is let through as a probe; the others wait for what it meets.
 */
export interface Breaker {
  /** Seconds for which this cluster is to be left alone; 0 lets the caller through, as the probe where there was a pause. */
  enter(cluster: string): number;
  /** It answered. */
  succeeded(cluster: string): void;
  /** What went wrong there: 429 or no answer pauses it; any other answer is one; what has no status says nothing. */
  failed(cluster: string, error: KbindError): void;
}

const FIRST_PAUSE_SECONDS = 1;
const MAX_PAUSE_SECONDS = 30;
/** Of a Retry-After no more than this is taken over for everybody: a key honours the rest on its own. */
const MAX_RETRY_AFTER_SECONDS = 60;
/** Answers that a healthy server may give now and then, but no answer and these say that it is not well. */
const UNWELL_STATUS = new Set([429, 502, 503, 504]);

interface Pause {
  readonly seconds: number;
  /** Monotonic ms. */
  readonly until: number;
  /** Somebody was let through after it. */
  readonly probing: boolean;
}

function isUnwell(error: KbindError): boolean {
  const { errorClass, details } = error;
  // Everybody else's objects are served.
  if (isFillingCache(error)) return false;
  if (errorClass === 'throttled') return true;
  return errorClass === 'unavailable' && (details.status === undefined || UNWELL_STATUS.has(details.status));
}

/** Of many that fail together only the first lengthens the pause; a probe that fails doubles it. */
function nextSeconds(before: Pause | undefined, retryAfterSeconds = 0): number {
  const asked = Math.min(retryAfterSeconds, MAX_RETRY_AFTER_SECONDS);
  if (before === undefined) return Math.max(FIRST_PAUSE_SECONDS, asked);
  return Math.max(before.probing ? Math.min(2 * before.seconds, MAX_PAUSE_SECONDS) : before.seconds, asked);
}

export function createBreaker(clock: Clock): Breaker {
  const pauses = new Map<string, Pause>();

  return {
    enter(cluster) {
      const pause = pauses.get(cluster);
      if (pause === undefined) return 0;
      const now = clock.monotonic();
      if (pause.until > now) return (pause.until - now) / 1000;
      // This caller is the probe: whoever comes while it is under way waits another pause.
      pauses.set(cluster, { seconds: pause.seconds, until: now + pause.seconds * 1000, probing: true });
      return 0;
    },
    succeeded(cluster) {
      pauses.delete(cluster);
    },
    failed(cluster, error) {
      if (!isUnwell(error)) {
        if (error.details.status !== undefined) pauses.delete(cluster);
        return;
      }
      const before = pauses.get(cluster);
      const seconds = nextSeconds(before, error.details.retryAfterSeconds);
      const until = Math.max(before?.until ?? 0, clock.monotonic() + seconds * 1000);
      pauses.set(cluster, { seconds, until, probing: false });
    },
  };
}
