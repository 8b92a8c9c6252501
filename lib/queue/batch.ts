import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import pLimit, { type LimitFunction } from 'p-limit';
import { KbindError, toKbindError } from '../model/errors.ts';
import type { Logger, Metrics } from '../model/log.ts';
import { requestKey, type ReconcileRequest, type Request } from '../model/request.ts';
import { parseMessage } from './codec.ts';
import { queueOf, type QueueName } from './queues.ts';

/** The records of a batch that ask for the same piece of work. */
export interface Job {
  readonly request: Request;
  /** When the newest of its messages was sent, epoch ms: cached reads must be younger (design.md, rule 9). */
  readonly sentAt: number;
  /** When the oldest of its messages was first received, epoch ms. */
  readonly receivedAt: number;
}

/** What the batch loop leaves to others. Whatever rejects makes its records failed items. */
export interface BatchWork {
  /** Runs a job and settles it. Ends soon after the signal. */
  run(job: Job, signal: AbortSignal): Promise<void>;
  /** Settles a job that was not started because time is short. */
  postpone(job: Job): Promise<void>;
  /** Settles a record that could not be read. */
  refuse(
    record: { readonly messageId: string; readonly body: string; readonly sentAt: number },
    error: KbindError,
  ): Promise<void>;
}

export interface BatchOptions {
  readonly queue: Exclude<QueueName, 'deadLetters'>;
  /** Milliseconds until the platform ends the invocation. */
  readonly remainingMs: () => number;
  readonly limits: ClusterLimits;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Nothing new is started with less time than this left, ms. */
export const START_RESERVE_MS = 10_000;
/** What still runs is aborted with this left, ms: settling needs the rest. */
export const ABORT_RESERVE_MS = 3_000;

/** How many reconciles of one cluster run side by side in this container. */
export interface ClusterLimits {
  run<T>(cluster: string, work: () => Promise<T>): Promise<T>;
}

export function createClusterLimits(perCluster: number): ClusterLimits {
  const limits = new Map<string, LimitFunction>();
  return {
    async run(cluster, work) {
      const limit = limits.get(cluster) ?? pLimit(perCluster);
      limits.set(cluster, limit);
      try {
        return await limit(work);
      } finally {
        if (limit.activeCount === 0 && limit.pendingCount === 0) limits.delete(cluster);
      }
    },
  };
}

interface OpenJob extends Job {
  readonly records: readonly SQSRecord[];
}

const millis = (text: string | undefined): number | undefined => {
  const value = Number(text);
  return text === undefined || !Number.isFinite(value) ? undefined : value;
};

const sentAtOf = ({ attributes }: SQSRecord): number => millis(attributes.SentTimestamp) ?? 0;
const receivedAtOf = (record: SQSRecord): number =>
  millis(record.attributes.ApproximateFirstReceiveTimestamp) ?? sentAtOf(record);

/** Messages with the same text here ask for the same: undefined never coalesces. */
function coalescingKey(request: Request): string | undefined {
  if (request.type === 'reconcile') return requestKey(request);
  if (request.type === 'heartbeat') return `heartbeat|${request.cluster}`;
  return undefined;
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** Two requests for one key as one: `retry` is their OR, the attempt their highest (design.md, rule 1). */
export function mergeRequests(a: ReconcileRequest, b: ReconcileRequest): ReconcileRequest {
  const { firstFailure: _, waited: __, ...identity } = a;
  const firstFailure = earliest(a.firstFailure, b.firstFailure);
  const waited = Math.max(a.waited ?? 0, b.waited ?? 0);
  return {
    ...identity,
    retry: a.retry || b.retry,
    attempt: Math.max(a.attempt, b.attempt),
    ...(firstFailure === undefined ? {} : { firstFailure }),
    ...(waited === 0 ? {} : { waited }),
  };
}

function mergeJobs(a: OpenJob, b: OpenJob): OpenJob {
  const both = [a.request, b.request] as const;
  const request =
    both[0].type === 'reconcile' && both[1].type === 'reconcile' ? mergeRequests(both[0], both[1]) : b.request;
  return {
    request,
    records: [...a.records, ...b.records],
    sentAt: Math.max(a.sentAt, b.sentAt),
    receivedAt: Math.min(a.receivedAt, b.receivedAt),
  };
}

function readRecord(record: SQSRecord, queue: BatchOptions['queue']): Request {
  const request = parseMessage(record.body);
  const home = queueOf(request);
  if (home === queue) return request;
  throw new KbindError('malformed', `a ${request.type} request of this kind travels on ${home}, not on ${queue}`);
}

interface Sorted {
  readonly jobs: readonly OpenJob[];
  readonly refused: readonly { readonly record: SQSRecord; readonly error: KbindError }[];
}

/** Reads the records and joins those that ask for the same. */
function sortRecords(records: readonly SQSRecord[], queue: BatchOptions['queue']): Sorted {
  const jobs = new Map<string, OpenJob>();
  const refused: { record: SQSRecord; error: KbindError }[] = [];
  for (const record of records) {
    try {
      const request = readRecord(record, queue);
      const key = coalescingKey(request) ?? record.messageId;
      const job = { request, records: [record], sentAt: sentAtOf(record), receivedAt: receivedAtOf(record) };
      const before = jobs.get(key);
      jobs.set(key, before === undefined ? job : mergeJobs(before, job));
    } catch (error) {
      refused.push({ record, error: toKbindError(error) });
    }
  }
  return { jobs: [...jobs.values()], refused };
}

/** A failed item also fails what comes after it in its group: order within a group is the queue's promise. */
function failedItems(records: readonly SQSRecord[], failed: ReadonlySet<string>): SQSBatchResponse {
  const closedGroups = new Set<string>();
  const batchItemFailures = [];
  for (const { messageId, attributes } of records) {
    const group = attributes.MessageGroupId;
    if (!failed.has(messageId) && !(group !== undefined && closedGroups.has(group))) continue;
    batchItemFailures.push({ itemIdentifier: messageId });
    if (group !== undefined) closedGroups.add(group);
  }
  return { batchItemFailures };
}

/** Aborts when the time is nearly up. Whoever gets it must dispose of it. */
function deadline(remainingMs: () => number): { signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), Math.max(0, remainingMs() - ABORT_RESERVE_MS));
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}

