import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { KbindError } from '../model/errors.ts';
import { deadQueueNames, type DeadMessage, type DeadQueueName, type DeadQueues } from './dead-queues.ts';

/** Amazon SQS behind the {@link DeadQueues} port. */

const BATCH = 10;
/** A long poll asks every server of the queue: only then does "nothing" mean nothing. Seconds. */
const WAIT_SECONDS = 1;

function inBatches(messages: readonly DeadMessage[]): DeadMessage[][] {
  return deadQueueNames.flatMap((queue) => {
    const own = messages.filter((message) => message.queue === queue);
    return Array.from({ length: Math.ceil(own.length / BATCH) }, (_, n) => own.slice(n * BATCH, (n + 1) * BATCH));
  });
}

async function asked<T>(queue: DeadQueueName, ask: Promise<T>): Promise<T> {
  try {
    return await ask;
  } catch (error) {
    throw new KbindError('unavailable', `queue ${queue}: ${(error as Error).message}`, {}, error);
  }
}

type Urls = Readonly<Record<DeadQueueName, string>>;

/**
 * @param urls where the two queues live
 * @param waitSeconds how long an empty queue is waited for
 */
export function createSqsDeadQueues(client: SQSClient, urls: Urls, waitSeconds = WAIT_SECONDS): DeadQueues {
  return {
    receive: (queue, visibilitySeconds) =>
      receive(client, { queue, url: urls[queue] }, { visibilitySeconds, waitSeconds }),
    async remove(messages) {
      const left: DeadMessage[] = [];
      for (const batch of inBatches(messages)) left.push(...(await removeBatch(client, urls, batch)));
      return left;
    },
    async release(messages) {
      await Promise.allSettled(inBatches(messages).map((batch) => releaseBatch(client, urls, batch)));
    },
    count: (queue) => count(client, { queue, url: urls[queue] }),
  };
}

interface Source {
  readonly queue: DeadQueueName;
  readonly url: string;
}

async function receive(
  client: SQSClient,
  { queue, url }: Source,
  { visibilitySeconds, waitSeconds }: { readonly visibilitySeconds: number; readonly waitSeconds: number },
): Promise<readonly DeadMessage[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl: url,
    MaxNumberOfMessages: BATCH,
    WaitTimeSeconds: waitSeconds,
    VisibilityTimeout: visibilitySeconds,
    MessageSystemAttributeNames: ['SentTimestamp'],
  });
  const { Messages = [] } = await asked(queue, client.send(command));
  return Messages.map(({ MessageId = '', ReceiptHandle = '', Body = '', Attributes }) => ({
    queue,
    id: MessageId,
    receipt: ReceiptHandle,
    body: Body,
    sentAt: Number(Attributes?.SentTimestamp ?? 0),
  }));
}

async function removeBatch(client: SQSClient, urls: Urls, batch: readonly DeadMessage[]): Promise<DeadMessage[]> {
  const queue = batch[0]?.queue ?? 'deadLetters';
  const Entries = batch.map(({ receipt }, n) => ({ Id: String(n), ReceiptHandle: receipt }));
  const answer = await asked(queue, client.send(new DeleteMessageBatchCommand({ QueueUrl: urls[queue], Entries })));
  const removed = new Set(answer.Successful?.map(({ Id }) => Id));
  return batch.filter((_, n) => !removed.has(String(n)));
}

async function releaseBatch(client: SQSClient, urls: Urls, batch: readonly DeadMessage[]): Promise<void> {
  const queue = batch[0]?.queue ?? 'deadLetters';
  const Entries = batch.map(({ receipt }, n) => ({ Id: String(n), ReceiptHandle: receipt, VisibilityTimeout: 0 }));
  await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: urls[queue], Entries }));
}

async function count(client: SQSClient, { queue, url }: Source): Promise<number> {
  const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...names] });
  const { Attributes } = await asked(queue, client.send(command));
  return names.reduce((sum, name) => sum + Number(Attributes?.[name] ?? 0), 0);
}
