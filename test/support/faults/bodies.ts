import { watchFaults, type Faults } from './plan.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A failure of the network, as undici and Node report it. */
export const networkFailure = (code: string): Error => Object.assign(new Error(`injected ${code}`), { code });

/** The body of an answer that ends. */
export class Body {
  #bytes: Buffer;
  #broken = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Only the first half arrives. */
  cut(): void {
    this.#bytes = this.#bytes.subarray(0, this.#bytes.length >> 1);
    this.#broken = true;
  }

  on(): this {
    return this;
  }

  destroy(): this {
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    yield this.#bytes;
    if (this.#broken) throw networkFailure('ECONNRESET');
  }
}

export interface StreamOptions {
  readonly actor: { readonly alive: boolean };
  readonly idleMs: number;
  readonly signal: AbortSignal | undefined;
}

const LATENCY_MS = 25;
const LONGEST_BEFORE_CUT_MS = 60_000;
/** How late a watch may be, from an API server that lags behind the others. */
const LEAST_LATE_MS = 60_000;
export const MOST_LATE_MS = 300_000;
/** How often an API server says where it is. */
const BOOKMARK_MS = 60_000;

/** The body of a watch: chunks arrive in order, a little late or minutes, or stop arriving without a word. */
export class StreamBody {
  readonly #time: VirtualTime;
  readonly #faults: Faults;
  readonly #options: StreamOptions;
  readonly #chunks: Buffer[] = [];
  #failure: Error | undefined;
  #ended = false;
  #silent = false;
  #lateMs = 0;
  /** The last bookmark that has arrived. */
  #bookmark: Buffer | undefined;
  #wake: (() => void) | undefined;
  #cancelIdle: (() => void) | undefined;
  #lastArrival = 0;
  #closers: (() => void)[] = [];

  constructor(time: VirtualTime, faults: Faults, options: StreamOptions) {
    this.#time = time;
    this.#faults = faults;
    this.#options = options;
    const aborted = (): void => this.#fail(networkFailure('UND_ERR_ABORTED'));
    options.signal?.addEventListener('abort', aborted, { once: true });
    // A signal that is listened to outlives everybody else.
    this.onClose(() => options.signal?.removeEventListener('abort', aborted));
    this.#heard();
    const fault = faults.draw(watchFaults, 4);
    if (fault !== undefined) time.after(faults.random.below(LONGEST_BEFORE_CUT_MS), () => this.#goWrong(fault));
  }

  onClose(closer: () => void): void {
    this.#closers.push(closer);
  }

  /** The connection is reset. */
  reset(): void {
    this.#fail(networkFailure('ECONNRESET'));
  }

  /** Nothing more arrives, and nothing says so. */
  silence(): void {
    this.#silent = true;
  }

  push(chunk: Buffer): void {
    this.#arrive(() => {
      if (chunk.includes('"BOOKMARK"')) this.#bookmark = chunk;
      this.#deliver(chunk);
    });
  }

  end(): void {
    this.#arrive(() => (this.#ended = true));
  }

  on(): this {
    return this;
  }

  destroy(): this {
    this.#close();
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        continue;
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #deliver(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#heard();
  }

  #arrive(then: () => void): void {
    const lateMs = this.#faults.active ? this.#lateMs : 0;
    const at = Math.max(this.#lastArrival, this.#time.now() + 1 + this.#faults.random.below(LATENCY_MS) + lateMs);
    this.#lastArrival = at;
    this.#time.after(at - this.#time.now(), () => {
      if (this.#silent || !this.#options.actor.alive) return;
      then();
      this.#wake?.();
    });
  }

  #goWrong(fault: (typeof watchFaults)[number]): void {
    if (this.#ended || this.#failure !== undefined) return;
    this.#faults.count(fault);
    if (fault === 'silent-watch') this.#silent = true;
    else if (fault === 'late-watch') this.#fallBehind();
    else this.#fail(networkFailure('ECONNRESET'));
  }

  /** The server that answers lags minutes behind, and goes on saying where it is: the stream never counts as dead. */
  #fallBehind(): void {
    this.#lateMs = LEAST_LATE_MS + this.#faults.random.below(MOST_LATE_MS - LEAST_LATE_MS);
    const repeat = (): void => {
      if (this.#ended || this.#failure !== undefined || this.#silent || !this.#options.actor.alive) return;
      if (this.#bookmark !== undefined) {
        this.#deliver(this.#bookmark);
        this.#wake?.();
      }
      cancel = this.#time.after(BOOKMARK_MS, repeat);
    };
    let cancel = this.#time.after(BOOKMARK_MS, repeat);
    this.onClose(() => cancel());
  }

  #heard(): void {
    this.#cancelIdle?.();
    const { idleMs } = this.#options;
    if (idleMs > 0)
      this.#cancelIdle = this.#time.after(idleMs, () => this.#fail(networkFailure('UND_ERR_BODY_TIMEOUT')));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#close();
    if (this.#options.actor.alive) this.#wake?.();
  }

  #close(): void {
    this.#cancelIdle?.();
    const closers = this.#closers;
    this.#closers = [];
    for (const closer of closers) closer();
  }
}
