import type { Context, SQSEvent, SQSBatchResponse } from 'aws-lambda';
import { afterEach, describe, expect, it } from 'vitest';
import { send, sendTogether, Stacks, until } from '../../support/local/stacks.ts';

const stacks = new Stacks();
afterEach(() => stacks.stop());

const bodiesOf = (event: SQSEvent): string[] => event.Records.map((record) => record.body);
const failing = (event: SQSEvent, ...bodies: string[]): SQSBatchResponse => ({
  batchItemFailures: event.Records.filter((record) => bodies.includes(record.body)).map((record) => ({
    itemIdentifier: record.messageId,
  })),
});

describe('what a handler is given', () => {
  it('is an SQS event as Lambda makes it', async () => {
    const events: SQSEvent[] = [];
    const stack = await stacks.start({}, { worker: (event) => void events.push(event) });
    const before = Date.now();
    await send(stack, ['a'], () => 'group-1');
    const event = await until('the message arrives', () => events[0]);
    const [record] = event.Records;
    expect(record).toMatchObject({
      body: 'a',
      eventSource: 'aws:sqs',
      eventSourceARN: 'arn:aws:sqs:eu-central-1:000000000000:jobs-local.fifo',
      awsRegion: 'eu-central-1',
      messageAttributes: {},
      attributes: { ApproximateReceiveCount: '1', MessageGroupId: 'group-1', MessageDeduplicationId: '0-a' },
    });
    expect(record?.messageId).toMatch(/^[0-9a-f-]{36}$/);
    expect(record?.receiptHandle).not.toBe('');
    expect(Number(record?.attributes.SentTimestamp)).toBeGreaterThanOrEqual(before);
    expect(Number(record?.attributes.ApproximateFirstReceiveTimestamp)).toBeGreaterThanOrEqual(before);
    expect(record?.attributes.SequenceNumber).toMatch(/^\d{20}$/);
  });

  it("comes with a context whose time runs down by the function's own timeout", async () => {
    const left: number[] = [];
    const names: string[] = [];
    const worker = async (_event: never, context: Context): Promise<void> => {
      names.push(context.functionName, context.invokedFunctionArn);
      left.push(context.getRemainingTimeInMillis());
      await new Promise((resolve) => setTimeout(resolve, 20));
      left.push(context.getRemainingTimeInMillis());
    };
    const stack = await stacks.start({ timeoutSeconds: 7 }, { worker });
    await send(stack, ['a']);
    await until('the handler has ended', () => left.length === 2);
    expect(left[0]).toBeLessThanOrEqual(7000);
    expect(left[0]).toBeGreaterThan(6000);
    expect(left[1]).toBeLessThan(left[0] ?? 0);
    expect(names).toEqual([
      'small-local-worker',
      'arn:aws:lambda:eu-central-1:000000000000:function:small-local-worker',
    ]);
  });

  it('reads the environment that serverless.yml declares, references resolved, and leaves ours alone', async () => {
    const seen: (string | undefined)[] = [];
    const before = process.env['AWS_REGION'];
    const worker = (): void => void seen.push(process.env['JOBS_URL'], process.env['AWS_REGION'], process.env['EXTRA']);
    const stack = await stacks.start({}, { worker }, { env: { EXTRA: 'yes' } });
    await send(stack, ['a']);
    await until('the handler has run', () => seen.length === 3);
    expect(seen).toEqual([stack.queues.facts.queues.get('Jobs')?.url, 'eu-central-1', 'yes']);
    await stack.stop();
    expect(process.env['JOBS_URL']).toBeUndefined();
    expect(process.env['AWS_REGION']).toBe(before);
  });
});

describe('what happens to the messages', () => {
  it('deletes those that succeeded and brings back the failed one only, after its visibility timeout', async () => {
    const deliveries: string[][] = [];
    const receiveCounts: (string | undefined)[] = [];
    const worker = (event: SQSEvent): SQSBatchResponse => {
      deliveries.push(bodiesOf(event));
      receiveCounts.push(event.Records.find((record) => record.body === 'b')?.attributes.ApproximateReceiveCount);
      return deliveries.length === 1 ? failing(event, 'b') : failing(event);
    };
    const stack = await stacks.start({ visibilitySeconds: 1 }, { worker });
    await sendTogether(stack, ['a', 'b', 'c']);
    await until('b is there again', () => deliveries.flat().filter((body) => body === 'b').length === 2);
    await until('the queue is empty', () => isEmpty(stack.queues.depth('Jobs')));
    await until('all are counted', () => stack.counts()['worker']?.messages === 4);
    expect(deliveries.flat().toSorted()).toEqual(['a', 'b', 'b', 'c']);
    expect(receiveCounts.at(-1)).toBe('2');
    expect(stack.counts()['worker']).toMatchObject({ messages: 4, failures: 1, errors: 0 });
  });

  it('brings back the whole batch of a handler that throws', async () => {
    let calls = 0;
    const worker = (): void => {
      calls += 1;
      if (calls === 1) throw new Error('no');
    };
    const stack = await stacks.start({ visibilitySeconds: 1 }, { worker });
    await sendTogether(stack, ['a', 'b']);
    await until('all are handled', () => calls > 1 && isEmpty(stack.queues.depth('Jobs')));
    await until('all are counted', () => stack.counts()['worker']?.messages === 4);
    expect(stack.counts()['worker']).toMatchObject({ failures: 2, errors: 1, messages: 4 });
  });

  it('counts a handler that takes longer than its timeout as failed, and waits for it when it stops', async () => {
    let ended = false;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const worker = async (): Promise<void> => {
      await released;
      ended = true;
    };
    const stack = await stacks.start({ timeoutSeconds: 1 }, { worker });
    await send(stack, ['a']);
    await until('its time is up', () => stack.counts()['worker']?.errors === 1);
    expect(stack.queues.depth('Jobs').inFlight).toBe(1);
    release();
    await stack.stop();
    expect(ended).toBe(true);
  });

  it('redrives a message to the dead letters after the declared number of receives', async () => {
    let calls = 0;
    const worker = (event: SQSEvent): SQSBatchResponse => {
      calls += 1;
      return failing(event, 'poison');
    };
    const stack = await stacks.start({ visibilitySeconds: 1, maxReceiveCount: 2 }, { worker });
    await send(stack, ['poison']);
    await until('it is a dead letter', () => stack.queues.bodies('Dead').length === 1);
    expect(stack.queues.bodies('Dead')).toEqual(['poison']);
    expect(calls).toBe(2);
    expect(isEmpty(stack.queues.depth('Jobs'))).toBe(true);
  });

  it('deletes everything without a response type, whatever the handler answers', async () => {
    const worker = (event: SQSEvent): SQSBatchResponse => failing(event, 'a');
    const stack = await stacks.start({ reportsItemFailures: false }, { worker });
    await send(stack, ['a']);
    await until('it is handled', () => stack.counts()['worker']?.messages === 1);
    expect(isEmpty(stack.queues.depth('Jobs'))).toBe(true);
  });
});

