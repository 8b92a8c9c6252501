import { DeleteMessageBatchCommand, ReceiveMessageCommand, type Message, type SQSClient } from '@aws-sdk/client-sqs';
import type { Logger } from '../model/log.ts';
import type { LocalFunction } from './lambda/invoke.ts';
import { sqsEvent } from './lambda/events.ts';
import { failedIds } from './item-failures.ts';
import type { QueueFacts } from './stack/cloudformation.ts';
import type { DeclaredMapping } from './stack/serverless-file.ts';

/** Seconds that one receive waits for messages: the longest that SQS allows. */
const LONG_POLL_SECONDS = 20;
/** Invocations side by side where serverless.yml sets no limit; Lambda starts with five pollers. */
const DEFAULT_CONCURRENCY = 5;
/** Pause after a receive that failed, ms. */
const RECEIVE_RETRY_MS = 200;

/** One delivered batch, told when its handler has ended. */
export interface Delivery {
  readonly functionName: string;
  readonly messages: readonly Message[];
  /** Message ids that stay in the queue. */
  readonly failed: ReadonlySet<string>;
  /** What the handler threw, if it did. */
  readonly error: unknown;
  readonly milliseconds: number;
}

export interface EventSourceOptions {
  readonly mapping: DeclaredMapping;
  readonly queue: QueueFacts;
  readonly region: string;
  readonly client: SQSClient;
  readonly target: LocalFunction;
  readonly log: Logger;
  readonly onDelivery: (delivery: Delivery) => void;
}

/** A running event source mapping. */
export interface EventSource {
  /** Receives nothing more, then waits for the handlers that run. */
  stop(): Promise<void>;
}

/**
 * Does what Lambda's pollers do: long-polls one queue, invokes the function with each batch, up to the declared number
 * side by side, and deletes what succeeded. What failed stays until its visibility timeout is over; the queue redrives
 * it. The queue itself keeps the order within a message group: it gives out nothing of a group that is in flight.
 */
export function startEventSource(options: EventSourceOptions): EventSource {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const limit = options.mapping.maximumConcurrency ?? DEFAULT_CONCURRENCY;
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      if (running.size >= limit) {
        await Promise.race(running);
        continue;
      }
      const messages = await receive(options, stopping.signal);
      if (messages.length === 0) continue;
      const run = deliver(options, messages).finally(() => running.delete(run));
      running.add(run);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await loop;
      await Promise.all(running);
    },
  };
}

async function receive(options: EventSourceOptions, signal: AbortSignal): Promise<readonly Message[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl: options.queue.url,
    MaxNumberOfMessages: options.mapping.batchSize,
    WaitTimeSeconds: LONG_POLL_SECONDS,
    MessageSystemAttributeNames: ['All'],
    MessageAttributeNames: ['All'],
  });
  try {
    const answer = await options.client.send(command, { abortSignal: signal });
    return answer.Messages ?? [];
  } catch (error) {
    if (signal.aborted) return [];
    options.log.error('receiving from the queue failed', { queue: options.queue.name, error: String(error) });
    await new Promise((resolve) => setTimeout(resolve, RECEIVE_RETRY_MS));
    return [];
  }
}

async function deliver(options: EventSourceOptions, messages: readonly Message[]): Promise<void> {
  const startedAt = performance.now();
  let failed: ReadonlySet<string>;
  let thrown: unknown;
  try {
    const answer = await options.target.invoke(sqsEvent(messages, { arn: options.queue.arn, region: options.region }));
    failed = options.mapping.reportsItemFailures ? failedIds(answer, messages) : new Set();
  } catch (error) {
    thrown = error;
    failed = new Set(messages.map((message) => message.MessageId ?? ''));
    options.log.error('a function failed; its messages come back after their visibility timeout', {
      function: options.target.declared.name,
      error: error instanceof Error ? error.message : String(error),
    });
  }
  await deleteAll(
    options,
    messages.filter((message) => !failed.has(message.MessageId ?? '')),
  );
  const milliseconds = Math.round(performance.now() - startedAt);
  options.onDelivery({ functionName: options.target.declared.name, messages, failed, error: thrown, milliseconds });
}

/** A message whose deletion fails comes again, as in SQS: handlers bear that. */
async function deleteAll(options: EventSourceOptions, messages: readonly Message[]): Promise<void> {
  if (messages.length === 0) return;
  try {
    const answer = await options.client.send(
      new DeleteMessageBatchCommand({
        QueueUrl: options.queue.url,
        Entries: messages.map((message, index) => ({ Id: String(index), ReceiptHandle: message.ReceiptHandle ?? '' })),
      }),
    );
    for (const { Message: reason } of answer.Failed ?? [])
      options.log.warn('a handled message could not be deleted', { queue: options.queue.name, error: reason });
  } catch (error) {
    options.log.warn('handled messages could not be deleted', { queue: options.queue.name, error: String(error) });
  }
}
