import { resources, keyText, type KubeObject } from '../../lib/model/api.ts';
import { reconcileRequest } from '../../lib/model/request.ts';
import { reconcileMessage, workMessage } from '../../lib/queue/queues.ts';
import { copyOf } from '../../lib/reconcile/instance/what-to-apply.ts';
import { SYNCER_FINALIZER } from '../../lib/model/markers.ts';
import { ensureNamespace } from '../../lib/reconcile/ensure-namespace.ts';
import { startFleetTable } from '../support/aws/table.ts';
import { apiName, BenchCell, NAMESPACE, until, widgets, type Measured } from '../support/bench/cell.ts';
import {
  createInstance,
  editSpec,
  editStatus,
  forEach,
  keyAt,
  layOut,
  range,
  remove,
  setStatus,
  specOf,
  widgetManifest,
} from '../support/bench/instances.ts';
import { registerClusters, simulateFleet } from '../support/bench/fleet.ts';
import { simulateIdle } from '../support/bench/idle.ts';
import type { ServerName } from '../support/bench/servers.ts';
import { percentile, resultOf, type Result } from './result.ts';
import { Watched } from './watched.ts';

const API = apiName(widgets);
const SINGLES = 50;
/** What five containers with ten reconciles each have under way. */
const PRODUCT_AT_ONCE = 50;

type Status = { readonly phase?: string } | undefined;
const phaseOf = (object: KubeObject | undefined): string | undefined => (object?.status as Status)?.phase;
const sizeOf = (object: KubeObject | undefined): number | undefined =>
  (object?.spec as { size?: number } | undefined)?.size;

/** A bound cell with people who look on at both sides. */
export class Bench {
  readonly cell: BenchCell;
  readonly server: ServerName;
  readonly n: number;
  readonly #consumer: Watched;
  readonly #provider: Watched;
  #generation = 1;