describe('what serverless.yml says', () => {
  it.each([
    { batchSize: 1, largest: 1 },
    { batchSize: 4, largest: 4 },
    { batchSize: 10, largest: 8 },
  ])('gives a function batches of up to $batchSize', async ({ batchSize, largest }) => {
    const sizes: number[] = [];
    const { promise: open, resolve: letGo } = Promise.withResolvers<void>();
    const worker = async (event: SQSEvent): Promise<void> => {
      if (bodiesOf(event).includes('first')) return open;
      sizes.push(event.Records.length);
    };
    // One invocation holds one of the two places, so the rest queues up.
    const stack = await stacks.start({ batchSize, maximumConcurrency: 2 }, { worker });
    await send(stack, ['first']);
    await until('the first is under way', () => stack.queues.depth('Jobs').inFlight === 1);
    await sendTogether(stack, ['1', '2', '3', '4', '5', '6', '7', '8']);
    await until('all others are handled', () => sizes.reduce((sum, size) => sum + size, 0) === 8);
    letGo();
    expect(Math.max(...sizes)).toBe(largest);
  });

  it.each([2, 3])('runs at most maximumConcurrency: %i invocations side by side', async (maximumConcurrency) => {
    let now = 0;
    let most = 0;
    const worker = async (): Promise<void> => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, 30));
      now -= 1;
    };
    const stack = await stacks.start({ batchSize: 1, maximumConcurrency }, { worker });
    await sendTogether(stack, ['1', '2', '3', '4', '5', '6', '7', '8']);
    await until('all are handled', () => stack.counts()['worker']?.messages === 8);
    expect(most).toBe(maximumConcurrency);
  });

  it('never runs one message group twice at a time, and keeps its order', async () => {
    const seen: string[] = [];
    const inFlight = new Set<string>();
    let overlaps = 0;
    const worker = async (event: SQSEvent): Promise<void> => {
      const groups = event.Records.map((record) => record.attributes.MessageGroupId ?? '');
      overlaps += groups.filter((group) => inFlight.has(group)).length;
      for (const group of groups) inFlight.add(group);
      seen.push(...bodiesOf(event));
      await new Promise((resolve) => setTimeout(resolve, 5));
      for (const group of groups) inFlight.delete(group);
    };
    const stack = await stacks.start({ maximumConcurrency: 10 }, { worker });
    const bodies = Array.from({ length: 30 }, (_, index) => `${['x', 'y', 'z'][index % 3]}-${String(index)}`);
    await send(stack, bodies, (body) => body.slice(0, 1));
    await until('all are handled', () => seen.length === bodies.length);
    expect(overlaps).toBe(0);
    for (const group of ['x', 'y', 'z'])
      expect(seen.filter((body) => body.startsWith(group))).toEqual(bodies.filter((body) => body.startsWith(group)));
  });

  it('gives queues the declared attributes', async () => {
    const stack = await stacks.start({ visibilitySeconds: 77, delaySeconds: 3, maxReceiveCount: 9 }, {});
    expect(stack.queues.attributes('Jobs')).toMatchObject({
      VisibilityTimeout: '77',
      DelaySeconds: '3',
      FifoQueue: 'true',
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: 'arn:aws:sqs:eu-central-1:000000000000:dead-local.fifo',
        maxReceiveCount: 9,
      }),
    });
  });

  it('runs standard queues too, with delays per message', async () => {
    const stack = await stacks.start({ fifo: false, delaySeconds: 60 }, {});
    await send(stack, ['later']);
    expect(stack.queues.depth('Jobs')).toEqual({ ready: 0, inFlight: 0, delayed: 1 });
  });

  it('fires schedules once at the start', async () => {
    const events: unknown[] = [];
    const stack = await stacks.start({}, { clock: (event) => void events.push(event) });
    await until('the clock has run', () => stack.counts()['clock']?.invocations === 1);
    expect(events).toEqual([
      expect.objectContaining({
        source: 'aws.events',
        'detail-type': 'Scheduled Event',
        region: 'eu-central-1',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        resources: ['arn:aws:events:eu-central-1:000000000000:rule/clock'],
      }),
    ]);
  });
});

function isEmpty(depth: { ready: number; inFlight: number; delayed: number }): boolean {
  return depth.ready + depth.inFlight + depth.delayed === 0;
}
