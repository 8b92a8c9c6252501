import { compose, type App } from '../../../lib/app/compose.ts';
import { readConfig } from '../../../lib/app/config.ts';
import type { QueueHandler } from '../../../lib/app/reconcile-handler.ts';
import type { FleetRegistry } from '../../../lib/fleet/registry.ts';
import { createForwarder, type Forwarder } from '../../../lib/forwarder/forwarder.ts';
import type { OpenProvider } from '../../../lib/forwarder/provider-pool.ts';
import type { Sink } from '../../../lib/forwarder/sink.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { Logger, LogFields } from '../../../lib/model/log.ts';
import { heartbeatMessage, reconcileMessage, workMessage, type Queues } from '../../../lib/queue/queues.ts';
import type { Actor, Network } from '../../support/faults/network.ts';
import type { Faults } from '../../support/faults/plan.ts';
import type { Random } from '../../support/faults/random.ts';
import type { VirtualTime } from '../../support/faults/virtual-time.ts';
import { eventOf, type Held, type VirtualQueue, type VirtualQueues } from '../../support/queue/virtual-queue.ts';
import { hostOf } from './setup.ts';

/** What a cell's parts share. */
export interface Parts {
  readonly time: VirtualTime;
  readonly faults: Faults;
  readonly network: Network;
  readonly queues: VirtualQueues;
  readonly random: Random;
  readonly log: (message: string, fields: LogFields) => void;
  /** In place of one that never fails. */
  readonly registry?: FleetRegistry | undefined;
  /** Asked at each await of a function: true kills its container there. */
  readonly crashes?: (() => boolean) | undefined;
}

/** A consumer of the fleet. */
export interface Consumer {
  readonly name: string;
  readonly uid: string;
}

const url = 'https://sqs.test/queue';
export const config = readConfig({
  CONTROL_QUEUE_URL: url,
  INSTANCES_QUEUE_URL: url,
  WORK_QUEUE_URL: url,
  DEAD_LETTERS_QUEUE_URL: url,
  WORK_DEAD_QUEUE_URL: url,
  FLEET_DIR: '/nowhere',
  AWS_REGION: 'eu-central-1',
  INSTALLATION: 'campaign',
  STAGE: 'test',
  LOG_LEVEL: 'SILENT',
  METRICS: 'none',
});

const silentCounters = { count: () => undefined, measure: () => undefined, flush: () => undefined };
const MAX_SKEW_MS = 1_000;
const LONGEST_LIFE_AWAITS = 60;

/** What an actor has made or adopted in its present piece of work. */
export interface Process extends Actor {
  made: string[];
}

export function recordingLogger(log: Parts['log'], bound: LogFields = {}): Logger {
  const line = (message: string, fields: LogFields = {}): void => log(message, { ...bound, ...fields });
  return {
    debug: () => undefined,
    info: line,
    warn: line,
    error: line,
    child: (more) => recordingLogger(log, { ...bound, ...more }),
  };
}

/** A registry that never fails: what stands in it is no part of this. */
export function registryOf(consumers: readonly Consumer[]): FleetRegistry {
  const clusters = consumers.map(({ name, uid }) => ({
    name,
    uid,
    paused: false,
    target: { server: `https://${name}.test` },
  }));
  return {
    list: () => Promise.resolve({ clusters, unresolved: [] }),
    lookup: (uid) => {
      const cluster = clusters.find((each) => each.uid === uid);
      return Promise.resolve(cluster === undefined ? { found: 'unknown' } : { found: 'cluster', cluster });
    },
    heartbeat: () => Promise.resolve('recorded'),
    swept: () => Promise.resolve(),
    sweepAsked: () => Promise.resolve(),
    held: () => Promise.resolve(),
    distrust: () => undefined,
  };
}

let processes = 0;

export function startProcess(parts: Pick<Parts, 'time' | 'faults'>, name: string): Process {
  processes += 1;
  const skew = parts.faults.kinds.has('skewed-clock') ? (parts.faults.random.next() * 2 - 1) * MAX_SKEW_MS : 0;
  if (skew !== 0 && parts.faults.active) parts.faults.count('skewed-clock');
  return {
    name: `kbind:${name}:${processes}`,
    product: true,
    clock: parts.time.clock(skew),
    alive: true,
    awaits: 0,
    diesAt: undefined,
    made: [],
  };
}

/** The application in one process, every request of which belongs to that process. */
export function composeFor(parts: Parts, process: Process, options: { registry: FleetRegistry; queues?: Queues }): App {
  return compose(config, {
    clock: process.clock,
    random: () => parts.random.next(),
    queues: options.queues ?? parts.queues.portOf(process),
    registry: options.registry,
    log: recordingLogger(parts.log),
    metrics: silentCounters,
    wrapClient: (client, side) => parts.network.client(client.host, process, side),
  });
}

interface Slot {
  readonly name: string;
  process: Process;
  app: App | undefined;
  busy: boolean;
}

