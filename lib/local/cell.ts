import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { closeApps } from '../app/app-from-environment.ts';
import { checkFleetDirectory } from '../fleet/directory-files.ts';
import { systemClock } from '../model/clock.ts';
import { silentLogger, type Logger } from '../model/log.ts';
import type { Delivery } from './event-source.ts';
import { startForwarder, type ConsumerCluster, type LocalForwarder } from './forwarders.ts';
import type { LambdaHandler } from './lambda/invoke.ts';
import { startLocalStack, type FunctionCounts, type LocalStack } from './local-stack.ts';
import type { QueueDepth } from './queues.ts';

/** The queues of a cell, as serverless.yml's resources call them. */
export const cellQueues = {
  control: 'ControlQueue',
  instances: 'InstancesQueue',
  work: 'WorkQueue',
  deadLetters: 'DeadLettersQueue',
  workDead: 'WorkDeadQueue',
} as const;
export type CellQueue = keyof typeof cellQueues;
/** Those that work flows through. */
const flowQueues = ['control', 'instances', 'work'] as const;
const queueNames = Object.keys(cellQueues) as CellQueue[];

export interface LocalCellOptions {
  /** Folder with one `NAME.kubeconfig` for each consumer cluster. */
  readonly fleetDir: string;
  /** A local run may talk to clusters on this machine; a deployed cell may not. */
  readonly allowLoopback: boolean;
  /** By default the project's own. */
  readonly serverlessFile?: string | undefined;
  /** Added to the handlers' environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly log?: Logger | undefined;
  /** Handlers by function name, instead of the files that serverless.yml names. */
  readonly handlers?: Readonly<Record<string, LambdaHandler>> | undefined;
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined;
  readonly onConnected?: ((cluster: string, uid: string) => void) | undefined;
  readonly onUnreachable?: ((cluster: string, why: string) => void) | undefined;
}

/** The whole product on this machine: queues, functions, schedules, and a forwarder for each cluster of the fleet. */
export interface LocalCell {
  readonly clusters: readonly string[];
  /** Base URL of the emulated SQS. */
  readonly endpoint: string;
  /** Where signed keys are taken in: the ingest function behind its route. */
  readonly ingestUrl: string | undefined;
  readonly queues: Readonly<Record<CellQueue, { readonly url: string; readonly arn: string; readonly name: string }>>;
  /** What lies in a queue now. */
  depth(queue: CellQueue): QueueDepth;
  /** Bodies of the messages that are ready in a queue: the dead letters, for example. */
  bodies(queue: CellQueue): readonly string[];
  /** How often each function ran, by name. */
  counts(): Readonly<Record<string, FunctionCounts>>;
  /** True while every forwarder's watches of the control plane stand. */
  ready(): boolean;
  /** Resolves once nothing is ready or in flight on control, instances and work; what is delayed does not count. */
  waitIdle(options?: { readonly timeoutMs?: number }): Promise<void>;
  /**
   * Stops in the order of the flow: forwarders deliver what they hold, schedules and pollers end, running handlers
   * finish. What is still queued is thrown away: the next start finds it again. Answers with the number of keys that no
   * queue took.
   */
  stop(): Promise<{ readonly undelivered: number }>;
}

const PROJECT_FILE = join(import.meta.dirname, '..', '..', 'serverless.yml');
const IDLE_TIMEOUT_MS = 60_000;
const IDLE_POLL_MS = 50;
/** A queue counts as idle only after this many looks: a message is in no queue while a handler turns it into the next. */
const IDLE_LOOKS = 3;

/**
 * Starts a cell. Throws class `misconfigured`, one line, for a folder that is missing, empty or holds an unusable kubeconfig,
 * and whatever is wrong with serverless.yml; nothing is left running then. A cluster that does not answer is no error: its
 * forwarder starts once it does.
 */
