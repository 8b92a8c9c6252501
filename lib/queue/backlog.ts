import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { KbindError } from '../model/errors.ts';

/**
 * Messages that wait at a queue to be given out, about: SQS's ApproximateNumberOfMessages, which may lag behind. What is in
 * flight or delayed is not among them.
 * @throws KbindError class `unavailable` when the queue does not say
 */
export async function readBacklog(client: SQSClient, url: string, abortSignal?: AbortSignal): Promise<number> {
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['ApproximateNumberOfMessages'] });
  let said: string | undefined;
  try {
    const { Attributes } = await client.send(command, abortSignal === undefined ? {} : { abortSignal });
    said = Attributes?.['ApproximateNumberOfMessages'];
  } catch (error) {
    throw new KbindError('unavailable', `backlog: ${(error as Error).message}`, {}, error);
  }
  const backlog = Number(said ?? Number.NaN);
  if (!Number.isSafeInteger(backlog)) throw new KbindError('unavailable', 'backlog: the queue does not say');
  return backlog;
}
