import type { SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { createSqsQueues, toBatches } from '../../../lib/queue/sqs.ts';

const urls = { control: 'c', instances: 'i', work: 'w', deadLetters: 'd' };

/** A client whose queue refuses each id that often. */
function refusing(times: Record<string, number>): { client: SQSClient; sent: string[][] } {
  const sent: string[][] = [];
  const left = new Map(Object.entries(times));
  const client = {
    send: (command: SendMessageBatchCommand) => {
      const ids = (command.input.Entries ?? []).map(({ Id }) => Id ?? '');
      sent.push(ids);
      const failed = ids.filter((id) => (left.get(id) ?? 0) > 0);
      for (const id of failed) left.set(id, (left.get(id) ?? 0) - 1);
      return Promise.resolve({
        Successful: ids.filter((id) => !failed.includes(id)).map((Id) => ({ Id })),
        Failed: failed.map((Id) => ({ Id, Code: 'InternalError', SenderFault: false })),
      });
    },
  } as unknown as SQSClient;
  return { client, sent };
}

const messages = (count: number): { body: string }[] => Array.from({ length: count }, (_, n) => ({ body: `m${n}` }));

describe('partial failures of a batch', () => {
  it('are sent once more, the failed ones only', async () => {
    const { client, sent } = refusing({ 1: 1, 3: 1 });
    await createSqsQueues(client, urls).send('work', messages(5));
    expect(sent).toEqual([
      ['0', '1', '2', '3', '4'],
      ['1', '3'],
    ]);
  });

  it('that fail again are thrown', async () => {
    const { client } = refusing({ 2: 2 });
    await expect(createSqsQueues(client, urls).send('work', messages(3))).rejects.toMatchObject({
      errorClass: 'unavailable',
      message: expect.stringMatching(/queue work refused 1 messages: InternalError/),
    });
  });

  it('of one batch do not keep the others from being sent', async () => {
    const { client, sent } = refusing({ 0: 2 });
    await expect(createSqsQueues(client, urls).send('work', messages(25))).rejects.toThrow(/refused 1 messages/);
    expect(new Set(sent.flat()).size).toBe(25);
  });

  it('an entry that is in neither list counts as failed', async () => {
    const client = { send: () => Promise.resolve({}) } as unknown as SQSClient;
    await expect(createSqsQueues(client, urls).send('work', messages(1))).rejects.toMatchObject({
      errorClass: 'unavailable',
    });
  });
});

describe('batches', () => {
  it('hold at most ten, in order', () => {
    expect(toBatches(messages(23)).map((batch) => batch.length)).toEqual([10, 10, 3]);
  });

  it('hold at most 256 KiB, counted in bytes', () => {
    const large = { body: 'é'.repeat(60 * 1024) };
    expect(toBatches([large, large, large, large]).map((batch) => batch.length)).toEqual([2, 2]);
  });

  it('are none for nothing', () => {
    expect(toBatches([])).toEqual([]);
  });
});
