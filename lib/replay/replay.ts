import type { Clock } from '../model/clock.ts';
import { sendAll, type Queues } from '../queue/queues.ts';
import type { DeadQueues } from './dead-queues.ts';
import type { DeadEntry } from './entry.ts';
import { matches, type DeadFilter } from './filter.ts';
import { Hold, oldestFirst } from './hold.ts';
import { replayMessage } from './replay-message.ts';

/** What replaying needs from outside. */
export interface ReplayParts {
  readonly dead: DeadQueues;
  readonly queues: Queues;
  readonly clock: Clock;
  /** Waits that long, ms. */
  readonly pause: (ms: number) => Promise<void>;
}

export interface ReplayOptions {
  /** Names the replay in deduplication ids: going on with the same one within five minutes does nothing twice. */
  readonly id: string;
  readonly filter: DeadFilter;
  /** The most entries that are enqueued. */
  readonly max: number;
  readonly perSecond: number;
  /** Epoch ms after which no further entry is begun. */
  readonly deadline?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((report: ReplayReport) => void) | undefined;
}

export interface ReplayReport {
  readonly id: string;
  /** Entries that the filter means, as far as was seen. */
  readonly matched: number;
  /** Enqueued, and no longer dead. */
  readonly enqueued: number;
  /** Enqueued, and still dead as well: the queue did not let them go. The next replay does them again, which is harmless. */
  readonly notRemoved: number;
  /** Left where they are: nobody can read them, or they are of no use any more. */
  readonly unfit: number;
  /** Why it ended before the end. */
  readonly stopped?: 'maximum' | 'deadline' | 'aborted' | undefined;
}

/** Entries that are sent, and then removed, together. */
const CHUNK = 10;
const MIN_HOLD_SECONDS = 120;
/** SQS's own limit. */
const MAX_HOLD_SECONDS = 43_200;

/** How long what is received stays hidden: twice what the replay should take. */
export const holdSeconds = (max: number, perSecond: number): number =>
  Math.min(MAX_HOLD_SECONDS, MIN_HOLD_SECONDS + 2 * Math.ceil(max / perSecond));

/**
 * Puts dead entries back into their queues, the oldest first. Each is sent before it is removed, so that at every moment it
 * is dead, or enqueued, or both, and never neither: interrupted anywhere, it is simply run again.
 * @throws KbindError class `unavailable` when a queue does not answer; what was done is done
 */
export async function replayDead(parts: ReplayParts, options: ReplayOptions): Promise<ReplayReport> {
  const hold = new Hold(parts.dead, holdSeconds(options.max, options.perSecond));
  const replay = new Replay(parts, options, hold);
  try {
    // What stood behind an entry of its key comes to the fore when that one is gone.
    while (await replay.pass());
    return replay.report;
  } finally {
    await hold.release();
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

class Replay {
  readonly #parts: ReplayParts;
  readonly #options: ReplayOptions;
  readonly #hold: Hold;
  readonly #startedAt: number;
  readonly #counts: Mutable<ReplayReport>;

  constructor(parts: ReplayParts, options: ReplayOptions, hold: Hold) {
    this.#parts = parts;
    this.#options = options;
    this.#hold = hold;
    this.#startedAt = parts.clock.monotonic();
    this.#counts = { id: options.id, matched: 0, enqueued: 0, notRemoved: 0, unfit: 0 };
  }

  get report(): ReplayReport {
    return { ...this.#counts };
  }

  /** One look at the queues and what comes of it; false when there is nothing more to do. */
  async pass(): Promise<boolean> {
    const { filter } = this.#options;
    const now = this.#parts.clock.now();
    const found = (await this.#hold.take()).filter((entry) => matches(filter, entry, now));
    const fit = found.filter(({ request }) => request !== undefined);
    this.#counts.matched += found.length;
    this.#counts.unfit += found.length - fit.length;
    const entries = oldestFirst(fit);
    while (entries.length > 0) {
      this.#counts.stopped = this.#whyStop();
      if (this.#counts.stopped !== undefined) return false;
      const { max, perSecond } = this.#options;
      await this.#enqueue(entries.splice(0, Math.min(CHUNK, perSecond, max - this.#sent)));
    }
    return fit.length > 0;
  }

  get #sent(): number {
    return this.#counts.enqueued + this.#counts.notRemoved;
  }

  #whyStop(): ReplayReport['stopped'] {
    const { max, deadline, signal } = this.#options;
    if (this.#sent >= max) return 'maximum';
    if (signal?.aborted) return 'aborted';
    return deadline !== undefined && this.#parts.clock.now() >= deadline ? 'deadline' : undefined;
  }

  async #enqueue(entries: readonly DeadEntry[]): Promise<void> {
    const { id, onProgress } = this.#options;
    await this.#keepRate();
    const now = this.#parts.clock.now();
    const messages = entries.flatMap(({ request }) => (request === undefined ? [] : [replayMessage(request, id, now)]));
    await sendAll(this.#parts.queues, messages);
    const left = await this.#hold.remove(entries);
    this.#counts.enqueued += entries.length - left;
    this.#counts.notRemoved += left;
    onProgress?.(this.report);
  }

  /** Never more than the rate allows since the start. */
  async #keepRate(): Promise<void> {
    const { clock, pause } = this.#parts;
    const dueMs = (this.#sent / this.#options.perSecond) * 1000;
    const passedMs = clock.monotonic() - this.#startedAt;
    if (dueMs > passedMs) await pause(dueMs - passedMs);
  }
}
