import { SendMessageBatchCommand, type SendMessageBatchRequestEntry, type SQSClient } from '@aws-sdk/client-sqs';
import { KbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import { readBacklog } from '../queue/backlog.ts';
import { heartbeatMessage, reconcileMessage, workMessage, type QueueMessage } from '../queue/queues.ts';
import { pendingKey } from './pending.ts';
import type { ForwarderMessage, ForwarderQueue, Outgoing, Sink } from './sink.ts';

export interface SqsSinkOptions {
  /** Its own retries cover requests that failed whole for a moment. */
  readonly client: SQSClient;
  readonly urls: Readonly<Record<ForwarderQueue, string>>;
  readonly log: Logger;
}

/** How long one request may take, its own retries included. */
const SEND_TIMEOUT_MS = 20_000;

/** The sink that puts messages on Amazon SQS, with the groups and deduplication ids of lib/queue. */
export function createSqsSink({ client, urls, log }: SqsSinkOptions): Sink {
  return {
    backlog: ({ signal }) =>
      readBacklog(client, urls.instances, AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)])),
    async send(batch, { signal }) {
      const queue = batch[0]?.queue;
      const entries = toEntries(batch, log);
      if (queue === undefined || entries.length === 0) return [];
      const command = new SendMessageBatchCommand({ QueueUrl: urls[queue], Entries: entries });
      try {
        // The SDK waits for ever by itself, and a lane of the outbox with it.
        const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
        const { Successful, Failed } = await client.send(command, { abortSignal });
        for (const { Code } of Failed ?? []) log.warn('queue refused a message', { queue, code: Code });
        // Fail closed: what is not named as taken was not taken.
        const taken = new Set(Successful?.map(({ Id }) => Id));
        return entries.filter(({ Id }) => !taken.has(Id)).map(({ Id }) => Number(Id));
      } catch (error) {
        throw new KbindError('unavailable', `queue ${queue}: ${(error as Error).message}`, {}, error);
      }
    },
  };
}

type Entry = SendMessageBatchRequestEntry & { readonly Id: string };

function toEntries(batch: readonly Outgoing[], log: Logger): Entry[] {
  return batch.flatMap((outgoing, position) => {
    const message = addressed(outgoing, log);
    if (message === undefined) return [];
    const { body, group, deduplicationId } = message;
    return {
      Id: String(position),
      MessageBody: body,
      ...(group === undefined ? {} : { MessageGroupId: group }),
      ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
    };
  });
}

/** A message that nobody could read would be sent in vain for ever: it is named and left. */
function addressed({ message, change }: Outgoing, log: Logger): QueueMessage | undefined {
  try {
    return queueMessage(message, change);
  } catch (error) {
    log.error('message cannot be sent', { key: pendingKey(message), error: (error as Error).message });
    return undefined;
  }
}

function queueMessage(message: ForwarderMessage, change: string): QueueMessage {
  if (message.type === 'reconcile') return reconcileMessage(message, change).message;
  return message.type === 'heartbeat' ? heartbeatMessage(message).message : workMessage(message).message;
}
