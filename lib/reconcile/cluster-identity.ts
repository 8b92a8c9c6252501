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

  constructor(ask: () => Promise<string>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /** The cluster's UID, from an answer no older than that. Throws what the read throws. */
  read(maxAgeMs: number): Promise<string> {
    const last = this.#last;
    // An answer of this very millisecond may be older than the question: `0` always asks.
    if (last !== undefined && maxAgeMs > 0 && ageMs(this.#clock, last.askedAt) <= maxAgeMs) return last.uid;
    return this.#askNow();
  }

  #askNow(): Promise<string> {
    const answer: Answer = { askedAt: instant(this.#clock), uid: this.#ask() };
    this.#last = answer;
    answer.uid.catch(() => {
      if (this.#last === answer) this.#last = undefined;
    });
    return answer.uid;
  }
}
