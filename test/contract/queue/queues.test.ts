import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
  type Message,
} from '@aws-sdk/client-sqs';
import { startFauxqs, type FauxqsServer } from 'fauxqs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { reconcileRequest, type DueRequest } from '../../../lib/model/request.ts';
import { parseMessage } from '../../../lib/queue/codec.ts';
import {
  forwardedMessage,
  reconcileMessage,
  sendAll,
  workMessage,
  type QueueName,
  type Queues,
} from '../../../lib/queue/queues.ts';
import { createSqsQueues } from '../../../lib/queue/sqs.ts';
import { CLUSTER, instanceRequest } from '../../support/queue/events.ts';

/** The Queues port on a real SQS server: FIFO, groups, deduplication, delays, redrive, batches. */

let server: FauxqsServer;
let client: SQSClient;
let urls: Record<QueueName, string>;
let queues: Queues;
let generation = 0;

beforeAll(async () => {
  server = await startFauxqs({ port: 0, logger: false });
  client = new SQSClient({
    endpoint: server.address,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
});

afterAll(async () => {
  client.destroy();
  await server.stop();
});

beforeEach(() => {
  generation += 1;
  const region = 'eu-central-1';
  const fifo = (name: string, extra: Record<string, string> = {}): { queueUrl: string; queueArn: string } =>
    server.createQueue(`${name}-${generation}.fifo`, {
      region,
      attributes: {
        FifoQueue: 'true',
        DeduplicationScope: 'messageGroup',
        FifoThroughputLimit: 'perMessageGroupId',
        ...extra,
      },
    });
  const deadLetters = fifo('dead-letters');
  const redrive = { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetters.queueArn, maxReceiveCount: 2 }) };
  urls = {
    control: fifo('control').queueUrl,
    instances: fifo('instances', redrive).queueUrl,
    work: server.createQueue(`work-${generation}`, { region }).queueUrl,
    deadLetters: deadLetters.queueUrl,
  };
  queues = createSqsQueues(client, urls);
});

async function receive(queue: QueueName, waitSeconds = 0, visibilityTimeout = 30): Promise<Message[]> {
  const answer = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: urls[queue],
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: visibilityTimeout,
      MessageSystemAttributeNames: ['All'],
    }),
  );
  return answer.Messages ?? [];
}

async function remove(queue: QueueName, messages: readonly Message[]): Promise<void> {
  for (const { ReceiptHandle } of messages) {
    await client.send(new DeleteMessageCommand({ QueueUrl: urls[queue], ReceiptHandle }));
  }
}

/** Everything in a queue, taken out. */
async function drain(queue: QueueName): Promise<Message[]> {
  const all: Message[] = [];
  for (let batch = await receive(queue); batch.length > 0; batch = await receive(queue)) {
    all.push(...batch);
    await remove(queue, batch);
  }
  return all;
}

const names = (messages: readonly Message[]): unknown[] =>
  messages.map(({ Body }) => {
    const request = parseMessage(Body ?? '');
    return request.type === 'reconcile' ? request.name : request.type;
  });

it('tells what waits at the instances’ queue: not what is out, nor what waits elsewhere', async () => {
  expect(await queues.backlog()).toBe(0);
  const sent = Array.from({ length: 12 }, (_, n) => reconcileMessage(instanceRequest(`w${n}`), 'u/1'));
  await sendAll(queues, [...sent, workMessage({ v: 1, type: 'sweep', cluster: CLUSTER, id: 's', retry: true })]);
  expect(await queues.backlog()).toBe(12);
  const out = await receive('instances');
  expect(await queues.backlog()).toBe(12 - out.length);
  await remove('instances', out);
  await drain('instances');
  expect(await queues.backlog()).toBe(0);
});