  private constructor(
    cell: BenchCell,
    options: { server: ServerName; n: number },
    watched: readonly [Watched, Watched],
  ) {
    this.cell = cell;
    this.server = options.server;
    this.n = options.n;
    [this.#consumer, this.#provider] = watched;
  }

  static async start(options: { readonly server: ServerName; readonly n: number }): Promise<Bench> {
    const cell = await BenchCell.start({ server: options.server });
    await cell.startForwarder();
    await cell.connect();
    await cell.bind('widgets', [API]);
    await cell.untilBound('widgets');
    await cell.settled({ quietMs: 500 });
    await ensureNamespace(cell.provider.hands, NAMESPACE, {});
    const watched = await Promise.all([
      Watched.start(cell.consumer.hands, widgets),
      Watched.start(cell.provider.hands, widgets),
    ] as const);
    return new Bench(cell, options, watched);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#consumer.stop(), this.#provider.stop()]);
    await this.cell.stop();
  }

  /** As many synced instances as asked for, by the fast way, with the forwarder running at the end. */
  async #atRest(count = this.n): Promise<void> {
    if (this.#consumer.size >= count) return;
    const { cell } = this;
    await cell.stopForwarder();
    await layOut(cell, range(count - this.#consumer.size, this.#consumer.size));
    await cell.startForwarder();
    await cell.settled({ quietMs: 700 });
  }

  async #measure(
    scenario: string,
    work: () => Promise<readonly number[] | undefined>,
    options: { readonly n?: number; readonly more?: () => Record<string, number> } = {},
  ): Promise<Result> {
    let lags: readonly number[] | undefined;
    let ms = 0;
    const measured: Measured = await this.cell.measure(async () => {
      const from = performance.now();
      lags = await work();
      ms = performance.now() - from;
      await this.cell.settled({ quietMs: 400 });
    });
    return resultOf({ scenario, server: this.server, n: options.n ?? this.n, ms }, measured, {
      ...(lags === undefined ? {} : { lags }),
      ...(options.more === undefined ? {} : { more: options.more() }),
    });
  }

  /** Acts on each index and waits for what it brings about; answers with the lag of each. */
  async #each(
    indices: readonly number[],
    act: (index: number) => Promise<unknown>,
    effect: (key: string) => Promise<number>,
  ): Promise<number[]> {
    const lags: number[] = [];
    const effects: Promise<void>[] = [];
    await forEach(indices, async (index) => {
      const from = performance.now();
      await act(index);
      effects.push(effect(keyText(keyAt(index))).then((at) => void lags.push(Math.max(0, at - from))));
    });
    await Promise.all(effects);
    return lags;
  }

  /** New instances, until each has the status that the provider's operator gives its copy. */
  async create(): Promise<Result> {
    const operated: Promise<void>[] = [];
    this.#provider.onObject = (copy) => {
      if (copy.status === undefined) operated.push(setStatus(this.cell.provider, copy, 'Ready'));
    };
    const indices = range(this.n, this.#consumer.size);
    const result = await this.#measure('create', () =>
      this.#each(
        indices,
        (index) => createInstance(this.cell.consumer, index),
        (key) => this.#consumer.seen(key, (object) => phaseOf(object) === 'Ready'),
      ),
    );
    this.#provider.onObject = () => undefined;
    await Promise.all(operated);
    return result;
  }

  async change(): Promise<Result> {
    await this.#atRest();
    const size = (this.#generation += 1);
    return this.#measure('change', () =>
      this.#each(
        range(this.n),
        (index) => editSpec(this.cell.consumer, keyAt(index), size),
        (key) => this.#provider.seen(key, (object) => sizeOf(object) === size),
      ),
    );
  }

  async status(): Promise<Result> {
    await this.#atRest();
    const phase = `Phase${(this.#generation += 1)}`;
    return this.#measure('status', () =>
      this.#each(
        range(this.n),
        (index) => editStatus(this.cell.provider, keyAt(index), phase),
        (key) => this.#consumer.seen(key, (object) => phaseOf(object) === phase),
      ),
    );
  }

  async delete(): Promise<Result> {
    await this.#atRest();
    return this.#measure('delete', () =>
      this.#each(
        range(this.n),
        (index) => remove(this.cell.consumer, keyAt(index)),
        (key) => this.#consumer.seen(key, (object) => object === undefined),
      ),
    );
  }

  /** Every key reconciled twice though nothing changed. */
  async noop(): Promise<Result> {
    await this.#atRest();
    const { consumer, queues } = this.cell;
    const round = async (name: string): Promise<void> => {
      for (const index of range(this.n)) {
        const request = reconcileRequest(consumer.uid, 'instance', keyAt(index), { api: API });
        queues.instances.send(reconcileMessage(request, `noop/${name}`).message);
      }
      await this.cell.settled({ quietMs: 100 });
    };
    return this.#measure(
      'noop',
      async () => {
        await round('first');
        await round('second');
        return undefined;
      },
      { n: 2 * this.n },
    );
  }

  #sweep(id: string): void {
    const { consumer, queues } = this.cell;
    queues.work.send(workMessage({ v: 1, type: 'sweep', cluster: consumer.uid, id, retry: false }).message);
  }

  async backstop(): Promise<Result[]> {
    await this.#atRest();
    this.#sweep('backstop/counts');
    await this.cell.settled({ quietMs: 700 });
    const quiet = await this.#measure('backstop', async () => {
      this.#sweep('backstop/quiet');
      await this.cell.settled({ quietMs: 100 });
      return undefined;
    });
    await this.cell.stopForwarder();
    const drifted = range(Math.max(1, Math.round(this.n / 100)));
    await forEach(drifted, (index) => editSpec(this.cell.provider, keyAt(index), 9_999));
    const mended = await this.#measure('backstop, 1 % drifted', async () => {
      this.#sweep('backstop/drifted');
      const size = await this.#sizeNow(0);
      await Promise.all(
        drifted.map((index) => this.#provider.seen(keyText(keyAt(index)), (object) => sizeOf(object) === size)),
      );
      return undefined;
    });
    await this.cell.startForwarder();
    await this.cell.settled({ quietMs: 700 });
    return [quiet, mended];
  }

  async #sizeNow(index: number): Promise<number | undefined> {
    return sizeOf(await this.cell.consumer.hands.get(widgets, keyAt(index)));
  }

  /** A forwarder that starts anew: one sweep, no key. */
  async relist(): Promise<Result> {
    await this.#atRest();
    await this.cell.stopForwarder();
    return this.#measure('relist', async () => {
      const { delivered } = this.cell.queues.work.counts;
      await this.cell.startForwarder();
      await until('a sweep was given out', () => Promise.resolve(this.cell.queues.work.counts.delivered > delivered));
      await this.cell.settled({ quietMs: 100 });
      return undefined;
    });
  }

  /** A change of the binding that concerns all of its instances, and changes none. */
  async fanout(): Promise<Result> {
    await this.#atRest();
    const { hands } = this.cell.consumer;
    return this.#measure('fanout', async () => {
      const { uid } = (await hands.get(resources.clusterBindings, { name: 'widgets' })).metadata;
      const operations = [{ op: 'add', path: '/spec/conflictPolicy', value: 'Adopt' }] as const;
      await hands.patch(resources.clusterBindings, { name: 'widgets' }, { read: { uid }, operations });
      await this.cell.settled({ quietMs: 500 });
      return undefined;
    });
  }

  /** One object at a time: create to copy, status to consumer, delete to gone. */
  async lag(): Promise<Result> {
    const { consumer, provider } = this.cell;
    const lags: Record<'create' | 'status' | 'delete', number[]> = { create: [], status: [], delete: [] };
    const timed = async (into: number[], act: () => Promise<unknown>, effect: () => Promise<number>): Promise<void> => {
      const from = performance.now();
      await act();
      into.push(Math.max(0, (await effect()) - from));
    };
    return this.#measure(
      'lag',
      async () => {
        for (const index of range(SINGLES, 800_000)) {
          const key = keyText(keyAt(index));
          await timed(
            lags.create,
            () => createInstance(consumer, index),
            () => this.#provider.seen(key, (copy) => copy !== undefined),
          );
          await timed(
            lags.status,
            () => editStatus(provider, keyAt(index), 'Ready'),
            () => this.#consumer.seen(key, (object) => phaseOf(object) === 'Ready'),
          );
          await timed(
            lags.delete,
            () => remove(consumer, keyAt(index)),
            () => this.#consumer.seen(key, (object) => object === undefined),
          );
        }
        return Object.values(lags).flat();
      },
      {
        n: SINGLES,
        more: () =>
          Object.fromEntries(
            Object.entries(lags).flatMap(([name, values]) => [
              [`${name}P50`, Math.round(percentile(values, 0.5))],
              [`${name}P99`, Math.round(percentile(values, 0.99))],
            ]),
          ),
      },
    );
  }

  /** Unbinds all, and binds again for what comes after. */
  async drain(): Promise<Result> {
    await this.#atRest();
    const { hands } = this.cell.consumer;
    const result = await this.#measure('drain', async () => {
      const { uid, resourceVersion } = (await hands.get(resources.clusterBindings, { name: 'widgets' })).metadata;
      await hands.delete(resources.clusterBindings, { name: 'widgets' }, { uid, resourceVersion });
      await until(
        'the binding is gone',
        async () => (await hands.find(resources.clusterBindings, { name: 'widgets' })) === undefined,
        1_200_000,
      );
      return undefined;
    });
    return result;
  }

  /**
   * The same writes by a bare loop with the same client and as many under way: what the machine can do. For creates the
   * user's POST, the finalizer, the copy and both statuses; for changes the user's edit and the apply.
   */
  async limit(): Promise<Result[]> {
    const { consumer, provider } = this.cell;
    await this.cell.stopForwarder();
    await this.cell.settled({ quietMs: 300 });
    const base = 700_000;
    const owner = (source: KubeObject) => ({ cluster: consumer.uid, object: source.metadata.uid });
    const pairs: { source: KubeObject; copy: KubeObject }[] = [];
    const creates = await this.#bare('limit of create', async (index) => {
      const key = keyAt(base + index);
      const made = await consumer.hands.create(widgets, widgetManifest(key, specOf(index)));
      const { uid } = made.metadata;
      const finalizers = [{ op: 'add', path: '/metadata/finalizers', value: [SYNCER_FINALIZER] }] as const;
      const source = await consumer.hands.patch(widgets, key, { read: { uid }, operations: finalizers });
      const copy = await provider.hands.create(widgets, copyOf(source, { ref: widgets, key }, owner(source)));
      await setStatus(provider, copy, 'Ready');
      await setStatus(consumer, source, 'Ready');
      pairs.push({ source, copy });
    });
    const changes = await this.#bare('limit of change', async (index) => {
      const pair = pairs[index];
      if (pair === undefined) throw new Error('fewer were made than are changed');
      const key = { namespace: pair.source.metadata.namespace, name: pair.source.metadata.name };
      await editSpec(consumer, key, 2);
      const changed = { ...pair.source, spec: { ...(pair.source.spec as object), size: 2 } } as KubeObject;
      const { uid, resourceVersion } = (await provider.hands.get(widgets, key)).metadata;
      await provider.hands.apply(widgets, copyOf(changed, { ref: widgets, key }, owner(changed)), {
        uid,
        resourceVersion,
      });
    });
    await forEach(range(this.n, base), async (index) => {
      const key = keyAt(index);
      const { uid } = (await consumer.hands.get(widgets, key)).metadata;
      await consumer.hands.patch(widgets, key, {
        read: { uid },
        operations: [{ op: 'remove', path: '/metadata/finalizers' }],
      });
      await Promise.all([remove(consumer, key), remove(provider, key)]);
    });
    await this.cell.startForwarder();
    await this.cell.settled({ quietMs: 700 });
    return [creates, changes];
  }

  #bare(scenario: string, act: (index: number) => Promise<unknown>): Promise<Result> {
    return this.#measure(scenario, async () => {
      const lags: number[] = [];
      await forEach(
        range(this.n),
        async (index) => {
          const from = performance.now();
          await act(index);
          lags.push(performance.now() - from);
        },
        PRODUCT_AT_ONCE,
      );
      return lags;
    });
  }
}

