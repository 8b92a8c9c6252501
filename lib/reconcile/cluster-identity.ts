import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';

interface Answer {
  readonly askedAt: Instant;
  readonly uid: Promise<string>;
}

/**
 * Which cluster is behind one client, as last asked. An answer's age counts from when its question left; questions under
 * way are joined where they are young enough; a failed one is forgotten.
 */
export class ClusterIdentity {
  readonly #ask: () => Promise<string>;
  readonly #clock: Clock;
  #last: Answer | undefined;
  /** The question under way, and the one that leaves when it has been answered. */
  #under: Promise<unknown> | undefined;
  #next: Promise<string> | undefined;

  constructor(ask: () => Promise<string>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /**
   * The cluster's UID, from an answer no older than that. Throws what the read throws. `0` asks after this call: whoever does
   * so while a question is under way shares the next one.
   */
  read(maxAgeMs: number): Promise<string> {
    const last = this.#last;
    // An answer of this very millisecond may be older than the question: `0` always asks.
    if (last !== undefined && maxAgeMs > 0 && ageMs(this.#clock, last.askedAt) <= maxAgeMs) return last.uid;
    if (this.#under === undefined || maxAgeMs > 0) return this.#askNow();
    this.#next ??= this.#under.then(() => {
      this.#next = undefined;
      return this.#askNow();
    });
    return this.#next;
  }

  #askNow(): Promise<string> {
    const answer: Answer = { askedAt: instant(this.#clock), uid: this.#ask() };
    this.#last = answer;
    const under = this.#whenAnswered(answer);
    this.#under = under;
    void under.finally(() => {
      if (this.#under === under) this.#under = undefined;
    });
    return answer.uid;
  }

  /** Never rejects: a failure is told to those who asked, and forgotten. */
  async #whenAnswered(answer: Answer): Promise<void> {
    const [{ status }] = await Promise.allSettled([answer.uid]);
    if (status === 'rejected' && this.#last === answer) this.#last = undefined;
  }
}
