/** Time, injected. */
export interface Clock {
  /** Wall clock, epoch milliseconds. */
  now(): number;
  /** Monotonic clock, milliseconds from an arbitrary start. */
  monotonic(): number;
}

/** A moment by both clocks: ages are the older of the two answers (spec §8). */
export interface Instant {
  readonly wall: number;
  readonly mono: number;
}

export const instant = (clock: Clock): Instant => ({ wall: clock.now(), mono: clock.monotonic() });

/** Milliseconds since a moment, by whichever clock says more. */
export const ageMs = (clock: Clock, since: Instant): number =>
  Math.max(clock.now() - since.wall, clock.monotonic() - since.mono);

/** The machine's own clocks. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };
