import { toKbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import { Allowance } from './allowance.ts';
import type { ForwarderMetrics } from './metrics.ts';
import { PendingKeys, type Taken } from './pending.ts';
import { forwarderQueues, MAX_BATCH, type ForwarderQueue, type Outgoing, type Sink } from './sink.ts';
import type { Pace } from './watcher.ts';

export interface OutboxOptions {
  readonly cluster: string;
  readonly sink: Sink;
  readonly pace: Pace;
  readonly log: Logger;
  readonly metrics: ForwarderMetrics;
  /** For tests: {@link PendingKeys}' limit. */
  readonly maxPendingKeys?: number | undefined;
}

/** Batches of one queue under way at once. */
const LANES: Readonly<Record<ForwarderQueue, number>> = { control: 1, instances: 4, work: 1 };
/**
 * How long the keys of the control plane are gathered at a start, ms: a Connection's comes from its own list, its Secret's and
 * its provider's exports, one after the other, and each look at one costs several requests. Nothing new is held up.
 */
const GATHERING_MS = 1_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;

/**
 * Delivers pending keys, queue by queue, each on its own: a queue that is away holds up none of the others. What fails
 * stays pending and is tried again for as long as the process lives. A burst of instances is let out no faster than the queue,
 * which is everybody's, is worked off ({@link Allowance}).
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #pending: PendingKeys;
  readonly #abort = new AbortController();
  /** Ends the pauses that are there to send less, not those after a failure. */
  readonly #hurry = new AbortController();
  readonly #allowance = new Allowance();
  /** The lanes share one question. */
  #asking: Promise<void> | undefined;
  #backlogKnown = true;
  #wakers: (() => void)[] = [];
  #lanes: Promise<void>[] = [];
  #draining = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#pending = new PendingKeys(options.cluster, options.maxPendingKeys);
  }

  put(outgoing: Outgoing): void {
    this.#pending.put(outgoing, this.#options.pace.clock.monotonic());
    this.#wake();
  }

  size(queue?: ForwarderQueue): number {
    return this.#pending.size(queue);
  }

  /** Seconds that the oldest pending key has waited. */
  lagSeconds(): number {
    const oldest = this.#pending.oldest();
    return oldest === undefined ? 0 : (this.#options.pace.clock.monotonic() - oldest) / 1000;
  }

  start(): void {
    this.#lanes = forwarderQueues.flatMap((queue) => Array.from({ length: LANES[queue] }, () => this.#lane(queue)));
  }

  /**
   * Delivers what is pending and ends; gives up after the deadline. Answers with the number of keys that were not
   * delivered: the sweep of the next start covers them.
   */
  async flush(deadlineMs: number): Promise<number> {
    this.#draining = true;
    this.#hurry.abort();
    this.#wake();
    const timer = new AbortController();
    const delivered = Promise.all(this.#lanes);
    await Promise.race([delivered, this.#options.pace.sleep(deadlineMs, timer.signal)]);
    timer.abort();
    this.#abort.abort();
    await delivered;
    return this.#pending.size();
  }

  async #lane(queue: ForwarderQueue): Promise<void> {
    if (queue === 'control') await this.#options.pace.sleep(GATHERING_MS, this.#hurry.signal);
    let failures = 0;
    while (!this.#abort.signal.aborted) {
      const taken = this.#pending.take(queue, await this.#leave(queue));
      if (taken === undefined) {
        // Put while leave was waited for: whom it was to wake did not sleep yet.
        if (this.#pending.waiting(queue) > 0) continue;
        // Another lane's failure may bring work back, but that lane is then there to do it.
        if (this.#draining) return;
        await this.#somethingNew();
        continue;
      }
      failures = (await this.#deliver(taken)) ? 0 : failures + 1;
      if (failures > 0) await this.#rest(failures);
    }
  }

  /** How many keys may be sent now; waits until some may, 0 where none is pending. */
  async #leave(queue: ForwarderQueue): Promise<number> {
    if (queue !== 'instances') return MAX_BATCH;
    while (!this.#draining && !this.#abort.signal.aborted) {
      const wanted = Math.min(MAX_BATCH, this.#pending.waiting(queue));
      if (wanted === 0) return 0;
      const leave = this.#allowance.take(wanted, this.#options.pace.clock.monotonic());
      if (leave > 0) return leave;
      await (this.#asking ??= this.#ask().finally(() => (this.#asking = undefined)));
    }
    return MAX_BATCH;
  }

  async #ask(): Promise<void> {
    const { pace, metrics } = this.#options;
    const restMs = this.#allowance.told(await this.#backlog());
    if (restMs === 0) return;
    metrics.heldBack.inc();
    await pace.sleep(restMs, this.#hurry.signal);
  }

  /** Undefined where nobody can tell, which is said once: an older cell's webhook, a role without that permission. */
  async #backlog(): Promise<number | undefined> {
    const { sink, log } = this.#options;
    try {
      const backlog = await sink.backlog({ signal: AbortSignal.any([this.#abort.signal, this.#hurry.signal]) });
      this.#backlogKnown = true;
      return backlog;
    } catch (error) {
      if (this.#hurry.signal.aborted) return undefined;
      if (this.#backlogKnown) log.warn('bursts are not held back', { error: toKbindError(error).message });
      this.#backlogKnown = false;
      return undefined;
    }
  }

  /** True when the queue took any of it: it is there, and what it refused comes last. */
  async #deliver(taken: Taken): Promise<boolean> {
    const { sink, metrics, log } = this.#options;
    const { queue, batch } = taken;
    const failed = await sink.send(batch, { signal: this.#abort.signal }).catch((error: unknown) => {
      const { errorClass, message } = toKbindError(error);
      log.warn('queue unavailable', { queue, errorClass, error: message, pending: this.#pending.size() });
      return batch.map((_, position) => position);
    });
    this.#pending.settle(taken, failed);
    metrics.forwarded.inc({ queue }, batch.length - failed.length);
    metrics.sendFailures.inc({ queue }, failed.length);
    return failed.length < batch.length;
  }

  async #rest(failures: number): Promise<void> {
    const { sleep, chance } = this.#options.pace;
    const delay = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS);
    await sleep(delay * (0.8 + 0.4 * chance()), this.#abort.signal);
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => this.#wakers.push(resolve));
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const waker of wakers) waker();
  }
}