const QUIET_CLUSTERS = 9;
const STORM_SINGLES = 3;

/** One noisy cluster beside nine quiet ones: what the quiet ones' lag becomes. Embedded consumers: ten real ones are no small machine's. */
export async function storm(n: number): Promise<Result> {
  const cell = await BenchCell.start({ server: 'embedded', consumers: QUIET_CLUSTERS + 1 });
  const watched = await Watched.start(cell.provider.hands, widgets);
  try {
    for (const consumer of cell.consumers) {
      await cell.startForwarder(consumer);
      await cell.connect(consumer);
      await cell.bind('widgets', [API], consumer);
    }
    for (const consumer of cell.consumers) await cell.untilBound('widgets', consumer);
    await cell.settled({ quietMs: 700 });
    const [noisy, ...quiet] = cell.consumers;
    if (noisy === undefined) throw new Error('a storm needs a noisy cluster');
    const singles = async (from: number): Promise<number[]> => {
      const lags: number[] = [];
      for (const round of range(STORM_SINGLES)) {
        for (const [position, consumer] of quiet.entries()) {
          const index = from + round * QUIET_CLUSTERS + position;
          const started = performance.now();
          await createInstance(consumer, index);
          lags.push((await watched.seen(keyText(keyAt(index)), (copy) => copy !== undefined)) - started);
        }
      }
      return lags;
    };
    const calm = await singles(100_000);
    let stormy: number[] = [];
    const measured = await cell.measure(async () => {
      const noise = forEach(range(n), (index) => createInstance(noisy, index));
      stormy = await singles(200_000);
      await noise;
      await cell.settled();
    }, noisy);
    return resultOf({ scenario: 'storm', server: 'embedded', n }, measured, {
      lags: stormy,
      more: { calmP50: Math.round(percentile(calm, 0.5)), calmP99: Math.round(percentile(calm, 0.99)) },
    });
  } finally {
    await watched.stop();
    await cell.stop();
  }
}

