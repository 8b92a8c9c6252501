import { startFauxqs, type FauxqsServer } from 'fauxqs';
import { resolveReferences, type CloudFacts, type QueueFacts } from './stack/cloudformation.ts';
import type { DeclaredQueue, DeclaredStack } from './stack/serverless-file.ts';

/** The account number that the emulated queues live in. */
export const LOCAL_ACCOUNT = '000000000000';

/** What lies in a queue now. */
export interface QueueDepth {
  /** Ready to be received. */
  readonly ready: number;
  /** Received and neither deleted nor given back. */
  readonly inFlight: number;
  /** Sent with a delay that is not over. */
  readonly delayed: number;
}

/** The stack's queues, emulated in this process. */
export interface LocalQueues {
  /** Base URL of the SQS API. */
  readonly endpoint: string;
  readonly facts: CloudFacts;
  /** The declared attributes as the emulator has them, by logical id. */
  attributes(logicalId: string): Readonly<Record<string, string>>;
  depth(logicalId: string): QueueDepth;
  /** Bodies of the messages that are ready, oldest first; for people and tests that look into dead letters. */
  bodies(logicalId: string): readonly string[];
  stop(): Promise<void>;
}

/** Starts the emulator on a free port of the loopback interface and makes every declared queue with its attributes. */
export async function startQueues(stack: DeclaredStack): Promise<LocalQueues> {
  const server = await startFauxqs({ port: 0, logger: false, defaultRegion: stack.region });
  const endpoint = `http://127.0.0.1:${server.port}`;
  const facts: CloudFacts = {
    region: stack.region,
    account: LOCAL_ACCOUNT,
    tables: stack.tables,
    queues: new Map(stack.queues.map((queue) => [queue.logicalId, factsOf(queue, stack.region, endpoint)])),
  };
  try {
    for (const queue of stack.queues) {
      server.createQueue(queue.name, { region: stack.region, attributes: attributesOf(queue, facts) });
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { endpoint, facts, ...inspection(server, facts), stop: () => server.stop() };
}

function factsOf(queue: DeclaredQueue, region: string, endpoint: string): QueueFacts {
  return {
    name: queue.name,
    url: `${endpoint}/${LOCAL_ACCOUNT}/${queue.name}`,
    arn: `arn:aws:sqs:${region}:${LOCAL_ACCOUNT}:${queue.name}`,
  };
}

/** CloudFormation properties as SQS attributes: texts all, objects as JSON. */
function attributesOf(queue: DeclaredQueue, facts: CloudFacts): Record<string, string> {
  const resolved = resolveReferences(queue.properties, facts) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(resolved)
      .filter(([name]) => name !== 'Tags')
      // SQS knows no `FifoQueue: false`.
      .filter(([name, value]) => !(name === 'FifoQueue' && value === false))
      .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}

function inspection(server: FauxqsServer, facts: CloudFacts): Pick<LocalQueues, 'attributes' | 'depth' | 'bodies'> {
  const look = (logicalId: string) => {
    const queue = facts.queues.get(logicalId);
    const found = queue === undefined ? undefined : server.inspectQueue(queue.name);
    if (found === undefined) throw new Error(`${logicalId} is no queue of this stack`);
    return found;
  };
  return {
    attributes: (logicalId) => look(logicalId).attributes,
    depth: (logicalId) => {
      const { ready, inflight, delayed } = look(logicalId).messages;
      return { ready: ready.length, inFlight: inflight.length, delayed: delayed.length };
    },
    bodies: (logicalId) => look(logicalId).messages.ready.map((message) => message.body),
  };
}
