import type { Clock } from '../model/clock.ts';
import { toKbindError, type KbindError } from '../model/errors.ts';
import type { Logger, LogFields, Metrics } from '../model/log.ts';
import type { Outcome } from '../model/outcome.ts';
import { MAX_ATTEMPTS, retrySeconds, waitSeconds } from './backoff.ts';
import {
  chainKey,
  deadLetterMessage,
  errorRecord,
  unreadableMessage,
  type ChainedRequest,
  type DeadLetter,
} from './dead-letters.ts';
import { sendAll, workMessage, type Queues } from './queues.ts';
import { retryPolicy } from './retry-policy.ts';

/**
 * THE switch: what came of a piece of work becomes ack, delayed copy or dead letter, with a metric and a log line. What can
 * not be done so is thrown, and the batch loop reports the item as failed.
 */

/** What a run of a piece of work ended in. */
export type Result =
  | { readonly type: 'outcome'; readonly outcome: Outcome }
  | { readonly type: 'error'; readonly error: KbindError }
  /** Nobody's work any more: a paused or removed cluster. Counted, acknowledged. */
  | { readonly type: 'dropped'; readonly reason: string }
  /** It never started: no time left, or its cluster is left alone for now. No attempt, and no wait of its chain. */
  | { readonly type: 'postponed'; readonly reason: string; readonly seconds: number };

/** What is to be done about a message. */
export type Verdict =
  | { readonly type: 'ack'; readonly metric: SettleMetric; readonly reason: string }
  | {
      readonly type: 'requeue';
      readonly metric: SettleMetric;
      readonly reason: string;
      readonly request: ChainedRequest;
      readonly delaySeconds: number;
    }
  | { readonly type: 'dead-letter'; readonly metric: SettleMetric; readonly reason: string; readonly attempts: number };

/** What a verdict counts as. */
export type SettleMetric = 'Done' | 'Waiting' | 'Retried' | 'Postponed' | 'Dropped' | 'DeadLettered' | 'SweepKeyFailed';

/** Moments and chance that a verdict rests on. */
export interface Circumstances {
  /** When the work was received first, epoch ms: the first failure of a chain that has none yet, alike on redelivery. */
  readonly receivedAt: number;
  /** In [0, 1). */
  readonly chance: number;
}

/** Decides. Pure. */
export function judge(request: ChainedRequest, result: Result, circumstances: Circumstances): Verdict {
  if (result.type === 'outcome') return judgeOutcome(request, result.outcome);
  if (result.type === 'error') return judgeError(request, result.error, circumstances);
  if (result.type === 'dropped') return { type: 'ack', metric: 'Dropped', reason: result.reason };
  return postpone(request, result, circumstances);
}

/** As it was, after at least that long: keys that were put off together do not come back together. */
function postpone(
  request: ChainedRequest,
  { reason, seconds }: { readonly reason: string; readonly seconds: number },
  { chance }: Circumstances,
): Verdict {
  const delaySeconds = Math.max(1, seconds) * (1 + chance);
  return { type: 'requeue', metric: 'Postponed', reason, request, delaySeconds };
}

/** The delayed copy of a wait: no attempt, twice the last wait. */
function waitOn(
  request: ChainedRequest,
  bounds: { firstSeconds: number; maxSeconds: number },
  reason: string,
): Verdict {
  const delaySeconds = waitSeconds(bounds, request.waited);
  return { type: 'requeue', metric: 'Waiting', reason, request: { ...request, waited: delaySeconds }, delaySeconds };
}

function judgeOutcome(request: ChainedRequest, outcome: Outcome): Verdict {
  if (outcome.type === 'done') return { type: 'ack', metric: 'Done', reason: outcome.reason };
  // The reconcile came through: what failed before is behind.
  const { firstFailure: _, ...healed } = request;
  return waitOn({ ...healed, attempt: 0 }, outcome, outcome.reason);
}

function judgeError(request: ChainedRequest, error: KbindError, circumstances: Circumstances): Verdict {
  const reason = error.errorClass;
  const { leftAloneSeconds, retryAfterSeconds } = error.details;
  // The next backstop is the retry of a key that a tick's sweep enqueued, whatever went wrong.
  const noChain: Verdict = { type: 'ack', metric: 'SweepKeyFailed', reason };
  if (leftAloneSeconds !== undefined && !request.retry) return noChain;
  if (leftAloneSeconds !== undefined) return postpone(request, { reason, seconds: leftAloneSeconds }, circumstances);
  const policy = retryPolicy[error.errorClass];
  if (!request.retry && policy.action !== 'wait') return noChain;
  if (policy.action === 'wait') return waitOn(request, policy, reason);
  const attempts = (request.attempt ?? 0) + 1;
  if (policy.action === 'dead-letter' || attempts >= MAX_ATTEMPTS) {
    return { type: 'dead-letter', metric: 'DeadLettered', reason, attempts };
  }
  const { waited: _, ...rest } = request;
  return {
    type: 'requeue',
    metric: 'Retried',
    reason,
    request: { ...rest, attempt: attempts, firstFailure: request.firstFailure ?? circumstances.receivedAt },
    delaySeconds: retrySeconds(attempts - 1, circumstances.chance, retryAfterSeconds),
  };
}