/** Ten minutes of an idle cluster on a virtual clock, requests per minute. */
export async function idle(n: number): Promise<Result> {
  const from = performance.now();
  const counted = await simulateIdle({ bindings: 3, instances: n, minutes: 10 });
  const round = (value: number): number => Math.round(value * 10) / 10;
  return {
    scenario: 'idle, 10 minutes',
    server: 'virtual',
    n,
    requests: counted.requests,
    writes: counted.writes,
    forwarderRequests: 0,
    requestsPerObject: round(counted.requests / n),
    writesPerObject: round(counted.writes / n),
    messages: counted.messages,
    messagesSent: counted.messages,
    messagesPerObject: round(counted.messages / n),
    invocations: counted.invocations,
    deadLetters: 0,
    ms: Math.round(performance.now() - from),
    peakRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
    by: counted.byRequest,
    more: { requestsPerMinute: round(counted.requests / 10), writesPerMinute: round(counted.writes / 10) },
  };
}

/** Ten minutes of a fleet of that many clusters, a tenth with an edit a minute, on a virtual clock: what one costs an hour. */
export async function fleet(n: number): Promise<Result> {
  const from = performance.now();
  const table = await startFleetTable();
  await registerClusters(table.table, n);
  const items = (await table.table.scan()).toSorted((a, b) => ((a['id']?.S ?? '') < (b['id']?.S ?? '') ? -1 : 1));
  await table.stop();
  const {
    idle: quiet,
    busy,
    tableRequests,
    refreshesBySecond,
    deadLetters,
  } = await simulateFleet({
    items,
    busy: Math.ceil(n / 10),
    minutes: 10,
  });
  const named = (of: string, share: object): [string, number][] =>
    Object.entries(share).map(([name, value]) => [`${of} ${name}`, value as number]);
  return {
    scenario: 'fleet, an hour of an idle cluster',
    server: 'virtual',
    n,
    requests: quiet.requests,
    writes: 0,
    forwarderRequests: 0,
    requestsPerObject: 0,
    writesPerObject: 0,
    messages: quiet.messages,
    messagesSent: quiet.messages,
    messagesPerObject: 0,
    invocations: quiet.invocations,
    deadLetters,
    ms: Math.round(performance.now() - from),
    peakRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
    by: Object.fromEntries(refreshesBySecond.map((count, second) => [`refreshes in second ${second}`, count])),
    more: { ...Object.fromEntries([...named('idle', quiet), ...named('busy', busy)]), tableRequests },
  };
}
