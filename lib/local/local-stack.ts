import { SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../model/clock.ts';
import { systemClock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import { startHttpFront, type HttpFront } from './http-front.ts';
import { lambdaEnvironment, type LambdaEnvironment } from './environment.ts';
import { startEventSource, type Delivery, type EventSource } from './event-source.ts';
import { loadHandler, localFunction, type LambdaHandler, type LocalFunction } from './lambda/invoke.ts';
import { startQueues, type LocalQueues } from './queues.ts';
import { startSchedule, type RunningSchedule } from './schedule.ts';
import { resolveReferences, type QueueFacts } from './stack/cloudformation.ts';
import {
  readServerlessFile,
  type DeclaredFunction,
  type DeclaredMapping,
  type DeclaredStack,
} from './stack/serverless-file.ts';

/** What the runner calls the stage, unless told. */
const LOCAL_STAGE = 'local';

export interface LocalStackOptions {
  readonly serverlessFile: string;
  readonly stage?: string;
  /** Added to what serverless.yml declares. */
  readonly env?: Readonly<Record<string, string>>;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Handlers by function name, instead of the files that serverless.yml names. */
  readonly handlers?: Readonly<Record<string, LambdaHandler>>;
  readonly onDelivery?: (delivery: Delivery) => void;
  readonly onFired?: (functionName: string, error: unknown) => void;
}

/** How often a function ran since the start. */
export interface FunctionCounts {
  readonly invocations: number;
  /** Messages that it was given, repeated deliveries included. */
  readonly messages: number;
  /** Messages that stayed in the queue. */
  readonly failures: number;
  /** Invocations that threw or ran out of time. */
  readonly errors: number;
}

/** The stack of a serverless.yml, running on this machine. */
export interface LocalStack {
  readonly declared: DeclaredStack;
  readonly queues: LocalQueues;
  /** An SQS client of these queues. */
  readonly sqs: SQSClient;
  /** Base URL of the HTTP API; undefined when no function has a route. */
  readonly httpUrl: string | undefined;
  counts(): Readonly<Record<string, FunctionCounts>>;
  /** Stops schedules, then pollers, waits for the handlers that run, then the queues and what is in them. */
  stop(): Promise<void>;
}

/** Makes the queues, then starts what serverless.yml connects to them. On an error nothing is left running. */
export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const declared = readServerlessFile(options.serverlessFile, { stage: options.stage ?? LOCAL_STAGE });
  const queues = await startQueues(declared);
  const sqs = new SQSClient({
    endpoint: queues.endpoint,
    region: declared.region,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  const counts = new Map(declared.functions.map(({ name }) => [name, emptyCounts()]));
  const environments: LambdaEnvironment[] = [];
  try {
    const functions = await loadFunctions(declared, queues, options, environments);
    const bound = functions.map((target) => bind(target, queues));
    const wiring = { declared, queues, sqs, counts, options };
    const front = await startFront(functions, wiring);
    const running = [...front, ...bound.flatMap((item) => start(item, wiring))];
    return {
      declared,
      queues,
      sqs,
      httpUrl: front[0]?.url,
      counts: () => Object.fromEntries([...counts].map(([name, count]) => [name, { ...count }])),
      stop: () => stopAll({ running, functions, environments, sqs, queues }),
    };
  } catch (error) {
    for (const environment of environments.toReversed()) environment.leave();
    sqs.destroy();
    await queues.stop();
    throw error;
  }
}

type MutableCounts = { -readonly [Name in keyof FunctionCounts]: number };
const emptyCounts = (): MutableCounts => ({ invocations: 0, messages: 0, failures: 0, errors: 0 });

async function loadFunctions(
  stack: DeclaredStack,
  queues: LocalQueues,
  options: LocalStackOptions,
  environments: LambdaEnvironment[],
): Promise<readonly LocalFunction[]> {
  const functions: LocalFunction[] = [];
  for (const declared of stack.functions) {
    const environment = lambdaEnvironment(environmentOf(declared, stack, queues, options));
    environments.push(environment);
    environment.enter();
    const handler = options.handlers?.[declared.name] ?? (await loadHandler(declared));
    functions.push(localFunction(stack, declared, handler, () => environment.enter()));
  }
  return functions;
}

function environmentOf(
  declared: DeclaredFunction,
  stack: DeclaredStack,
  queues: LocalQueues,
  options: LocalStackOptions,
): Record<string, string> {
  const resolved = resolveReferences(declared.environment, queues.facts) as Record<string, unknown>;
  return {
    ...Object.fromEntries(Object.entries(resolved).map(([name, value]) => [name, String(value)])),
    AWS_REGION: stack.region,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_ENDPOINT_URL_SQS: queues.endpoint,
    AWS_LAMBDA_FUNCTION_NAME: `${stack.service}-${stack.stage}-${declared.name}`,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(declared.memoryMb),
    ...options.env,
  };
}

/** A function with the queues that it is fed from. */
interface BoundFunction {
  readonly target: LocalFunction;
  readonly sources: readonly { readonly mapping: DeclaredMapping; readonly queue: QueueFacts }[];
}

/** Looks everything up before anything runs, so that a mistake in the file leaves nothing half started. */
function bind(target: LocalFunction, queues: LocalQueues): BoundFunction {
  const sources = target.declared.mappings.map((mapping) => ({ mapping, queue: queueOf(mapping.arn, queues) }));
  return { target, sources };
}

interface Wiring {
  readonly declared: DeclaredStack;
  readonly queues: LocalQueues;
  readonly sqs: SQSClient;
  readonly counts: ReadonlyMap<string, MutableCounts>;
  readonly options: LocalStackOptions;
}

function start({ target, sources }: BoundFunction, wiring: Wiring): (EventSource | RunningSchedule)[] {
  const { declared, sqs, options } = wiring;
  const { name, schedules } = target.declared;
  const region = declared.region;
  const pollers = sources.map((source) =>
    startEventSource({
      ...source,
      region,
      client: sqs,
      target,
      log: options.log,
      onDelivery: (delivery) => {
        countDelivery(wiring.counts.get(name), delivery);
        options.onDelivery?.(delivery);
      },
    }),
  );
  const clock = options.clock ?? systemClock;
  const onFired = (error: unknown): void => {
    countFiring(wiring.counts.get(name), error);
    options.onFired?.(name, error);
  };
  return [
    ...pollers,
    ...schedules.map(({ everyMs }) => startSchedule({ everyMs, region, target, clock, log: options.log, onFired })),
  ];
}

/** One HTTP API for all routes, or none. */
async function startFront(functions: readonly LocalFunction[], wiring: Wiring): Promise<readonly HttpFront[]> {
  const routed = functions.flatMap((target) => target.declared.routes.map((route) => ({ route, target })));
  if (routed.length === 0) return [];
  const { counts, options } = wiring;
  const onCalled = (name: string, error: unknown): void => countFiring(counts.get(name), error);
  return [await startHttpFront({ routed, clock: options.clock ?? systemClock, log: options.log, onCalled })];
}

function queueOf(arn: unknown, queues: LocalQueues): QueueFacts {
  const wanted = resolveReferences(arn, queues.facts);
  const found = [...queues.facts.queues.values()].find((queue) => queue.arn === wanted);
  if (found === undefined) throw new Error(`serverless.yml: an event names no queue of this stack: ${String(wanted)}`);
  return found;
}

function countDelivery(counts: MutableCounts | undefined, delivery: Delivery): void {
  if (counts === undefined) return;
  counts.invocations += 1;
  counts.messages += delivery.messages.length;
  counts.failures += delivery.failed.size;
  if (delivery.error !== undefined) counts.errors += 1;
}

function countFiring(counts: MutableCounts | undefined, error: unknown): void {
  if (counts === undefined) return;
  counts.invocations += 1;
  if (error !== undefined) counts.errors += 1;
}

interface Running {
  readonly running: readonly (EventSource | RunningSchedule | HttpFront)[];
  readonly functions: readonly LocalFunction[];
  readonly environments: readonly LambdaEnvironment[];
  readonly sqs: SQSClient;
  readonly queues: LocalQueues;
}

async function stopAll({ running, functions, environments, sqs, queues }: Running): Promise<void> {
  await Promise.all(running.map((source) => source.stop()));
  await Promise.all(functions.map((target) => target.settled()));
  // In reverse, because each remembers what was there before it.
  for (const environment of environments.toReversed()) environment.leave();
  sqs.destroy();
  await queues.stop();
}