/** What settling needs from outside. */
export interface Settling {
  readonly queues: Queues;
  readonly clock: Clock;
  /** Chance, in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** What runs here, for dead letters. */
  readonly versions: Readonly<Record<string, string>>;
}

/** One run of a piece of work, for the log line. */
export interface Run {
  readonly receivedAt: number;
  readonly startedAt: number;
  /** One per run: joins all log lines of it. */
  readonly reconcileId: string;
  readonly trace: readonly string[];
}

const controllerOf = (request: ChainedRequest): string =>
  request.type === 'reconcile' ? request.controller : request.type;

function requeueMessage(verdict: Verdict & { type: 'requeue' }, now: number): ReturnType<typeof workMessage> {
  const { request, delaySeconds } = verdict;
  if (request.type === 'sweep') return workMessage(request, delaySeconds);
  const dueAt = Math.round(now + delaySeconds * 1000);
  return workMessage({ v: 1, type: 'due', request, dueAt, delaySeconds }, delaySeconds);
}

function letterOf(
  request: ChainedRequest,
  error: KbindError,
  attempts: number,
  run: Run & { now: number },
): DeadLetter {
  return {
    v: 1,
    type: 'dead-letter',
    request,
    firstFailure: request.firstFailure ?? run.receivedAt,
    lastFailure: run.now,
    attempts,
    error: errorRecord(error),
    trace: run.trace,
    versions: {},
  };
}

/** Carries a verdict out. Throws when the queue does not take it. */
async function carryOut(
  request: ChainedRequest,
  verdict: Verdict,
  result: Result,
  context: Settling & { run: Run },
): Promise<void> {
  const now = context.clock.now();
  if (verdict.type === 'requeue') {
    await sendAll(context.queues, [requeueMessage(verdict, now)]);
  } else if (verdict.type === 'dead-letter') {
    const error = result.type === 'error' ? result.error : toKbindError(undefined);
    const letter = letterOf(request, error, verdict.attempts, { ...context.run, now });
    const message = deadLetterMessage({ ...letter, request, versions: context.versions }, error.details.refused);
    await context.queues.send('deadLetters', [message]);
  }
}

function report(request: ChainedRequest, verdict: Verdict, result: Result, context: Settling & { run: Run }): void {
  const { log, metrics, run, clock } = context;
  metrics.count(verdict.metric, 1, { controller: controllerOf(request) });
  const error = result.type === 'error' ? errorRecord(result.error) : undefined;
  if (error !== undefined) metrics.count('ReconcileFailed', 1, { class: error.class });
  const fields: LogFields = {
    reconcileId: run.reconcileId,
    key: chainKey(request),
    controller: controllerOf(request),
    verdict: verdict.type,
    counted: verdict.metric,
    reason: verdict.reason,
    attempt: request.attempt ?? 0,
    retry: request.retry,
    tookMs: Math.round(clock.now() - run.startedAt),
    trace: run.trace,
    ...(verdict.type === 'requeue' ? { delaySeconds: verdict.delaySeconds } : {}),
    ...(error === undefined
      ? {}
      : {
          errorClass: error.class,
          errorMessage: error.message,
          errorStatus: error.status,
          errorVerb: error.verb,
          errorApi: error.api,
          errorObject: error.object,
          errorSide: error.side,
        }),
  };
  if (verdict.type === 'dead-letter') log.error('work ended in a dead letter', fields);
  else if (error === undefined) log.info('work settled', fields);
  else log.warn('work failed', fields);
}

/**
 * Settles one piece of work: returns once the queue has acknowledged what follows from the result.
 * @throws what the queue threw; the message must then be reported as failed
 */
export async function settle(request: ChainedRequest, result: Result, run: Run, context: Settling): Promise<Verdict> {
  const circumstances = { receivedAt: run.receivedAt, chance: context.random() };
  const verdict = judge(request, result, circumstances);
  await carryOut(request, verdict, result, { ...context, run });
  report(request, verdict, result, { ...context, run });
  return verdict;
}

/**
 * A message that no reconcile can serve: a dead letter with the reason, never dropped and never retried.
 * @throws what the queue threw; the message must then be reported as failed
 */
export async function settleMalformed(
  record: { readonly messageId: string; readonly body: string; readonly sentAt: number },
  error: KbindError,
  context: Settling,
): Promise<void> {
  const { queues, clock, versions, log, metrics } = context;
  await queues.send('deadLetters', [unreadableMessage(record, error, { now: clock.now(), versions })]);
  metrics.count('Malformed', 1);
  log.error('message could not be read', { messageId: record.messageId, errorMessage: errorRecord(error).message });
}
