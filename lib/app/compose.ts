import { SQSClient } from '@aws-sdk/client-sqs';
import { systemClock, type Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import { holderOf } from '../fleet/lease.ts';
import type { IngestKeyring } from '../fleet/ingest-keys.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import type { Sink } from '../forwarder/sink.ts';
import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { createClusterLimits } from '../queue/batch.ts';
import { createBreaker } from '../queue/breaker.ts';
import type { Queues } from '../queue/queues.ts';
import { createSqsQueues } from '../queue/sqs.ts';
import { createProviders } from '../reconcile/providers.ts';
import { identityMapper, type Events, type World } from '../reconcile/world.ts';
import { abortableProviders, abortableSide } from './abortable-client.ts';
import type { Config } from './config.ts';
import { controllers } from './controllers.ts';
import { createCounters, type Counters } from './counters.ts';
import type { Controllers, Engine, Occasion } from './engine.ts';
import { createFleet } from './fleet.ts';
import { createIngestHandler, type IngestHandler } from './ingest-handler.ts';
import { createLogger } from './logging.ts';
import { createReconcileHandler, type QueueHandler } from './reconcile-handler.ts';
import { COMPONENT, Sessions, type Session, type WrapClient } from './sessions.ts';
import { createTell } from './tell.ts';
import { createTickHandler, type TickHandler } from './tick-handler.ts';
import { versions } from './versions.ts';
import { createWorkHandler } from './work-handler.ts';

/** Parts that tests and the local runner put in place of the real ones. */
export interface Overrides {
  readonly clock?: Clock;
  /** Chance, in [0, 1). */
  readonly random?: () => number;
  readonly queues?: Queues;
  readonly registry?: FleetRegistry;
  readonly keyring?: IngestKeyring;
  /** Where ingest puts what it takes in. */
  readonly sink?: Sink;
  readonly log?: Logger;
  readonly metrics?: Counters;
  readonly events?: Events;
  /** Stands around every client, of consumers and providers: to count requests, or to make them fail. */
  readonly wrapClient?: WrapClient;
  readonly controllers?: Partial<Controllers>;
}

export interface App {
  readonly config: Config;
  readonly registry: FleetRegistry;
  readonly queues: Queues;
  readonly handlers: {
    readonly control: QueueHandler;
    readonly instances: QueueHandler;
    readonly work: QueueHandler;
    readonly tick: TickHandler;
    readonly ingest: IngestHandler;
  };
  /** Ends all connections. Handlers must not run any more. */
  close(): Promise<void>;
}

/** Builds the whole application: all wiring is here. Makes no request. */
export function compose(config: Config, overrides: Overrides = {}): App {
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLogger(config);
  const sqs = createSqsClient(config);
  const queues = overrides.queues ?? createSqsQueues(sqs, config.queueUrls);
  const fleet = createFleet(config, clock);
  const registry = overrides.registry ?? fleet.registry;
  const { allowLoopback } = config;
  const holder = holderOf(config.installation, config.stage);
  const distrust = (uid: string): void => registry.distrust(uid);
  const sessions = new Sessions({ clock, log, allowLoopback, holder, distrust, wrapClient: overrides.wrapClient });
  const metrics = overrides.metrics ?? createCounters(config);
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
  return {
    config,
    registry,
    queues,
    handlers: handlersOf(engine, config, {
      keyring: overrides.keyring ?? fleet.keyring,
      sink: overrides.sink ?? createSqsSink({ client: sqs, urls: config.queueUrls, log }),
    }),
    async close() {
      await sessions.close();
      sqs.destroy();
      fleet.close();
    },
  };
}

function handlersOf(
  engine: Engine,
  { perCluster }: Config,
  ingest: { readonly keyring: IngestKeyring; readonly sink: Sink },
): App['handlers'] {
  const { clock, log, metrics } = engine;
  const limits = createClusterLimits(perCluster);
  return {
    control: createReconcileHandler(engine, 'control', limits),
    instances: createReconcileHandler(engine, 'instances', limits),
    work: createWorkHandler(engine, limits),
    tick: createTickHandler(engine),
    ingest: createIngestHandler({ ...ingest, clock, log, metrics }),
  };
}

/** The SDK finds credentials, and what is not configured, by its own rules. */
function createSqsClient({ region, sqsEndpoint }: Config): SQSClient {
  return new SQSClient({
    ...(region === undefined ? {} : { region }),
    ...(sqsEndpoint === undefined ? {} : { endpoint: sqsEndpoint }),
  });
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
