import type { MetaObject, ResourceRef } from '../model/api.ts';
import type { Clock } from '../model/clock.ts';
import { toKbindError, type KbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import type { KubeClient, WatchEvent } from '../kube/types.ts';
import type { ForwarderMetrics } from './metrics.ts';
import { firstState, nextState, type WatchInput, type WatchState } from './watch-machine.ts';

/** Sleeps until the time is over or the signal aborts; never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Time and chance, injected. */
export interface Pace {
  readonly clock: Clock;
  readonly sleep: Sleep;
  /** A number in [0, 1). */
  readonly chance: () => number;
}

/** A stream that stands: from where, and whether what came before it is known. */
export interface Standing {
  /** The version that the stream started from. */
  readonly resourceVersion: string;
  /** True when changes may have been missed: at the first start, and after every list. */
  readonly gap: boolean;
  /** Counts the streams of this watch that stood. */
  readonly connects: number;
}

export type ObjectEvent = Extract<WatchEvent, { readonly object: MetaObject }>;

/** What one watch is about, and who listens. Listeners must not throw and do not wait: they only note down keys. */
export interface WatchTask {
  readonly id: string;
  readonly type: string;
  readonly ref: ResourceRef;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly metadataOnly: boolean;
  /** The client to use for the next request; throws where the cluster's identity is not what it must be. */
  client(signal: AbortSignal): Promise<KubeClient>;
  /** Reads what a gap makes necessary and answers with the version to watch from. Must do nothing once the signal aborted. */
  list(client: KubeClient, signal: AbortSignal): Promise<string>;
  stands(standing: Standing): void;
  /** It stood, and does not any more. */
  lost(): void;
  event(event: ObjectEvent): void;
  failed(error: KbindError): void;
}

/**
 * Without a byte for this long a stream counts as dead. Current API servers send a bookmark within two minutes, old ones (1.20)
 * none on a quiet collection: silence is therefore an ordinary end, not a failure.
 */
export const IDLE_MS = 150_000;
/** Timers may fire a little early. */
const IDLE_TOLERANCE_MS = 2_000;
/** A stream that stood this long was no failed attempt. */
const LIVED_MS = 30_000;
const MIN_STREAM_SECONDS = 300;
const MAX_STREAM_SECONDS = 600;
/** A stream that ends sooner than this without an event is no ordinary end. */
const BARREN_MS = 1_000;

/** Runs the state machine of one watch on a client until it is stopped. Keeps a resourceVersion and counters, no objects. */
export class Watcher {
  readonly #task: WatchTask;
  readonly #pace: Pace;
  readonly #log: Logger;
  readonly #metrics: ForwarderMetrics;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  #state: WatchState = firstState;
  /** Monotonic ms: when the last stream stood, and when it was last heard of. */
  #opened = 0;
  #heard = 0;

  constructor(task: WatchTask, pace: Pace, log: Logger, metrics: ForwarderMetrics) {
    this.#task = task;
    this.#pace = pace;
    this.#log = log.child({ watch: task.id });
    this.#metrics = metrics;
    this.#running = this.#run();
  }

  get phase(): WatchState['phase'] {
    return this.#state.phase;
  }

  /** Stands, or is between two streams of which the first ended as usual. */
  get healthy(): boolean {
    const state = this.#state;
    return state.phase === 'streaming' || (state.phase === 'connecting' && state.connects > 0 && state.failures === 0);
  }

  /** From the moment of the call no listener is called any more; resolves when the last request has ended. */
  async stop(): Promise<void> {
    this.#feed({ type: 'stop' });
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Lets the constructor return before the first listener is called.
    await Promise.resolve();
    for (let state = this.#state; state.phase !== 'stopped'; state = this.#state) {
      if (state.phase === 'resting') await this.#rest(state.delayMs);
      else await this.#attempt(() => (state.phase === 'listing' ? this.#list() : this.#stream()));
    }
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (this.#abort.signal.aborted) return;
      this.#failed(toKbindError(thrown));
    }
  }

  #failed(error: KbindError): void {
    const now = this.#pace.clock.monotonic();
    const streaming = this.#state.phase === 'streaming';
    const { errorClass, details } = error;
    if (streaming && errorClass === 'unavailable' && now - this.#heard >= IDLE_MS - IDLE_TOLERANCE_MS) {
      this.#metrics.reconnects.inc({ source: this.#task.type, cause: 'idle' });
      this.#feed({ type: 'ended', barren: false });
      return;
    }
    this.#task.failed(error);
    this.#metrics.reconnects.inc({ source: this.#task.type, cause: errorClass });
    const lived = streaming && now - this.#opened >= LIVED_MS;
    this.#feed({ type: 'failed', errorClass, retryAfterSeconds: details.retryAfterSeconds, lived });
    this.#report(error);
  }

  async #list(): Promise<void> {
    const { signal } = this.#abort;
    const client = await this.#task.client(signal);
    const resourceVersion = await this.#task.list(client, signal);
    this.#feed({ type: 'listed', resourceVersion });
  }

  async #stream(): Promise<void> {
    const client = await this.#task.client(this.#abort.signal);
    let heard = false;
    for await (const event of this.#open(client)) {
      if (this.#abort.signal.aborted) return;
      heard = true;
      this.#heard = this.#pace.clock.monotonic();
      this.#take(event);
    }
    if (this.#abort.signal.aborted) return;
    const barren = !heard && this.#pace.clock.monotonic() - this.#opened < BARREN_MS;
    this.#metrics.reconnects.inc({ source: this.#task.type, cause: 'ended' });
    this.#feed({ type: 'ended', barren });
  }

  #open(client: KubeClient): AsyncIterable<WatchEvent> {
    const { ref, namespace, labelSelector, fieldSelector, metadataOnly } = this.#task;
    return client.watch(ref, {
      namespace,
      labelSelector,
      fieldSelector,
      metadataOnly,
      resourceVersion: this.#position(),
      signal: this.#abort.signal,
      timeoutSeconds: Math.round(MIN_STREAM_SECONDS + this.#pace.chance() * (MAX_STREAM_SECONDS - MIN_STREAM_SECONDS)),
      idleMs: IDLE_MS,
      onOpen: () => {
        this.#opened = this.#pace.clock.monotonic();
        this.#heard = this.#opened;
        this.#feed({ type: 'opened' });
      },
    });
  }

  #take(event: WatchEvent): void {
    if (event.type === 'BOOKMARK') {
      this.#feed({ type: 'bookmark', resourceVersion: event.resourceVersion });
      return;
    }
    const { resourceVersion } = event.object.metadata;
    if (resourceVersion === this.#position() && event.type !== 'DELETED') return;
    this.#metrics.events.inc({ source: this.#task.type, type: event.type });
    this.#task.event(event);
    // Seen only now: a listener that failed gets the event again.
    this.#feed({ type: 'event', resourceVersion });
  }

  #position(): string {
    return 'resourceVersion' in this.#state ? this.#state.resourceVersion : '';
  }

  async #rest(delayMs: number): Promise<void> {
    await this.#pace.sleep(delayMs, this.#abort.signal);
    this.#feed({ type: 'rested' });
  }

  /** The one place where the state changes, and where listeners hear of it. */
  #feed(input: WatchInput): void {
    const before = this.#state;
    this.#state = nextState(before, input, this.#pace.chance());
    const { phase } = this.#state;
    if (before.phase === 'connecting' && phase === 'streaming') {
      const { resourceVersion, gap } = before;
      this.#task.stands({ resourceVersion, gap, connects: before.connects + 1 });
    }
    if (before.phase === 'streaming' && phase !== 'streaming') this.#task.lost();
  }

  /** The first failure of a row is news, the others are not: no log stream while a cluster is away. */
  #report(error: KbindError): void {
    const state = this.#state;
    const failures = state.phase === 'resting' ? state.next.failures : 0;
    const fields = { errorClass: error.errorClass, error: error.message, failures };
    if (failures <= 1 && error.errorClass !== 'expired') this.#log.warn('watch interrupted', fields);
    else this.#log.debug('watch interrupted', fields);
  }
}
