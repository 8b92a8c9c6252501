import { SQSClient, type SendMessageBatchCommandInput, type SendMessageBatchCommandOutput } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { outgoing } from '../../../lib/forwarder/mapping.ts';
import { createSqsSink } from '../../../lib/forwarder/sqs-sink.ts';
import type { Outgoing } from '../../../lib/forwarder/sink.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { messageGroup } from '../../../lib/queue/ids.ts';
import { parseMessage } from '../../../lib/queue/codec.ts';

const signal = new AbortController().signal;
const urls = { control: 'https://sqs/control.fifo', instances: 'https://sqs/instances.fifo', work: 'https://sqs/work' };

/** An SQS client whose answers the test gives. */
function sqs(answer: (input: SendMessageBatchCommandInput) => Partial<SendMessageBatchCommandOutput> | object) {
  const sent: SendMessageBatchCommandInput[] = [];
  const client = new SQSClient({ region: 'local', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
  client.middlewareStack.add(
    () => async (args) => {
      const input = args.input as SendMessageBatchCommandInput;
      sent.push(input);
      return Promise.resolve({
        output: { $metadata: {}, ...answer(input) } as SendMessageBatchCommandOutput,
        response: {},
      });
    },
    { step: 'initialize', priority: 'high' },
  );
  return { sent, sink: createSqsSink({ client, urls, log: silentLogger }) };
}
const all = ({ Entries }: SendMessageBatchCommandInput) =>
  ({ Successful: (Entries ?? []).map(({ Id }) => ({ Id })) }) as Partial<SendMessageBatchCommandOutput>;
const request = (name: string) =>
  reconcileRequest('uid-1', 'instance', { namespace: 'default', name }, { api: 'widgets.example.org' });
const key = (name: string, change: string): Outgoing => outgoing(request(name), change);

describe('SQS sink', () => {
  it('sends a batch with the group of each key and an id that carries the change', async () => {
    const { sent, sink } = sqs(all);
    expect(await sink.send([key('a', 'u/1'), key('a', 'u/2'), key('b', 'u/1')], { signal })).toEqual([]);
    const entries = sent[0]?.Entries ?? [];
    expect(sent[0]?.QueueUrl).toBe(urls.instances);
    expect(entries.map(({ MessageBody }) => parseMessage(MessageBody ?? ''))).toEqual([
      request('a'),
      request('a'),
      request('b'),
    ]);
    expect(entries[0]?.MessageGroupId).toBe(messageGroup(request('a')));
    expect(new Set(entries.map(({ MessageDeduplicationId }) => MessageDeduplicationId)).size).toBe(3);
  });

  it('names what the queue did not take, and nothing else', async () => {
    const { sink } = sqs(() => ({
      Successful: [{ Id: '0', MessageId: 'm', MD5OfMessageBody: 'x' }],
      Failed: [{ Id: '1', Code: 'InternalError', SenderFault: false }],
    }));
    expect(await sink.send([key('a', '1'), key('b', '1'), key('c', '1')], { signal })).toEqual([1, 2]);
  });

  it('puts heartbeats on control and sweeps, without group and id, on work', async () => {
    const { sent, sink } = sqs(all);
    const heartbeat = { v: 1, type: 'heartbeat', cluster: 'uid-1', at: 5, watches: 4 } as const;
    const sweep = {
      v: 1,
      type: 'sweep',
      cluster: 'uid-1',
      apis: ['widgets.example.org'],
      id: 'x',
      retry: true,
    } as const;
    await sink.send([{ queue: 'control', message: heartbeat, change: '5' }], { signal });
    await sink.send([{ queue: 'work', message: sweep, change: 'x' }], { signal });
    expect(sent.map(({ QueueUrl }) => QueueUrl)).toEqual([urls.control, urls.work]);
    expect(sent[0]?.Entries?.[0]?.MessageGroupId).toBeDefined();
    expect(sent[1]?.Entries?.[0]?.MessageGroupId).toBeUndefined();
    expect(parseMessage(sent[1]?.Entries?.[0]?.MessageBody ?? '')).toEqual(sweep);
  });

  it('throws when the queue is away', async () => {
    const { sink } = sqs(() => {
      throw new Error('connect ECONNREFUSED');
    });
    await expect(sink.send([key('a', '1')], { signal })).rejects.toThrow(KbindError);
  });

  it('asks the instances’ queue how many messages wait', async () => {
    const { sent, sink } = sqs(() => ({ Attributes: { ApproximateNumberOfMessages: '42' } }));
    expect(await sink.backlog({ signal })).toBe(42);
    expect(sent).toEqual([{ QueueUrl: urls.instances, AttributeNames: ['ApproximateNumberOfMessages'] }]);
  });

  it.each([{}, { Attributes: {} }, { Attributes: { ApproximateNumberOfMessages: 'many' } }])(
    'does not take %j for an empty queue',
    async (answer) => {
      await expect(sqs(() => answer).sink.backlog({ signal })).rejects.toThrow('the queue does not say');
    },
  );

  it('throws when the queue does not let itself be asked', async () => {
    const { sink } = sqs(() => {
      throw new Error('AccessDenied');
    });
    await expect(sink.backlog({ signal })).rejects.toMatchObject({
      errorClass: 'unavailable',
      message: 'backlog: AccessDenied',
    });
  });

  it('leaves a message that nobody could read, and sends the rest', async () => {
    const { sent, sink } = sqs(all);
    expect(await sink.send([key('a/b', '1'), key('c', '1')], { signal })).toEqual([]);
    expect(sent[0]?.Entries).toHaveLength(1);
  });
});
