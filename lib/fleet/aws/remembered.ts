import { ageMs, instant, type Clock, type Instant } from '../../model/clock.ts';

/** What is asked of AWS rarely and used often. Failures are not remembered; those who come together share one question. */
export class Remembered<T> {
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  readonly #minAgeMs: number;
  readonly #known = new Map<string, { readonly at: Instant; readonly value: Promise<T> }>();

  /** @param minAgeMs what is younger is not forgotten: a burst of refusals asks once */
  constructor(clock: Clock, ages: { readonly maxAgeMs: number; readonly minAgeMs: number }) {
    this.#clock = clock;
    this.#maxAgeMs = ages.maxAgeMs;
    this.#minAgeMs = ages.minAgeMs;
  }

  get(key: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#known.get(key);
    if (known !== undefined && ageMs(this.#clock, known.at) < this.#maxAgeMs) return known.value;
    this.#dropOld();
    const fresh = { at: instant(this.#clock), value: ask() };
    this.#known.set(key, fresh);
    fresh.value.catch(() => {
      if (this.#known.get(key) === fresh) this.#known.delete(key);
    });
    return fresh.value;
  }

  /** What nobody may use any more is not kept either: it may be a credential, of a cluster that is gone. */
  #dropOld(): void {
    for (const [key, { at }] of this.#known) if (ageMs(this.#clock, at) >= this.#maxAgeMs) this.#known.delete(key);
  }

  forget(key: string): void {
    const known = this.#known.get(key);
    if (known !== undefined && ageMs(this.#clock, known.at) >= this.#minAgeMs) this.#known.delete(key);
  }
}
