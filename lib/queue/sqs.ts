import { SendMessageBatchCommand, type SendMessageBatchRequestEntry, type SQSClient } from '@aws-sdk/client-sqs';
import pLimit from 'p-limit';
import { KbindError } from '../model/errors.ts';
import { readBacklog } from './backlog.ts';
import type { QueueMessage, QueueName, Queues } from './queues.ts';

/** Amazon SQS behind the {@link Queues} port. */

const MAX_BATCH = 10;
/** 256 KiB a batch, less room for ids and attributes. */
const MAX_BATCH_BYTES = 256 * 1024 - 4096;
/** Batches of one call that are under way together. */
const BATCHES_AT_ONCE = 4;

type Entry = SendMessageBatchRequestEntry & { readonly Id: string };

const toEntry = (message: QueueMessage, index: number): Entry => ({
  Id: String(index),
  MessageBody: message.body,
  ...(message.group === undefined ? {} : { MessageGroupId: message.group }),
  ...(message.deduplicationId === undefined ? {} : { MessageDeduplicationId: message.deduplicationId }),
  ...(message.delaySeconds === undefined ? {} : { DelaySeconds: message.delaySeconds }),
});

/** Cuts messages into batches of at most ten and at most 256 KiB, in order. */
export function toBatches(messages: readonly QueueMessage[]): Entry[][] {
  const batches: Entry[][] = [];
  let bytes = 0;
  for (const [index, message] of messages.entries()) {
    const size = Buffer.byteLength(message.body);
    const last = batches.at(-1);
    if (last === undefined || last.length === MAX_BATCH || bytes + size > MAX_BATCH_BYTES) {
      batches.push([toEntry(message, index)]);
      bytes = size;
    } else {
      last.push(toEntry(message, index));
      bytes += size;
    }
  }
  return batches;
}

/**
 * @param client its own retries cover requests that failed whole
 * @param urls where each queue lives
 */
export function createSqsQueues(client: SQSClient, urls: Readonly<Record<QueueName, string>>): Queues {
  /** Entries that the queue did not take, with its words. */
  async function sendBatch(queue: QueueName, entries: readonly Entry[]): Promise<{ left: Entry[]; reason: string }> {
    const answer = await client.send(new SendMessageBatchCommand({ QueueUrl: urls[queue], Entries: [...entries] }));
    const taken = new Set(answer.Successful?.map(({ Id }) => Id));
    const reason = answer.Failed?.map(({ Code, Message }) => `${Code ?? ''} ${Message ?? ''}`).join('; ') ?? '';
    return { left: entries.filter(({ Id }) => !taken.has(Id)), reason };
  }

  async function sendWhole(queue: QueueName, entries: readonly Entry[]): Promise<void> {
    const first = await sendBatch(queue, entries);
    if (first.left.length === 0) return;
    const second = await sendBatch(queue, first.left);
    if (second.left.length === 0) return;
    const reason = second.reason.trim().slice(0, 200);
    throw new KbindError('unavailable', `queue ${queue} refused ${second.left.length} messages: ${reason}`);
  }

  return {
    backlog: () => readBacklog(client, urls.instances),
    async send(queue, messages) {
      const limit = pLimit(BATCHES_AT_ONCE);
      const sent = await Promise.allSettled(
        toBatches(messages).map((entries) => limit(() => sendWhole(queue, entries))),
      );
      const failed = sent.find((result) => result.status === 'rejected');
      if (failed === undefined) return;
      const error: unknown = failed.reason;
      if (error instanceof KbindError) throw error;
      throw new KbindError('unavailable', `queue ${queue}: ${(error as Error).message}`, {}, error);
    },
  };
}
