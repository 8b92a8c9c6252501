import type { HeartbeatRequest, ReconcileRequest, Request, WorkRequest } from '../model/request.ts';
import { MAX_DELAY_SECONDS } from './backoff.ts';
import { encodeMessage } from './codec.ts';
import { changeDeduplicationId, heartbeatGroup, messageGroup, requeueDeduplicationId } from './ids.ts';
import type { DueRequest } from '../model/request.ts';

/** The port to the queues, and the messages that travel on them. */
export const queueNames = ['control', 'instances', 'work', 'deadLetters'] as const;
export type QueueName = (typeof queueNames)[number];

export interface QueueMessage {
  readonly body: string;
  /** FIFO queues only: message group and deduplication id. */
  readonly group?: string | undefined;
  readonly deduplicationId?: string | undefined;
  /** Whole seconds up to 900; standard queues only. */
  readonly delaySeconds?: number | undefined;
}

/** A message and where it goes: what sinks and tellers pass around. */
export interface Addressed {
  readonly queue: QueueName;
  readonly message: QueueMessage;
}

export interface Queues {
  /**
   * Resolves only when the queue has acknowledged every message.
   * @throws KbindError class `unavailable` when any was not: some of them may have arrived all the same
   */
  send(queue: QueueName, messages: readonly QueueMessage[]): Promise<void>;
  /**
   * Messages of all clusters that wait at the instances' queue to be given out, about.
   * @throws KbindError class `unavailable` when that cannot be told
   */
  backlog(): Promise<number>;
}

/** The queue that a request travels on. */
export function queueOf(request: Request): 'control' | 'instances' | 'work' {
  if (request.type === 'reconcile') return request.controller === 'instance' ? 'instances' : 'control';
  return request.type === 'heartbeat' ? 'control' : 'work';
}

/** A key for the reconcile queues. `change` as {@link changeDeduplicationId} wants it. */
export function reconcileMessage(request: ReconcileRequest, change: string): Addressed {
  return {
    queue: queueOf(request),
    message: {
      body: encodeMessage(request),
      group: messageGroup(request),
      deduplicationId: changeDeduplicationId(request, change),
    },
  };
}

/** A due requeue on its way back into its group. */
export function forwardedMessage(due: DueRequest): Addressed {
  const { request } = due;
  return {
    queue: queueOf(request),
    message: {
      body: encodeMessage(request),
      group: messageGroup(request),
      deduplicationId: requeueDeduplicationId(due),
    },
  };
}

export function heartbeatMessage(request: HeartbeatRequest): Addressed {
  const group = heartbeatGroup(request.cluster);
  return {
    queue: 'control',
    message: { body: encodeMessage(request), group, deduplicationId: `${group}-${request.at}` },
  };
}

/** A request for `work`, held for that long (cut to what SQS holds: whoever gets it early sends it again). */
export function workMessage(request: WorkRequest, delaySeconds = 0): Addressed {
  // Never early: a key that ran before it was due would find its next requeue in the bucket that it used up itself.
  const delay = Math.min(Math.ceil(delaySeconds), MAX_DELAY_SECONDS);
  return {
    queue: 'work',
    message: delay > 0 ? { body: encodeMessage(request), delaySeconds: delay } : { body: encodeMessage(request) },
  };
}

/** Sends messages for several queues, each queue's together. Throws like {@link Queues.send}. */
export async function sendAll(queues: Queues, addressed: readonly Addressed[]): Promise<void> {
  const byQueue = Map.groupBy(addressed, ({ queue }) => queue);
  await Promise.all(
    [...byQueue].map(([queue, entries]) =>
      queues.send(
        queue,
        entries.map(({ message }) => message),
      ),
    ),
  );
}