const FUNCTIONS = {
  control: { slots: 2, timeoutMs: 30_000 },
  instances: { slots: 3, timeoutMs: 30_000 },
  work: { slots: 2, timeoutMs: 60_000 },
};
type FunctionName = keyof typeof FUNCTIONS;
const ABORTED_WITH_LEFT_MS = 3_500;

/** The functions, schedules and forwarders of one installation, on virtual time. */
export class Cell {
  readonly #parts: Parts;
  readonly #consumers: readonly Consumer[];
  readonly #registry: FleetRegistry;
  readonly #slots: Readonly<Record<FunctionName, Slot[]>>;
  readonly #forwarders = new Map<string, { forwarder: Forwarder; process: Process }>();
  /** UIDs of what was made or adopted by work that was cut short: spec §8.3's exception. */
  readonly cutShort = new Set<string>();
  #open: App[] = [];
  /** Batches of which a message holds these texts go to a second container too, that many ms later. */
  #doubles: { readonly texts: readonly string[]; readonly afterMs: number }[] = [];
  invocations = 0;
  stopped = false;

  constructor(parts: Parts, consumers: readonly Consumer[]) {
    this.#parts = parts;
    this.#consumers = consumers;
    this.#registry = parts.registry ?? registryOf(consumers);
    const slots = (name: FunctionName): Slot[] =>
      Array.from({ length: FUNCTIONS[name].slots }, (_, index) => ({
        name: `${name}-${index}`,
        process: startProcess(parts, name),
        app: undefined,
        busy: false,
      }));
    this.#slots = { control: slots('control'), instances: slots('instances'), work: slots('work') };
    for (const name of Object.keys(FUNCTIONS) as FunctionName[]) parts.queues[name].onMessage = () => this.#pump(name);
  }

