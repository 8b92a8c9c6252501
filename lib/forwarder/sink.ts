import type { HeartbeatRequest, ReconcileRequest, SweepRequest } from '../model/request.ts';

/** The queues that a forwarder may send to. */
export const forwarderQueues = ['control', 'instances', 'work'] as const;
export type ForwarderQueue = (typeof forwarderQueues)[number];

/** What a forwarder may say. */
export type ForwarderMessage = ReconcileRequest | HeartbeatRequest | SweepRequest;

/** One message under way: a key, never an object. */
export interface Outgoing {
  readonly queue: ForwarderQueue;
  readonly message: ForwarderMessage;
  /** Names the change that it reports; goes into the deduplication id (design.md, rule 3). */
  readonly change: string;
}

/** The most that {@link Sink.send} is ever given: the limit of one SQS batch. */
export const MAX_BATCH = 10;

/**
 * Where messages leave the forwarder. One implementation puts them on SQS (sqs-sink.ts); the ingest endpoint is another.
 */
export interface Sink {
  /**
   * Sends up to {@link MAX_BATCH} messages of one queue. Resolves with the positions that the queue did not take (empty:
   * all are safe); throws when it took none. Sending a message twice is harmless.
   */
  send(batch: readonly Outgoing[], options: { readonly signal: AbortSignal }): Promise<readonly number[]>;
  /**
   * Messages of all clusters that wait at the instances' queue to be given out, about: asked during a burst only. Throws
   * where that cannot be told.
   */
  backlog(options: { readonly signal: AbortSignal }): Promise<number>;
}