export async function startLocalCell(options: LocalCellOptions): Promise<LocalCell> {
  const files = await checkFleetDirectory(options.fleetDir, options.allowLoopback);
  const clusters = files.flatMap((file) => ('target' in file ? [file] : []));
  const log = options.log ?? silentLogger;
  const stack = await startLocalStack({
    serverlessFile: options.serverlessFile ?? PROJECT_FILE,
    log,
    env: {
      FLEET_DIR: options.fleetDir,
      // The stack's table is for deployed cells.
      FLEET_TABLE: '',
      ALLOW_LOOPBACK: String(options.allowLoopback),
      // Handlers write structured lines for CloudWatch; here the runner tells what happens.
      LOG_LEVEL: 'SILENT',
      METRICS: 'none',
      ...options.env,
    },
    ...(options.handlers === undefined ? {} : { handlers: options.handlers }),
    ...(options.onDelivery === undefined ? {} : { onDelivery: options.onDelivery }),
  });
  try {
    const queues = queuesOf(stack);
    return cellOf(stack, queues, startForwarders(clusters, { stack, queues, options, log }));
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

function queuesOf(stack: LocalStack): LocalCell['queues'] {
  const found = queueNames.map((name) => {
    const facts = stack.queues.facts.queues.get(cellQueues[name]);
    if (facts === undefined) throw new Error(`serverless.yml declares no queue ${cellQueues[name]}`);
    return [name, facts] as const;
  });
  return Object.fromEntries(found) as unknown as LocalCell['queues'];
}

interface Wiring {
  readonly stack: LocalStack;
  readonly queues: LocalCell['queues'];
  readonly options: LocalCellOptions;
  readonly log: Logger;
}

function startForwarders(clusters: readonly ConsumerCluster[], wiring: Wiring): readonly LocalForwarder[] {
  const { stack, queues, options, log } = wiring;
  return clusters.map((cluster) =>
    startForwarder(cluster, {
      ingest: { url: ingestUrlOf(stack), fleetDir: options.fleetDir },
      sqs: stack.sqs,
      urls: { control: queues.control.url, instances: queues.instances.url, work: queues.work.url },
      allowLoopback: options.allowLoopback,
      clock: systemClock,
      log,
      onConnected: options.onConnected,
      onUnreachable: options.onUnreachable,
    }),
  );
}

function cellOf(stack: LocalStack, queues: LocalCell['queues'], forwarders: readonly LocalForwarder[]): LocalCell {
  const depth = (queue: CellQueue): QueueDepth => stack.queues.depth(cellQueues[queue]);
  let stopped: Promise<{ readonly undelivered: number }> | undefined;
  return {
    clusters: forwarders.map(({ cluster }) => cluster),
    endpoint: stack.queues.endpoint,
    ingestUrl: ingestUrlOf(stack),
    queues,
    depth,
    bodies: (queue) => stack.queues.bodies(cellQueues[queue]),
    counts: () => stack.counts(),
    ready: () => forwarders.every((forwarder) => forwarder.ready()),
    waitIdle: ({ timeoutMs = IDLE_TIMEOUT_MS } = {}) => waitIdle(depth, timeoutMs),
    stop: () => (stopped ??= stopInOrder(stack, forwarders)),
  };
}

function ingestUrlOf({ httpUrl, declared }: LocalStack): string | undefined {
  const route = declared.functions.find(({ name }) => name === 'ingest')?.routes[0];
  return httpUrl === undefined || route === undefined ? undefined : `${httpUrl}${route.path}`;
}

async function stopInOrder(
  stack: LocalStack,
  forwarders: readonly LocalForwarder[],
): Promise<{ readonly undelivered: number }> {
  try {
    const undelivered = await Promise.all(forwarders.map((forwarder) => forwarder.stop()));
    return { undelivered: undelivered.reduce((sum, count) => sum + count, 0) };
  } finally {
    await stack.stop();
    await closeApps();
  }
}

async function waitIdle(depth: (queue: CellQueue) => QueueDepth, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let looks = 0; looks < IDLE_LOOKS; looks += 1) {
    const waiting = flowQueues.filter((queue) => depth(queue).ready + depth(queue).inFlight > 0);
    if (waiting.length > 0) looks = -1;
    if (performance.now() > deadline) throw new Error(`still busy after ${timeoutMs} ms: ${waiting.join(', ')}`);
    await delay(IDLE_POLL_MS);
  }
}
