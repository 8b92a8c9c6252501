import { deadQueueNames, type DeadMessage, type DeadQueueName, type DeadQueues } from './dead-queues.ts';
import { readEntry, type DeadEntry } from './entry.ts';
import { matches, type DeadFilter } from './filter.ts';

/** Entries that one look may hold at a time: memory, and what SQS lets be in flight of a queue. */
export const MAX_HELD = 10_000;

/**
 * Dead messages that were received and are hidden from everybody else meanwhile. Whatever happens, each of them is still in
 * its queue until it is removed: who dies holding them only makes others wait for the visibility timeout.
 */
export class Hold {
  readonly #queues: DeadQueues;
  readonly #visibilitySeconds: number;
  readonly #held = new Map<string, DeadMessage>();
  /** More was there than may be held. */
  full = false;

  constructor(queues: DeadQueues, visibilitySeconds: number) {
    this.#queues = queues;
    this.#visibilitySeconds = visibilitySeconds;
  }

  /** Receives what can be had now and was not held yet. */
  async take(onProgress?: (read: number) => void): Promise<DeadEntry[]> {
    const found = await Promise.all(deadQueueNames.map((queue) => this.#drain(queue, onProgress)));
    return found.flat();
  }

  async #drain(queue: DeadQueueName, onProgress: ((read: number) => void) | undefined): Promise<DeadEntry[]> {
    const entries: DeadEntry[] = [];
    for (;;) {
      if (this.#held.size >= MAX_HELD) {
        this.full = true;
        return entries;
      }
      const messages = await this.#queues.receive(queue, this.#visibilitySeconds);
      const fresh = messages.filter(({ id }) => !this.#held.has(id));
      for (const message of messages) this.#held.set(message.id, message);
      entries.push(...fresh.map(readEntry));
      onProgress?.(this.#held.size);
      // Nothing new: either the queue is empty, or what comes is what was held for too long.
      if (fresh.length === 0) return entries;
    }
  }

  /** Takes entries out for good; answers with the number of those that stayed dead. */
  async remove(entries: readonly DeadEntry[]): Promise<number> {
    const messages = entries.map(({ message }) => this.#held.get(message.id) ?? message);
    const left = new Set((await this.#queues.remove(messages)).map(({ id }) => id));
    for (const { id } of messages) if (!left.has(id)) this.#held.delete(id);
    return left.size;
  }

  /** Gives everything back that is held. */
  async release(): Promise<void> {
    const messages = [...this.#held.values()];
    this.#held.clear();
    await this.#queues.release(messages);
  }
}

/** The oldest first: by when they failed first. */
export const oldestFirst = (entries: readonly DeadEntry[]): DeadEntry[] =>
  entries.toSorted((a, b) => a.firstFailure - b.firstFailure || a.message.sentAt - b.message.sentAt);

export interface Listing {
  /** Those that match, oldest first. */
  readonly entries: readonly DeadEntry[];
  /** Seen in all, matching or not. */
  readonly seen: number;
  /** Behind another entry of their key, or beyond what may be held: not seen this time. */
  readonly hidden: number;
}

/** How long a listing hides what it reads, seconds: a listing that dies makes others wait that long. */
const LISTING_SECONDS = 60;

/** Reads all dead entries and gives them back. */
export async function listDead(
  queues: DeadQueues,
  filter: DeadFilter,
  { nowMs, onProgress }: { readonly nowMs: number; readonly onProgress?: ((read: number) => void) | undefined },
): Promise<Listing> {
  const hold = new Hold(queues, LISTING_SECONDS);
  try {
    const entries = await hold.take(onProgress);
    const counts = await Promise.all(deadQueueNames.map((queue) => queues.count(queue)));
    const total = counts.reduce((sum, count) => sum + count, 0);
    return {
      entries: oldestFirst(entries.filter((entry) => matches(filter, entry, nowMs))),
      seen: entries.length,
      hidden: Math.max(0, total - entries.length),
    };
  } finally {
    await hold.release();
  }
}
