import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import type { Believed } from './world.ts';

/** How long an answer may serve others, ms (design.md, rule 9). */
export const CACHE_MS = 2_000;

interface Entry {
  readonly startedAt: Instant;
  readonly answer: Promise<unknown>;
}

/**
 * Answers by key (a kind, a blank, and what was asked of it), each with the moment before its request left. Reads under way
 * are joined like finished ones. A failure is told to everybody who joined and to nobody after them.
 */
export class ReadCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** Reads that had to leave after they were asked for: the one under way, and the one that leaves when it has ended. */
  readonly #under = new Map<string, Promise<unknown>>();
  readonly #next = new Map<string, Promise<Believed<unknown>>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The cached answer if it is young and `serves` says that it is late enough; else a read that leaves now. */
  async read<T>(key: string, serves: (startedAt: Instant) => boolean, send: () => Promise<T>): Promise<Believed<T>> {
    const cached = this.#entries.get(key);
    const entry =
      cached !== undefined && this.#young(cached) && serves(cached.startedAt) ? cached : this.#start(key, send);
    return { value: (await entry.answer) as T, sentAt: entry.startedAt };
  }

  /**
   * A read whose request leaves after this call, never a cached one. Whoever asks while such a read is under way shares the
   * next with all who do: it leaves when that one has ended, and so after each of their calls.
   */
  async readAfterNow<T>(key: string, send: () => Promise<T>): Promise<Believed<T>> {
    const shared = this.#next.get(key) ?? this.#queue(key, send);
    return (await shared) as Believed<T>;
  }

  #queue(key: string, send: () => Promise<unknown>): Promise<Believed<unknown>> {
    const under = this.#under.get(key);
    if (under === undefined) return this.#leave(key, send);
    const next = under.then(() => {
      this.#next.delete(key);
      return this.#leave(key, send);
    });
    this.#next.set(key, next);
    return next;
  }

  async #leave(key: string, send: () => Promise<unknown>): Promise<Believed<unknown>> {
    const { answer, startedAt } = this.#start(key, send);
    const ended = this.#whenEnded(key, answer);
    this.#under.set(key, ended);
    return { value: await answer, sentAt: startedAt };
  }

  /** Never rejects: a failure is told to those who asked, and holds up nobody who comes after them. */
  async #whenEnded(key: string, answer: Promise<unknown>): Promise<void> {
    await Promise.allSettled([answer]);
    this.#under.delete(key);
  }

  /** Whether a young and late enough answer is at hand. */
  has(key: string, serves: (startedAt: Instant) => boolean): boolean {
    const cached = this.#entries.get(key);
    return cached !== undefined && this.#young(cached) && serves(cached.startedAt);
  }

  /**
   * Nothing that was asked for before now serves anybody after now.
   * @param kind only answers whose key begins with it: a write to one kind makes no answer about another one old
   */
  forget(kind?: string): void {
    if (kind === undefined) return this.#entries.clear();
    for (const key of this.#entries.keys()) if (key.startsWith(`${kind} `)) this.#entries.delete(key);
  }

  #young(entry: Entry): boolean {
    return ageMs(this.#clock, entry.startedAt) <= CACHE_MS;
  }

  #start(key: string, send: () => Promise<unknown>): Entry {
    for (const [other, entry] of this.#entries) if (!this.#young(entry)) this.#entries.delete(other);
    const entry: Entry = { startedAt: instant(this.#clock), answer: send() };
    this.#entries.set(key, entry);
    const drop = (): void => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    entry.answer.catch(drop);
    return entry;
  }
}