/**
 * Handles one batch: same keys once, side by side up to the cluster's limit, nothing new when time is short. Returns only
 * when nothing of it runs any more. Fails closed: a record whose settlement was not proven is a failed item.
 */
export async function handleBatch(event: SQSEvent, work: BatchWork, options: BatchOptions): Promise<SQSBatchResponse> {
  const { jobs, refused } = sortRecords(event.Records, options.queue);
  const settled = new Set<string>();
  using time = deadline(options.remainingMs);

  async function attempt(records: readonly SQSRecord[], step: () => Promise<void>): Promise<void> {
    try {
      await step();
      for (const { messageId } of records) settled.add(messageId);
    } catch (error) {
      options.metrics.count('Unsettled', records.length);
      options.log.error('messages could not be settled', {
        messageIds: records.map(({ messageId }) => messageId),
        errorMessage: toKbindError(error).message,
      });
    }
  }

  const runJob = (job: OpenJob): Promise<void> =>
    attempt(job.records, () =>
      options.limits.run(job.request.type === 'due' ? (job.records[0]?.messageId ?? '') : clusterOf(job.request), () =>
        options.remainingMs() < START_RESERVE_MS ? work.postpone(job) : work.run(job, time.signal),
      ),
    );
  const refuseRecord = ({ record, error }: Sorted['refused'][number]): Promise<void> =>
    attempt([record], () =>
      work.refuse({ messageId: record.messageId, body: record.body, sentAt: sentAtOf(record) }, error),
    );

  await Promise.all([...jobs.map(runJob), ...refused.map(refuseRecord)]);
  const failed = new Set(event.Records.map(({ messageId }) => messageId).filter((id) => !settled.has(id)));
  return failedItems(event.Records, failed);
}

/** The cluster that a request is about. */
export const clusterOf = (request: Request): string =>
  request.type === 'due' ? request.request.cluster : request.cluster;