describe('keys on a FIFO queue', () => {
  it('arrive with group, deduplication id and the moment they were sent', async () => {
    const before = Date.now();
    const { message } = reconcileMessage(instanceRequest('w'), 'u/1');
    await queues.send('instances', [message]);
    const [received] = await receive('instances');
    expect(received?.Body).toBe(message.body);
    expect(received?.Attributes).toMatchObject({
      MessageGroupId: message.group,
      MessageDeduplicationId: message.deduplicationId,
    });
    expect(Number(received?.Attributes?.SentTimestamp)).toBeGreaterThanOrEqual(before - 1);
  });

  it('collapse for one change, and do not for the next, nor for another key', async () => {
    const send = (name: string, change: string): Promise<void> =>
      queues.send('instances', [reconcileMessage(instanceRequest(name), change).message]);
    await send('w', 'u/1');
    await send('w', 'u/1');
    await send('w', 'u/2');
    await send('v', 'u/1');
    expect(names(await drain('instances')).toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
      'v',
      'w',
      'w',
    ]);
  });

  it('keep a group closed while one of it is in flight, and others open', async () => {
    await queues.send('instances', [reconcileMessage(instanceRequest('w'), 'u/1').message]);
    const inFlight = await receive('instances');
    expect(names(inFlight)).toEqual(['w']);
    await queues.send('instances', [
      reconcileMessage(instanceRequest('w'), 'u/2').message,
      reconcileMessage(instanceRequest('v'), 'u/1').message,
    ]);
    expect(names(await receive('instances'))).toEqual(['v']);
    await remove('instances', inFlight);
    expect(names(await receive('instances'))).toEqual(['w']);
  });

  it('go to the dead letters after too many receives, raw and in their group', async () => {
    const { message } = reconcileMessage(instanceRequest('w'), 'u/1');
    await queues.send('instances', [message]);
    for (let n = 0; n < 2; n += 1) expect(await receive('instances', 2, 0)).toHaveLength(1);
    expect(await receive('instances')).toEqual([]);
    const [dead] = await receive('deadLetters', 2);
    expect(dead?.Body).toBe(message.body);
    expect(dead?.Attributes?.MessageGroupId).toBe(message.group);
  });
});

describe('requeues', () => {
  it('are held on work for their delay', async () => {
    const due: DueRequest = {
      v: 1,
      type: 'due',
      request: instanceRequest('w'),
      dueAt: Date.now() + 1000,
      delaySeconds: 1,
    };
    const start = performance.now();
    await sendAll(queues, [workMessage(due, 1)]);
    expect(await receive('work')).toEqual([]);
    const [received] = await receive('work', 5);
    expect(parseMessage(received?.Body ?? '')).toEqual(due);
    expect(performance.now() - start).toBeGreaterThan(900);
  });

  it('of one bucket collapse when they are forwarded', async () => {
    const due = (dueAt: number): DueRequest => ({
      v: 1,
      type: 'due',
      request: instanceRequest('w'),
      dueAt,
      delaySeconds: 8,
    });
    for (const dueAt of [16_000, 17_000, 19_999, 20_000]) await sendAll(queues, [forwardedMessage(due(dueAt))]);
    expect(await drain('instances')).toHaveLength(2);
  });
});

describe('many at once', () => {
  it('all arrive, in batches', async () => {
    const requests = Array.from({ length: 57 }, (_, n) => instanceRequest(`w${n}`));
    await sendAll(
      queues,
      requests.map((request) => reconcileMessage(request, 's1')),
    );
    expect(new Set(names(await drain('instances'))).size).toBe(57);
  });

  it('go to the queue of their controller', async () => {
    await sendAll(queues, [
      reconcileMessage(reconcileRequest(CLUSTER, 'connection', { name: 'c' }), 'u/1'),
      reconcileMessage(instanceRequest('w'), 'u/1'),
      workMessage({ v: 1, type: 'refresh', cluster: CLUSTER, id: 'r' }),
    ]);
    expect(names(await drain('control'))).toEqual(['c']);
    expect(names(await drain('instances'))).toEqual(['w']);
    expect(names(await drain('work'))).toEqual(['refresh']);
  });

  it('of large bodies stay under 256 KiB a batch', async () => {
    const filler = 'x'.repeat(120 * 1024);
    await queues.send(
      'work',
      Array.from({ length: 5 }, (_, n) => ({ body: `${n}${filler}` })),
    );
    expect(await drain('work')).toHaveLength(5);
  });
});

describe('a queue that does not take everything', () => {
  it('is told of as unavailable', async () => {
    const missing = createSqsQueues(client, { ...urls, work: `${urls.work}-gone` });
    await expect(missing.send('work', [{ body: 'x' }])).rejects.toMatchObject({ errorClass: 'unavailable' });
  });

  it('a message that it refuses fails the call', async () => {
    const good = reconcileMessage(instanceRequest('w'), 'u/1').message;
    await expect(queues.send('instances', [good, { body: 'x', delaySeconds: 901 }])).rejects.toMatchObject({
      errorClass: 'unavailable',
    });
  });
});

describe('attributes', () => {
  it('of the queues are those that the product relies on', async () => {
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: urls.instances, AttributeNames: ['All'] }),
    );
    expect(Attributes).toMatchObject({ FifoQueue: 'true', DeduplicationScope: 'messageGroup' });
  });
});
