import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Clock } from '../../../lib/model/clock.ts';
import type { Random } from './random.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

const earlier = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
const START = Date.UTC(2030, 0, 1);
/** Steps at one moment after which something turns in a circle. */
const MAX_STEPS_AT_ONCE = 200_000;

/** A time that passes only when nothing else happens: 10 minutes cost nothing, and the same seed does the same. */
export class VirtualTime {
  readonly #heap: Timer[] = [];
  #now = START;
  #order = 0;
  /** Events that were run. */
  steps = 0;

  now(): number {
    return this.#now;
  }

  /** Milliseconds since the beginning. */
  elapsed(): number {
    return this.#now - START;
  }

  /** A clock that is wrong by that many milliseconds. */
  clock(skewMs = 0): Clock {
    return { now: () => Math.floor(this.#now + skewMs), monotonic: () => this.#now - START };
  }

  after(ms: number, run: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, ms), order: (this.#order += 1), run };
    this.#push(timer);
    return () => (timer.run = undefined);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const cancel = this.after(ms, () => resolve());
      signal?.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }

  /** Lets time pass up to that moment (ms since the beginning), or until `done` says so. False: time was up. */
  async runUntil(elapsed: number, done: () => boolean = () => false): Promise<boolean> {
    let atOnce = 0;
    for (;;) {
      await settled();
      if (done()) return true;
      const next = this.#heap[0];
      if (next === undefined || next.at > START + elapsed) {
        this.#now = Math.max(this.#now, START + elapsed);
        return false;
      }
      this.#pop();
      if (next.run === undefined) continue;
      atOnce = next.at > this.#now ? 0 : atOnce + 1;
      if (atOnce > MAX_STEPS_AT_ONCE) throw new Error('time does not pass: something turns in a circle');
      this.#now = Math.max(this.#now, next.at);
      this.steps += 1;
      next.run();
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.push(timer) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Timer;
      if (!earlier(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Timer;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && earlier(heap[child + 1] as Timer, heap[child] as Timer)) child += 1;
      if (!earlier(heap[child] as Timer, last)) break;
      heap[index] = heap[child] as Timer;
      index = child;
    }
    heap[index] = last;
  }
}

const realTimeout = AbortSignal.timeout.bind(AbortSignal);
const immediate = globalThis.setImmediate;
/** Everything that promises, ticks and immediates have to do is done. */
const settled = (): Promise<void> => new Promise((resolve) => void immediate(resolve));

/**
 * Puts virtual timers and seeded chance in place of the process's own until the result is disposed of: what the product
 * cannot be given (a pause, a deadline, a uid) obeys the run all the same.
 */
export function takeOverProcess(time: VirtualTime, random: Random): Disposable {
  const saved = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    timeout: (ms: number) => realTimeout(ms),
    random: Math.random,
    sleep: timers.setTimeout,
    randomUUID: crypto.randomUUID,
    randomBytes: crypto.randomBytes,
  };
  const handle = (cancel: () => void): unknown => {
    const timer = { cancel, unref: () => timer, ref: () => timer, hasRef: () => true, [Symbol.dispose]: cancel };
    return timer;
  };
  const clear = (timer: unknown): void => (timer as { cancel?: () => void } | undefined)?.cancel?.();
  const later = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): unknown =>
    handle(time.after(ms, () => run(...args)));
  const repeat = (run: () => void, ms = 0): unknown => {
    let stopped = false;
    const again = (): void => {
      time.after(ms, () => {
        if (stopped) return;
        run();
        again();
      });
    };
    again();
    return handle(() => (stopped = true));
  };
  const bytes = (size: number): Buffer => {
    const filled = Buffer.alloc(Math.ceil(size / 4) * 4);
    for (let at = 0; at < size; at += 4) filled.writeUInt32LE(random.below(2 ** 32), at);
    return filled.subarray(0, size);
  };
  const uuid = (): string => {
    const hex = bytes(16).toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
      '-',
    );
  };
  Object.assign(globalThis, { setTimeout: later, clearTimeout: clear, setInterval: repeat, clearInterval: clear });
  Object.assign(AbortSignal, {
    timeout: (ms: number) => {
      const controller = new AbortController();
      time.after(ms, () => controller.abort(new DOMException('timed out', 'TimeoutError')));
      return controller.signal;
    },
  });
  Math.random = () => random.next();
  Object.assign(timers, { setTimeout: sleeper(time) });
  Object.assign(crypto, { randomUUID: uuid, randomBytes: bytes });
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      const { timeout, random: chance, sleep, randomUUID, randomBytes, ...globals } = saved;
      Object.assign(globalThis, globals);
      Object.assign(AbortSignal, { timeout });
      Math.random = chance;
      Object.assign(timers, { setTimeout: sleep });
      Object.assign(crypto, { randomUUID, randomBytes });
      syncBuiltinESMExports();
    },
  };
}

const sleeper =
  (time: VirtualTime) =>
  (ms = 0, value?: unknown, { signal }: { readonly signal?: AbortSignal } = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const stop = (): void => reject(new DOMException('aborted', 'AbortError'));
      if (signal?.aborted === true) return stop();
      const cancel = time.after(ms, () => {
        signal?.removeEventListener('abort', aborted);
        resolve(value);
      });
      const aborted = (): void => {
        cancel();
        stop();
      };
      signal?.addEventListener('abort', aborted, { once: true });
    });