  get busy(): boolean {
    return Object.values(this.#slots).some((slots) => slots.some(({ busy }) => busy));
  }

  /** @param ticks which of a tick's requests are let through: without backstops, events alone must do. */
  start(ticks: 'all' | 'refresh'): void {
    for (const consumer of this.#consumers) this.#startForwarder(consumer);
    const process = startProcess(this.#parts, 'tick');
    const sent = this.#parts.queues.portOf(process);
    const passes = (body: string): boolean =>
      ticks === 'all' || body.includes('"id":"start/') || body.includes('"type":"refresh"');
    const queues: Queues = {
      send: (name, messages) =>
        sent.send(
          name,
          messages.filter(({ body }) => passes(body)),
        ),
      backlog: () => sent.backlog(),
    };
    const { tick } = this.#compose(process, queues).handlers;
    const everyMinute = (atStart: boolean): void => {
      if (this.stopped) return;
      // A tick that the queue did not take is the platform's to repeat; here the next one does.
      tick({ atStart, time: new Date(this.#parts.time.now()).toISOString() }).catch(() => undefined);
      this.#parts.time.after(60_000, () => everyMinute(false));
    };
    everyMinute(true);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.#open.map((app) => app.close()));
  }

  /** A forwarder dies where it stands; another one starts a moment later. */
  killForwarder(name: string): void {
    const running = this.#forwarders.get(name);
    const consumer = this.#consumers.find((each) => each.name === name);
    if (running === undefined || consumer === undefined) return;
    running.process.alive = false;
    this.#parts.time.after(5_000, () => this.#startForwarder(consumer));
  }

  /** The next batch with these texts in a message reaches a second container while the first one still has it. */
  doubleNext(texts: readonly string[], afterMs: number): void {
    this.#doubles.push({ texts, afterMs });
  }

  /** What still waits does so no more. */
  clearDoubles(): void {
    this.#doubles = [];
  }

  #compose(process: Process, queues?: Queues): App {
    const app = composeFor(this.#parts, process, {
      registry: this.#registry,
      ...(queues === undefined ? {} : { queues }),
    });
    this.#open.push(app);
    return app;
  }

  #pump(name: FunctionName): void {
    if (this.stopped) return;
    for (const slot of this.#slots[name]) {
      if (slot.busy) continue;
      const queue = this.#parts.queues[name];
      const batch = queue.receive((held) => this.#shuffled(held));
      if (batch.length === 0) return;
      void this.#invoke(name, slot, batch);
    }
  }

  #shuffled(held: Held[]): Held[] {
    const { faults } = this.#parts;
    if (faults.draw(['reordered'], 4) === undefined) return held;
    faults.count('reordered');
    return held
      .map((each) => [faults.random.next(), each] as const)
      .sort(([a], [b]) => a - b)
      .map(([, each]) => each);
  }

  async #invoke(name: FunctionName, slot: Slot, batch: readonly Held[], extra = false): Promise<void> {
    const queue = this.#parts.queues[name];
    const { time, faults } = this.#parts;
    slot.busy = true;
    this.invocations += 1;
    const { timeoutMs } = FUNCTIONS[name];
    const { process } = slot;
    // Now and then a container is a new one, with nothing in its memory.
    if (this.#parts.random.chance(0.05)) slot.app = undefined;
    slot.app ??= this.#compose(process);
    process.made = [];
    const over = (): void => {
      if (slot.process !== process) return;
      for (const uid of process.made) this.cutShort.add(uid);
      slot.process = startProcess(this.#parts, name);
      slot.app = undefined;
      slot.busy = false;
      if (!extra) for (const held of batch) queue.giveBack(held);
      time.after(1, () => this.#pump(name));
    };
    process.onDeath = over;
    process.crashes = this.#parts.crashes;
    if (faults.draw(['killed'], 1.5) !== undefined)
      process.diesAt = process.awaits + 1 + faults.random.below(LONGEST_LIFE_AWAITS);
    if (!extra) this.#perhapsDoubled(name, batch);
    const startedAt = time.now();
    const left = (): number => timeoutMs - (time.now() - startedAt);
    const cancelTimeout = time.after(timeoutMs, () => {
      process.alive = false;
      over();
    });
    const handler: QueueHandler = slot.app.handlers[name];
    const response = await handler(eventOf(batch), { getRemainingTimeInMillis: left });
    if (!process.alive) return;
    cancelTimeout();
    if (left() < ABORTED_WITH_LEFT_MS) for (const uid of process.made) this.cutShort.add(uid);
    if (process.diesAt !== undefined) process.diesAt = undefined;
    slot.busy = false;
    if (!extra)
      this.#acknowledge(batch, queue, new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)));
    this.#pump(name);
  }

  #acknowledge(batch: readonly Held[], queue: VirtualQueue, failed: ReadonlySet<string>): void {
    const { faults } = this.#parts;
    for (const held of batch) {
      const lost = faults.draw(['duplicate']) !== undefined;
      if (lost) faults.count('duplicate');
      if (failed.has(held.id) || lost) queue.giveBack(held);
      else queue.remove(held);
    }
  }

  /** The same batch in a second container at the same time: a message group is not a lock. */
  #perhapsDoubled(name: FunctionName, batch: readonly Held[]): void {
    const { faults, random, time } = this.#parts;
    const aimed = this.#doubles.find(({ texts }) =>
      batch.some(({ body }) => texts.every((text) => body.includes(text))),
    );
    if (aimed === undefined && faults.draw(['duplicate'], 1) === undefined) return;
    this.#doubles = this.#doubles.filter((each) => each !== aimed);
    const other = this.#slots[name].find(({ busy }) => !busy);
    if (other === undefined) return;
    faults.count('duplicate');
    other.busy = true;
    time.after(aimed?.afterMs ?? random.below(400), () => void this.#invoke(name, other, batch, true));
  }

  #startForwarder({ name, uid }: Consumer): void {
    if (this.stopped) return;
    const { time, network, random } = this.#parts;
    const process = startProcess(this.#parts, `forwarder-${name}`);
    const client = network.client(`${name}.test`, process, 'consumer');
    const openProvider: OpenProvider = async (connection, { signal }) => {
      const object = await client.get(resources.connections, { name: connection }, { signal });
      const { kubeconfigSecretRef: ref } = object.spec as unknown as {
        kubeconfigSecretRef: { namespace: string; name: string };
      };
      const secret: KubeObject | undefined = await client.find(
        resources.secrets,
        { namespace: ref.namespace, name: ref.name },
        { signal },
      );
      const host = secret === undefined ? undefined : hostOf(secret);
      if (host === undefined) throw new KbindError('credential', 'no usable kubeconfig');
      const provider = network.client(host, process, 'provider');
      return { client: provider, uid: await readClusterIdentity(provider, { signal }) };
    };
    const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
      await time.sleep(ms, signal);
      if (!process.alive) await new Promise(() => undefined);
    };
    const forwarder = createForwarder({
      client,
      clusterUid: uid,
      openProvider,
      sink: this.#sink(process),
      clock: process.clock,
      log: recordingLogger(() => undefined),
      sleep,
      chance: () => random.next(),
    });
    this.#forwarders.set(name, { forwarder, process });
    void forwarder.start();
  }

  #sink(process: Process): Sink {
    const { queues, time } = this.#parts;
    return {
      async send(batch) {
        await time.sleep(3);
        if (!process.alive) return new Promise(() => undefined);
        const messages = batch.map(({ message, change }) => {
          if (message.type === 'reconcile') return reconcileMessage(message, change).message;
          return message.type === 'heartbeat' ? heartbeatMessage(message).message : workMessage(message).message;
        });
        const refused = queues.send(batch[0]?.queue ?? 'work', messages);
        await time.sleep(3);
        return process.alive ? refused : new Promise(() => undefined);
      },
      async backlog() {
        await time.sleep(3);
        return process.alive ? queues.instances.waiting : new Promise<never>(() => undefined);
      },
    };
  }
}
