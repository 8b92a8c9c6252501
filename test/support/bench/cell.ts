import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { compose, type App } from '../../../lib/app/compose.ts';
import { readConfig } from '../../../lib/app/config.ts';
import type { QueueHandler } from '../../../lib/app/reconcile-handler.ts';
import type { TickEvent } from '../../../lib/app/tick-handler.ts';
import type { FleetCluster, FleetRegistry } from '../../../lib/fleet/registry.ts';
import { createForwarder, type Forwarder } from '../../../lib/forwarder/forwarder.ts';
import { createOpenProvider } from '../../../lib/forwarder/providers.ts';
import type { Sink } from '../../../lib/forwarder/sink.ts';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { findCondition, type Condition } from '../../../lib/model/conditions.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { heartbeatMessage, reconcileMessage, workMessage, type Queues } from '../../../lib/queue/queues.ts';
import { BenchQueue, batchEvent, FLOWING, type FlowQueue, type QueueCounts } from './queues.ts';
import { markUse, useSince, type ProcessUse } from './processes.ts';
import { startBenchServer, type BenchServer, type Mark, type SeenRequest, type ServerName } from './servers.ts';

/** Names of the users by which requests are told apart, on either side. Hands are the clusters' admin. */
export const PRODUCT = 'kbind-product';
export const FORWARDER = 'kbind-forwarder';
export const CONNECTION = 'provider';
export const NAMESPACE = 'bench';

export const widgets = apiRef('widgets', 'Widget');

export function apiRef(resource: string, kind: string): ResourceRef {
  return { group: 'example.org', version: 'v1', resource, kind, namespaced: true };
}
export const apiName = ({ resource, group }: ResourceRef): string => `${resource}.${group}`;

/** What a question to SQS takes, ms: without it a burst would be paced by a queue that answers at once. */
const ROUND_TRIP_MS = 10;

const egress = { allowLoopback: true };
const crdsFolder = join(import.meta.dirname, '../../../infra/crds');
const url = 'https://sqs.test/queue';
const config = readConfig({
  CONTROL_QUEUE_URL: url,
  INSTANCES_QUEUE_URL: url,
  WORK_QUEUE_URL: url,
  DEAD_LETTERS_QUEUE_URL: url,
  WORK_DEAD_QUEUE_URL: url,
  FLEET_DIR: '/nowhere',
  ALLOW_LOOPBACK: 'true',
  AWS_REGION: 'eu-central-1',
  INSTALLATION: 'bench',
  STAGE: 'test',
  LOG_LEVEL: 'SILENT',
  METRICS: 'none',
});
/** Containers of each function, and the time that an invocation has. */
const FUNCTIONS: Readonly<Record<FlowQueue, { containers: number; timeoutMs: number }>> = {
  control: { containers: 2, timeoutMs: 30_000 },
  instances: { containers: 5, timeoutMs: 30_000 },
  work: { containers: 2, timeoutMs: 60_000 },
};

/** One API server with the hands of somebody who may do everything. */
export interface Cluster {
  readonly server: BenchServer;
  readonly hands: OpenKubeClient;
  readonly uid: string;
}

export interface Consumer extends Cluster {
  readonly fleet: FleetCluster;
  /** The consumer as its forwarder sees it. */
  readonly forwarderKubeconfig: string;
  forwarder: { readonly running: Forwarder; readonly client: OpenKubeClient } | undefined;
}

/** What something cost. */
export interface Measured {
  readonly ms: number;
  readonly consumer: readonly SeenRequest[];
  readonly provider: readonly SeenRequest[];
  readonly queues: Readonly<Record<FlowQueue, QueueCounts>>;
  readonly deadLetters: number;
  /** Of this process and of the API servers with their etcds, where those are processes. */
  readonly processes: readonly ProcessUse[];
}

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);
export const isWrite = ({ verb }: SeenRequest): boolean => WRITES.has(verb);
export const requestsOf = ({ consumer, provider }: Measured, user?: string): SeenRequest[] =>
  [...consumer, ...provider].filter((seen) =>
    user === undefined ? seen.user.startsWith('kbind-') : seen.user === user,
  );
export const messagesOf = ({ queues }: Measured): number =>
  FLOWING.reduce((sum, name) => sum + queues[name].sent - queues[name].deduplicated, 0);
