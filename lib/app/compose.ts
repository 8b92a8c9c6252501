import { holderOf } from '../fleet/lease.ts';
import type { IngestKeyring } from '../fleet/ingest-keys.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import type { Sink } from '../forwarder/sink.ts';
import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { createClusterLimits } from '../queue/batch.ts';
import { createBreaker } from '../queue/breaker.ts';
import type { ReconcileRequest } from '../model/request.ts';
import type { Queues } from '../queue/queues.ts';
import type { ChainedRequest } from '../queue/dead-letters.ts';
import type { DeadQueues } from '../replay/dead-queues.ts';
import type { Finding } from '../replay/examine.ts';
import { createSqsDeadQueues } from '../replay/sqs-dead-queues.ts';
import { createProviders } from '../reconcile/providers.ts';
import { identityMapper, type Events, type World } from '../reconcile/world.ts';
import { abortableProviders, abortableSide } from './abortable-client.ts';
import type { Config } from './config.ts';
import { controllers } from './controllers.ts';
import { createContainer, type Container, type ContainerOverrides } from './container.ts';
import type { Controllers, Engine, Occasion } from './engine.ts';
import { examine, explain, inspect, type ExplainOptions, type Explanation } from './explain.ts';
import { createIngestHandler, type IngestHandler } from './ingest-handler.ts';
import { createReplayHandler, type ReplayHandler } from './replay-handler.ts';
import { createReconcileHandler, type QueueHandler } from './reconcile-handler.ts';
import { COMPONENT, Sessions, type Session, type WrapClient } from './sessions.ts';
import { createTell } from './tell.ts';
import { createTickHandler, type TickHandler } from './tick-handler.ts';
import { versions } from './versions.ts';
import { createWorkHandler } from './work-handler.ts';

/** Parts that tests and the local runner put in place of the real ones. */
export interface Overrides extends ContainerOverrides {
  /** Chance, in [0, 1). */
  readonly random?: () => number;
  /** Where ingest puts what it takes in. */
  readonly sink?: Sink;
  readonly events?: Events;
  /** Stands around every client, of consumers and providers: to count requests, or to make them fail. */
  readonly wrapClient?: WrapClient;
  /** `look`: clusters that belong to no installation are not taken. */
  readonly lease?: 'hold' | 'look';
  /** Where dead letters are read. */
  readonly deadQueues?: DeadQueues;
  readonly controllers?: Partial<Controllers>;
}

export interface App {
  readonly config: Config;
  readonly registry: FleetRegistry;
  readonly queues: Queues;
  readonly deadQueues: DeadQueues;
  /** What a reconcile of a key would do now, and why: a dry run. Never throws for what the clusters say. */
  explain(request: ReconcileRequest, options: ExplainOptions): Promise<Explanation>;
  /** The same in one line, for dead letters. */
  examine(request: ChainedRequest, options: ExplainOptions): Promise<Finding>;
  /**
   * Does something in the world of a cluster, paused or not, in which nothing can be written.
   * @throws KbindError class `absent` for a cluster that the fleet does not know, and what `use` throws
   */
  inspect<T>(uid: string, options: ExplainOptions, use: (world: World) => Promise<T>): Promise<T>;
  readonly handlers: {
    readonly control: QueueHandler;
    readonly instances: QueueHandler;
    readonly work: QueueHandler;
    readonly tick: TickHandler;
    readonly ingest: IngestHandler;
    readonly replay: ReplayHandler;
  };
  /** Ends all connections. Handlers must not run any more. */
  close(): Promise<void>;
}

/** Builds the whole application: all wiring is here and in container.ts. Makes no request. */
export function compose(config: Config, overrides: Overrides = {}): App {
  const container = createContainer(config, overrides);
  const app = composeIn(container, overrides);
  return {
    ...app,
    async close() {
      await app.close();
      container.close();
    },
  };
}

/** The same in a container that somebody else closes, after it. */
export function composeIn(container: Container, overrides: Overrides = {}): App {
  const { config, clock, log, metrics, queues, registry, sqs } = container;
  const { wrapClient, lease } = overrides;
  const sessions = new Sessions({
    clock,
    log,
    allowLoopback: config.allowLoopback,
    holder: holderOf(config.installation, config.stage),
    lease,
    distrust: (uid) => registry.distrust(uid),
    wrapClient,
  });
  const engine: Engine = {
    queues,
    clock,
    random: overrides.random ?? Math.random,
    log,
    metrics,
    versions,
    registry,
    breaker: createBreaker(clock),
    controllers: { ...controllers, ...overrides.controllers },
    inWorld: (cluster, occasion, use) =>
      sessions.use(cluster, (session) =>
        use(worldOf(session, occasion, { queues, clock, metrics, events: overrides.events })),
      ),
  };
  const deadQueues = overrides.deadQueues ?? createSqsDeadQueues(sqs, config.queueUrls);
  return {
    config,
    registry,
    queues,
    deadQueues,
    explain: (request, options) => explain(engine, request, options),
    examine: (request, options) => examine(engine, request, options),
    inspect: (uid, options, use) => inspect(engine, uid, options, use),
    handlers: handlersOf(engine, config, {
      deadQueues,
      keyring: container.keyring,
      sink: overrides.sink ?? createSqsSink({ client: sqs, urls: config.queueUrls, log }),
    }),
    close: () => sessions.close(),
  };
}

function handlersOf(
  engine: Engine,
  { perCluster }: Config,
  { deadQueues, ...ingest }: { readonly keyring: IngestKeyring; readonly sink: Sink; readonly deadQueues: DeadQueues },
): App['handlers'] {
  const { clock, log, metrics } = engine;
  const limits = createClusterLimits(perCluster);
  return {
    control: createReconcileHandler(engine, 'control', limits),
    instances: createReconcileHandler(engine, 'instances', limits),
    work: createWorkHandler(engine, limits),
    tick: createTickHandler(engine),
    ingest: createIngestHandler({ ...ingest, clock, log, metrics }),
    replay: createReplayHandler(engine, deadQueues),
  };
}

type Shared = Pick<Engine, 'queues' | 'clock' | 'metrics'> & { readonly events: Events | undefined };

/** The world of one message: warm parts, seen through what this message may believe and how long it may take. */
function worldOf(session: Session, occasion: Occasion, { queues, clock, metrics, events }: Shared): World {
  const { sentAt, arrived, signal, trace, log, visit } = occasion;
  const reads = session.reads.viewFor(sentAt, arrived);
  const providers = visit.guard(createProviders(session.pool, reads));
  return {
    cluster: session.side.uid,
    consumer: abortableSide(session.side, signal),
    providers: abortableProviders(providers, signal),
    reads,
    tell: createTell(queues),
    events: events ?? session.events,
    clock,
    log,
    metrics,
    trace,
    signal,
    mapper: identityMapper,
    component: COMPONENT,
  };
}
