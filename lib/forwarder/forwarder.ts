import { setTimeout as delay } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { ObjectKey } from '../model/api.ts';
import type { Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import type { KubeClient } from '../kube/types.ts';
import { ConsumerState } from './consumer-state.ts';
import { createForwarderMetrics, type ForwarderMetrics } from './metrics.ts';
import { Outbox } from './outbox.ts';
import { diffWatches, staticWatches, wantedWatches, type WantedWatch } from './plan-set.ts';
import { ConfirmedClient, ProviderPool, type OpenProvider, type ReadIdentity } from './provider-pool.ts';
import { relatedWatches, type RelatedWatch } from './related-watches.ts';
import { forwarderQueues, type Sink } from './sink.ts';
import { watchTask, type SourceContext } from './sources.ts';
import { SweepsOwed, type SweptSide } from './sweep-owed.ts';
import { Watcher, type Pace, type Sleep, type Standing } from './watcher.ts';

export interface ForwarderOptions {
  /** Of the consumer. */
  readonly client: KubeClient;
  /** UID that the consumer must have, confirmed before the first use and whenever a watch connects. */
  readonly clusterUid: string;
  readonly openProvider: OpenProvider;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where metrics are registered; one of its own by default. */
  readonly registry?: Registry | undefined;
  /** Provider key to consumer key; identity by default. */
  readonly toConsumer?: ((api: string, key: ObjectKey) => ObjectKey) | undefined;
  readonly readIdentity?: ReadIdentity | undefined;
  readonly sleep?: Sleep | undefined;
  readonly chance?: (() => number) | undefined;
  /** How long {@link Forwarder.stop} tries to deliver what is pending, ms. */
  readonly flushDeadlineMs?: number | undefined;
  /** Pending instance keys beyond which an API is left to one sweep. */
  readonly maxPendingKeys?: number | undefined;
}

export interface Forwarder {
  /** Resolves once the watches run; they need not stand yet. */
  start(): Promise<void>;
  /** Stops all watches, then delivers what is pending. Answers with the number of keys that could not be delivered. */
  stop(): Promise<{ readonly undelivered: number }>;
  /** True while the watches of the control plane stand. */
  ready(): boolean;
  readonly metrics: ForwarderMetrics;
}

/** A heartbeat this often: silent for three minutes, it raises an alarm. */
export const HEARTBEAT_MS = 60_000;
const FLUSH_DEADLINE_MS = 10_000;

interface Running {
  readonly fingerprint: string;
  readonly watcher: Watcher;
}

/** Watches one consumer cluster and its providers, and turns what happens into keys on the queues (design.md, rule 12). */
export function createForwarder(options: ForwarderOptions): Forwarder {
  return new RunningForwarder(options);
}

class RunningForwarder implements Forwarder {
  readonly metrics: ForwarderMetrics;
  readonly #options: ForwarderOptions;
  readonly #pace: Pace;
  readonly #state: ConsumerState;
  readonly #outbox: Outbox;
  readonly #sweeps: SweepsOwed;
  readonly #providers: ProviderPool;
  readonly #context: SourceContext;
  readonly #running = new Map<string, Running>();
  readonly #stopping = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  /** Which bindings the watches of related resources stand for. */
  #related: ReadonlyMap<string, RelatedWatch> = new Map();
  #heartbeats: Promise<void> = Promise.resolve();

  constructor(options: ForwarderOptions) {
    const { client, clusterUid, clock, log, sink, openProvider } = options;
    const readIdentity = options.readIdentity ?? readClusterIdentity;
    this.#options = options;
    this.metrics = createForwarderMetrics(options.registry ?? new Registry());
    this.#pace = { clock, sleep: options.sleep ?? sleepFor, chance: options.chance ?? Math.random };
    this.#state = new ConsumerState(clusterUid, log);
    this.#sweeps = new SweepsOwed(clusterUid);
    this.#providers = new ProviderPool({ openProvider, readIdentity, clock });
    const { maxPendingKeys } = options;
    this.#outbox = new Outbox({
      cluster: clusterUid,
      sink,
      pace: this.#pace,
      log,
      metrics: this.metrics,
      maxPendingKeys,
    });
    const consumer = new ConfirmedClient(client, clusterUid, { readIdentity, clock, signal: this.#abort.signal });
    this.#context = this.#sourceContext(consumer);
    this.#measure();
  }

  start(): Promise<void> {
    this.#outbox.start();
    this.#reconcileWatches();
    this.#heartbeats = this.#beat();
    return Promise.resolve();
  }

  async stop(): Promise<{ readonly undelivered: number }> {
    this.#abort.abort();
    for (const id of this.#running.keys()) this.#stopWatch(id);
    await this.#providers.close();
    await Promise.all([...this.#stopping, this.#heartbeats]);
    const undelivered = await this.#outbox.flush(this.#options.flushDeadlineMs ?? FLUSH_DEADLINE_MS);
    if (undelivered > 0) this.#options.log.error('keys were not delivered before the deadline', { undelivered });
    return { undelivered };
  }

  ready(): boolean {
    return staticWatches().every(({ id }) => this.#running.get(id)?.watcher.healthy ?? false);
  }

  #sourceContext(consumer: ConfirmedClient): SourceContext {
    const state = this.#state;
    return {
      state,
      consumer,
      providers: this.#providers,
      mapping: {
        cluster: state.clusterUid,
        connectionsOf: (secret) => state.connectionsOf(secret),
        conflicts: (api, key) => state.conflicts(api, key),
        relatedBindings: (watch) => this.#related.get(watch)?.bindings ?? [],
        toConsumer: this.#options.toConsumer ?? ((_api, key) => key),
      },
      put: (message) => this.#outbox.put(message),
      changed: () => this.#reconcileWatches(),
      standing: (api, side, standing) => this.#stands(api, side, standing),
    };
  }

  /** Makes the running watches match what should be watched. */
  #reconcileWatches(): void {
    if (this.#abort.signal.aborted) return;
    this.#providers.retain(this.#state.connections);
    this.#related = relatedWatches(this.#state);
    const wanted = wantedWatches(this.#state);
    for (const { watch } of this.#related.values()) wanted.set(watch.id, watch);
    const { start, stop, rebuild } = diffWatches(fingerprints(this.#running), wanted);
    for (const id of stop) {
      this.#stopWatch(id);
      this.#forgetApi(id);
    }
    for (const watch of rebuild) this.#stopWatch(watch.id);
    for (const watch of [...rebuild, ...start]) this.#startWatch(watch);
    for (const api of this.#state.crds.keys()) this.#postDueSweep(api);
  }

  #startWatch(wanted: WantedWatch): void {
    const { log } = this.#options;
    const watcher = new Watcher(watchTask(wanted, this.#context), this.#pace, log, this.metrics);
    this.#running.set(wanted.id, { fingerprint: wanted.fingerprint, watcher });
  }

  #stopWatch(id: string): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    this.#running.delete(id);
    const stopping = running.watcher.stop().finally(() => this.#stopping.delete(stopping));
    this.#stopping.add(stopping);
  }

  #forgetApi(id: string): void {
    const [type, api] = id.split('|');
    if (type !== 'instances' || api === undefined) return;
    this.#sweeps.forget(api);
    this.#state.forgetConflicts(api);
  }

  #stands(api: string, side: SweptSide, standing: Standing | undefined): void {
    if (standing === undefined) {
      this.#sweeps.lost(api, side);
      return;
    }
    this.#sweeps.stands(api, side, standing);
    this.#postDueSweep(api);
  }

  #postDueSweep(api: string): void {
    const sides = (['instances', 'copies'] as const).filter((side) => this.#running.has(`${side}|${api}`));
    const plan = sides.map((side) => this.#running.get(`${side}|${api}`)?.fingerprint ?? '').join('|');
    const sweep = this.#sweeps.due(api, sides, plan);
    if (sweep === undefined) return;
    this.metrics.sweeps.inc();
    this.#options.log.info('sweep asked for', { api, sweep: sweep.id });
    this.#outbox.put({ queue: 'work', message: sweep, change: sweep.id });
  }

  async #beat(): Promise<void> {
    const { clusterUid, clock } = this.#options;
    while (!this.#abort.signal.aborted) {
      const at = clock.now();
      const message = { v: 1, type: 'heartbeat', cluster: clusterUid, at, watches: this.#count('streaming') } as const;
      this.#outbox.put({ queue: 'control', message, change: String(at) });
      await this.#pace.sleep(HEARTBEAT_MS, this.#abort.signal);
    }
  }

  #count(phase: Watcher['phase']): number {
    return [...this.#running.values()].filter(({ watcher }) => watcher.phase === phase).length;
  }

  /** Gauges are read when somebody asks for them. */
  #measure(): void {
    const { watches, pending, lag } = this.metrics;
    const outbox = this.#outbox;
    const count = (phase: Watcher['phase']): number => this.#count(phase);
    Object.assign(watches, {
      collect() {
        for (const state of ['listing', 'connecting', 'streaming', 'resting'] as const)
          watches.set({ state }, count(state));
      },
    });
    Object.assign(pending, {
      collect() {
        for (const queue of forwarderQueues) pending.set({ queue }, outbox.size(queue));
      },
    });
    Object.assign(lag, { collect: () => lag.set(outbox.lagSeconds()) });
  }
}

const fingerprints = (running: ReadonlyMap<string, Running>): ReadonlyMap<string, { readonly fingerprint: string }> =>
  running;

/** Sleeps on the machine's timers; an abort only ends it sooner. */
const sleepFor: Sleep = async (ms, signal) => {
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
};
