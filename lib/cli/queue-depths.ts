import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Config } from '../app/config.ts';
import { KbindError } from '../model/errors.ts';

const ATTRIBUTES = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const;

/**
 * How many messages are in each queue, received and delayed ones included; approximate, as queues count.
 * @throws KbindError class `unavailable` where the queues do not answer
 */
export async function countMessages(client: SQSClient, urls: Config['queueUrls']): Promise<Record<string, number>> {
  try {
    const counts = Object.entries(urls).map(async ([name, url]) => [name, await count(client, url)] as const);
    return Object.fromEntries(await Promise.all(counts));
  } catch (error) {
    throw new KbindError('unavailable', `the queues do not answer: ${(error as Error).message}`, {}, error);
  }
}

async function count(client: SQSClient, url: string): Promise<number> {
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...ATTRIBUTES] });
  const { Attributes = {} } = await client.send(command);
  return ATTRIBUTES.reduce((sum, name) => sum + Number(Attributes[name] ?? 0), 0);
}
