import { createHash } from 'node:crypto';
import { requestKey, type DueRequest, type ReconcileRequest } from '../model/request.ts';
import { bucketSeconds } from './backoff.ts';

/**
 * Message groups and deduplication ids (design.md, rules 2–4). SQS holds 128 characters for either, names have 253: both are
 * SHA-256 in hex.
 */

const hash = (...parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** One key, one group: local cluster UID, API or controller, and key. */
export const messageGroup = (request: ReconcileRequest): string => hash('group', requestKey(request));

/** Heartbeats of one cluster: they coalesce among themselves and hold up nobody. */
export const heartbeatGroup = (cluster: string): string => hash('heartbeat', cluster);

/** What a watch event or a teller names its change by. */
export const changeOf = (metadata: { readonly uid: string; readonly resourceVersion: string }): string =>
  `${metadata.uid}/${metadata.resourceVersion}`;

/**
 * The id of a message that an event, a teller or a sweep sends. `change` must differ whenever the world changed, or FIFO
 * swallows the second message for five minutes. `retry` is part of it: of two requests the one that retries must not be lost.
 */
export const changeDeduplicationId = (request: ReconcileRequest, change: string): string =>
  hash('change', messageGroup(request), String(request.retry), change);

/**
 * The id of a requeue that is due: chains of one key whose due times fall into one bucket collapse, the first wins. Delays
 * under 2 s have no bucket; their id names the very moment, so that only redeliveries of one message collapse.
 */
export function requeueDeduplicationId({ request, dueAt, delaySeconds }: DueRequest): string {
  const width = bucketSeconds(delaySeconds);
  const bucket =
    width === undefined
      ? ['at', String(dueAt), String(request.attempt)]
      : [String(width), String(Math.floor(dueAt / (width * 1000)))];
  return hash('due', messageGroup(request), String(request.retry), ...bucket);
}

/** One dead letter per chain of attempts: key and first failure, or key and the version of it that was refused. */
export const deadLetterId = (key: string, chain: number | string): string => hash('dead', key, String(chain));

/** Group of dead letters of one key. */
export const deadLetterGroup = (key: string): string => hash('dead-group', key);

/** A whole number below `range` that is the same for this text always: spreads clusters over time. */
export function spread(text: string, range: number): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) % range;
}
