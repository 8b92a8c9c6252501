/**
 * Keys that a forwarder may send without asking how much waits: a bucket of this many, filled again at
 * {@link UNASKED_PER_SECOND}. What people and controllers do one by one never asks.
 */
export const UNASKED = 50;
export const UNASKED_PER_SECOND = 10;
/**
 * Messages waiting at the instances' queue beyond which a burst holds its own back: twice what the five containers of the
 * default take in one turn, so that none of them ever has to wait for work.
 */
export const AMPLE = 100;
/** While more than that waits, it is asked again after this long, ms, doubling up to the last. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;

/**
 * How many keys of a burst may go to the queue that all clusters share. SQS gives out a FIFO queue's messages in the order of
 * their arrival and knows no share of a sender, so a thousand keys sent at once stand before everybody else's next one. Kept
 * back here, they coalesce, and the queue holds no more of them than keeps its functions busy. Pure but for its state.
 */
export class Allowance {
  #tokens = UNASKED;
  #filledAt: number | undefined;
  #credit = 0;
  #looks = 0;

  /** Takes leave for up to that many keys at a time, monotonic ms; none means that the backlog has to be asked for. */
  take(wanted: number, now: number): number {
    this.#fill(now);
    const unasked = Math.min(wanted, Math.floor(this.#tokens));
    this.#tokens -= unasked;
    const asked = Math.min(wanted - unasked, this.#credit);
    this.#credit -= asked;
    return unasked + asked;
  }

  /**
   * What waits at the queue, in messages, or undefined where nobody can tell: then nothing is held back. Answers with the
   * milliseconds after which leave may be taken again. However full the queue is, {@link UNASKED} keys go after the longest wait:
   * the number is approximate, and may lag behind for a minute (SQS).
   */
  told(backlog: number | undefined): number {
    const room = backlog === undefined ? AMPLE : AMPLE - backlog;
    if (room > 0) {
      this.#looks = 0;
      this.#credit = room;
      return 0;
    }
    const rest = Math.min(FIRST_LOOK_MS * 2 ** this.#looks, LAST_LOOK_MS);
    this.#looks += 1;
    if (rest === LAST_LOOK_MS) this.#credit = UNASKED;
    return rest;
  }

  #fill(now: number): void {
    const seconds = (now - (this.#filledAt ?? now)) / 1000;
    this.#filledAt = now;
    this.#tokens = Math.min(UNASKED, this.#tokens + seconds * UNASKED_PER_SECOND);
  }
}