export const describeRequests = (seen: readonly SeenRequest[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { user, verb, resource, subresource, uri } of seen) {
    const what = resource === '' ? uri.split('?')[0] : `${resource}${subresource === '' ? '' : `/${subresource}`}`;
    const name = `${user.replace('kbind-', '')} ${verb} ${what}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
};

export const clientOf = (kubeconfig: string): OpenKubeClient =>
  createKubeClient(parseForeignKubeconfig(kubeconfig, egress), { clock: systemClock, egress });

const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export function crdManifest(ref: ResourceRef): SentObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: apiName(ref), labels: { 'core.kbind.io/exported': 'true' } },
    spec: {
      group: ref.group,
      scope: 'Namespaced',
      names: { plural: ref.resource, singular: ref.kind.toLowerCase(), kind: ref.kind, listKind: `${ref.kind}List` },
      versions: [
        {
          name: ref.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: freeForm, status: freeForm } } },
        },
      ],
    },
  };
}

/** Looks until something truthy comes; a failing look counts as not yet. */
export async function until<T>(what: string, look: () => Promise<T | undefined | false>, limitMs = 60_000): Promise<T> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const seen = await look().catch((error: unknown) => {
      if (Date.now() > deadline) throw error;
      return undefined;
    });
    if (seen !== undefined && seen !== false) return seen;
    if (Date.now() > deadline) throw new Error(`gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

async function startCluster(kind: ServerName, name: string): Promise<Cluster> {
  const server = await startBenchServer(kind, name);
  const hands = clientOf(server.kubeconfig);
  for (const namespace of ['default', 'kube-system'])
    await until(`${name} has ${namespace}`, () => hands.find(resources.namespaces, { name: namespace }));
  return { server, hands, uid: await readClusterIdentity(hands) };
}

const namespaceManifest = (name: string): SentObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

async function startConsumer(kind: ServerName, name: string, providerKubeconfig: string): Promise<Consumer> {
  const cluster = await startCluster(kind, name);
  const { server, hands, uid } = cluster;
  for (const file of (await readdir(crdsFolder)).filter((each) => each.endsWith('.yaml')))
    await hands.create(resources.crds, parse(await readFile(join(crdsFolder, file), 'utf8')) as SentObject);
  for (const ref of [resources.connections, resources.clusterBindings, resources.bindings])
    await until(`${ref.resource} are served`, () => hands.list(ref));
  for (const namespace of ['kbind', NAMESPACE]) await hands.create(resources.namespaces, namespaceManifest(namespace));
  await hands.create(resources.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'kbind', name: CONNECTION },
    data: { kubeconfig: base64(providerKubeconfig) },
  });
  const target = parseForeignKubeconfig(await server.addUser(PRODUCT), egress);
  const forwarderKubeconfig = await server.addUser(FORWARDER);
  return {
    ...cluster,
    fleet: { name, uid, paused: false, target },
    forwarderKubeconfig,
    forwarder: undefined,
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export interface BenchOptions {
  readonly server: ServerName;
  readonly consumers?: number;
  /** APIs that the provider exports. */
  readonly exported?: readonly ResourceRef[];
  /** Containers of each function that reconciles; several by default, each with a memory of its own. */
  readonly containers?: number;
}

interface Container {
  app: App | undefined;
  busy: boolean;
}

/** The functions, queues and forwarders of one installation in this process, between API servers that count. */
export class BenchCell {
  readonly provider: Cluster;
  readonly consumers: readonly Consumer[];
  readonly queues: Readonly<Record<FlowQueue, BenchQueue>>;
  readonly deadLetters: string[] = [];
  readonly #providerForwarderKubeconfig: string;
  readonly #containers: Readonly<Record<FlowQueue, Container[]>>;
  readonly #pumping = new Set<FlowQueue>();
  readonly #apps: App[] = [];
  #failed = 0;
  #stopped = false;

  private constructor(clusters: {
    readonly provider: Cluster;
    readonly consumers: readonly Consumer[];
    readonly providerForwarderKubeconfig: string;
    readonly containers: number | undefined;
  }) {
    this.provider = clusters.provider;
    this.consumers = clusters.consumers;
    this.#providerForwarderKubeconfig = clusters.providerForwarderKubeconfig;
    const containers = (name: FlowQueue): Container[] =>
      Array.from({ length: clusters.containers ?? FUNCTIONS[name].containers }, () => ({
        app: undefined,
        busy: false,
      }));
    this.#containers = {
      control: containers('control'),
      instances: containers('instances'),
      work: containers('work'),
    };
    this.queues = {
      control: new BenchQueue('control'),
      instances: new BenchQueue('instances'),
      work: new BenchQueue('work'),
    };
    for (const name of FLOWING) this.queues[name].onMessage = () => this.#pump(name);
  }

  /** Servers with everything but a Connection. */
  static async start({ server, consumers = 1, exported = [widgets], containers }: BenchOptions): Promise<BenchCell> {
    const provider = await startCluster(server, 'provider');
    const kubeconfig = await provider.server.addUser(PRODUCT);
    for (const ref of exported) {
      await provider.hands.create(resources.crds, crdManifest(ref));
      await until(`the provider serves ${ref.resource}`, () => provider.hands.list(ref));
    }
    await provider.hands.create(resources.namespaces, namespaceManifest('kbind'));
    const started: Consumer[] = [];
    for (let index = 0; index < consumers; index += 1)
      started.push(await startConsumer(server, `consumer-${index}`, kubeconfig));
    const providerForwarderKubeconfig = await provider.server.addUser(FORWARDER);
    return new BenchCell({ provider, consumers: started, providerForwarderKubeconfig, containers });
  }

  /** The consumer, where there is one. */
  get consumer(): Consumer {
    const [first] = this.consumers;
    if (first === undefined) throw new Error('a cell without consumers');
    return first;
  }

  /** A process of the product, whose requests and messages are counted. */
  compose(queues: Queues = this.#port()): App {
    const app = compose(config, {
      queues,
      registry: registryOf(this.consumers.map(({ fleet }) => fleet)),
      log: silentLogger,
      metrics: { count: () => undefined, measure: () => undefined, flush: () => undefined },
    });
    this.#apps.push(app);
    return app;
  }

  #port(): Queues {
    return {
      send: (name, messages) => {
        for (const message of messages) {
          if (name === 'deadLetters') this.deadLetters.push(message.body);
          else this.queues[name].send(message);
        }
        return Promise.resolve();
      },
      backlog: () => this.#backlog(),
    };
  }

  /** After a round trip to SQS. */
  async #backlog(): Promise<number> {
    await new Promise((resolve) => setTimeout(resolve, ROUND_TRIP_MS));
    return this.queues.instances.waiting;
  }

  async startForwarder(consumer: Consumer = this.consumer): Promise<Forwarder> {
    const client = clientOf(consumer.forwarderKubeconfig);
    const running = createForwarder({
      client,
      clusterUid: consumer.uid,
      openProvider: createOpenProvider({ consumer: this.#ownSecret(client), clock: systemClock, egress }),
      sink: this.#sink(),
      clock: systemClock,
      log: silentLogger,
    });
    consumer.forwarder = { running, client };
    await running.start();
    return running;
  }

  async stopForwarder(consumer: Consumer = this.consumer): Promise<void> {
    await consumer.forwarder?.running.stop();
    await consumer.forwarder?.client.close();
    consumer.forwarder = undefined;
  }

  /** The Secret's kubeconfig with the forwarder's own user: on the provider, too, its requests are told apart. */
  #ownSecret(client: KubeClient): KubeClient {
    const data = { kubeconfig: base64(this.#providerForwarderKubeconfig) };
    return {
      ...client,
      async find(ref, key, options) {
        const found = await client.find(ref, key, options);
        return found === undefined || ref.resource !== 'secrets' ? found : { ...found, data };
      },
    };
  }

  #sink(): Sink {
    return {
      send: (batch) => {
        for (const { queue, message, change } of batch) {
          if (message.type === 'reconcile') this.queues[queue].send(reconcileMessage(message, change).message);
          else if (message.type === 'heartbeat') this.queues[queue].send(heartbeatMessage(message).message);
          else this.queues[queue].send(workMessage(message).message);
        }
        return Promise.resolve([]);
      },
      backlog: () => this.#backlog(),
    };
  }

  /** A minute's tick of all clusters. */
  async tick(event: TickEvent = {}): Promise<void> {
    await this.#appOf('work').handlers.tick(event);
  }

  #appOf(name: FlowQueue): App {
    const [container] = this.#containers[name];
    if (container === undefined) throw new Error('a function without containers');
    container.app ??= this.compose();
    return container.app;
  }

  #pump(name: FlowQueue): void {
    if (this.#pumping.has(name) || this.#stopped) return;
    this.#pumping.add(name);
    // What one sender puts in together is given out together.
    setImmediate(() => {
      this.#pumping.delete(name);
      for (const container of this.#containers[name]) {
        if (container.busy || this.#stopped) continue;
        const taken = this.queues[name].receive();
        if (taken === undefined) return;
        void this.#invoke(name, container, taken);
      }
    });
  }

  async #invoke(
    name: FlowQueue,
    container: Container,
    taken: NonNullable<ReturnType<BenchQueue['receive']>>,
  ): Promise<void> {
    container.busy = true;
    container.app ??= this.compose();
    const { timeoutMs } = FUNCTIONS[name];
    const end = Date.now() + timeoutMs;
    const handler: QueueHandler = container.app.handlers[name];
    const answer = await handler(batchEvent(taken.batch), { getRemainingTimeInMillis: () => end - Date.now() });
    const failed = new Set(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    this.#failed += failed.size;
    container.busy = false;
    this.queues[name].settle(taken, failed, timeoutMs * 6);
  }

  /** Resolves once nothing was sent, delivered or under way for that long; what is delayed counts if it is asked for. */
  async settled({ quietMs = 250, delayed = false, limitMs = 600_000 } = {}): Promise<void> {
    let activity = -1;
    let since = Date.now();
    const deadline = Date.now() + limitMs;
    for (;;) {
      const now = FLOWING.reduce((sum, name) => {
        const { counts, ready, inFlight, delayed: later } = this.queues[name];
        if (ready + inFlight + (delayed ? later : 0) > 0) since = Date.now();
        return sum + counts.sent + counts.delivered;
      }, 0);
      if (now !== activity) since = Date.now();
      activity = now;
      if (Date.now() - since >= quietMs) return;
      if (Date.now() > deadline) throw new Error('the cell does not come to rest');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Forgets what waits for its time: nothing else may run while single invocations are counted. The cell must be at rest. */
  forgetDelayed(): void {
    for (const name of FLOWING) this.queues[name].clear();
  }

  /** Does something and says what it cost on both sides and at the queues. */
  async measure(work: () => Promise<unknown>, consumer: Consumer = this.consumer): Promise<Measured> {
    const marks = await this.#marks(consumer);
    const before = structuredClone(this.#counts());
    const letters = this.deadLetters.length;
    const use = await markUse();
    const startedAt = performance.now();
    await work();
    const ms = performance.now() - startedAt;
    const processes = await useSince(use);
    const now = this.#counts();
    const queues = Object.fromEntries(
      FLOWING.map((name) => [name, minus(now[name], before[name])]),
    ) as unknown as Measured['queues'];
    return {
      ms,
      consumer: await consumer.server.since(marks[0]),
      provider: await this.provider.server.since(marks[1]),
      queues,
      deadLetters: this.deadLetters.length - letters,
      processes,
    };
  }

  #marks(consumer: Consumer): Promise<[Mark, Mark]> {
    return Promise.all([consumer.server.mark(), this.provider.server.mark()]);
  }

  #counts(): Record<FlowQueue, QueueCounts> {
    const { control, instances, work } = this.queues;
    return { control: control.counts, instances: instances.counts, work: work.counts };
  }

  /** Items that a handler reported as failed, ever. */
  get failedItems(): number {
    return this.#failed;
  }

  async connect(consumer: Consumer = this.consumer): Promise<void> {
    await consumer.hands.create(resources.connections, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: 'Connection',
      metadata: { name: CONNECTION },
      spec: { kubeconfigSecretRef: { namespace: 'kbind', name: CONNECTION }, schema: { source: 'CRD' } },
    });
  }

  async bind(name: string, apis: readonly string[], consumer: Consumer = this.consumer): Promise<void> {
    await consumer.hands.create(resources.clusterBindings, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: 'ClusterBinding',
      metadata: { name },
      spec: { connectionRef: { name: CONNECTION }, apis: apis.map((api) => ({ name: api })) },
    });
  }

  untilBound(name: string, consumer: Consumer = this.consumer): Promise<void> {
    return this.untilReady(resources.clusterBindings, name, consumer);
  }

  async untilReady(ref: ResourceRef, name: string, consumer: Consumer = this.consumer): Promise<void> {
    await until(`${ref.kind} ${name} is Ready`, async () => {
      const { status } = await consumer.hands.get(ref, { name });
      const { conditions } = (status ?? {}) as { conditions?: Condition[] };
      return findCondition(conditions, 'Ready')?.status === 'True';
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const consumer of this.consumers) await this.stopForwarder(consumer);
    for (const name of FLOWING) this.queues[name].clear();
    await until('handlers have ended', () =>
      Promise.resolve(FLOWING.every((name) => this.#containers[name].every(({ busy }) => !busy))),
    );
    await Promise.all(this.#apps.map((app) => app.close()));
    for (const { hands, server } of [...this.consumers, this.provider]) {
      await hands.close();
      await server.stop();
    }
  }
}

const minus = (now: QueueCounts, before: QueueCounts): QueueCounts => ({
  sent: now.sent - before.sent,
  deduplicated: now.deduplicated - before.deduplicated,
  delivered: now.delivered - before.delivered,
  invocations: now.invocations - before.invocations,
});

/** A registry that never fails: what stands in it is no part of this. */
function registryOf(clusters: readonly FleetCluster[]): FleetRegistry {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    list: () => Promise.resolve({ clusters, unresolved: [] }),
    lookup: (uid) => {
      const cluster = clusters.find((each) => each.uid === uid);
      return Promise.resolve(cluster === undefined ? { found: 'unknown' } : { found: 'cluster', cluster });
    },
    heartbeat: () => Promise.resolve('recorded'),
    swept: nothing,
    sweepAsked: nothing,
    held: nothing,
    distrust: () => undefined,
  };
}
