import * as z from 'zod/mini';
import { errorClasses, KbindError, type ErrorClass } from '../model/errors.ts';
import { keyText } from '../model/api.ts';
import { requestKey, type ReconcileRequest, type SweepRequest } from '../model/request.ts';
import { describeIssues, readBoundedJson, reconcileSchema, sweepSchema } from './codec.ts';
import { deadLetterGroup, deadLetterId } from './ids.ts';
import type { QueueMessage } from './queues.ts';

/**
 * What is kept of work that was given up: enough to see why, group by error and replay; never object contents or
 * credentials.
 */

/** Work that has a chain of attempts. */
export type ChainedRequest = ReconcileRequest | SweepRequest;

/** An error as logs and dead letters show it: cut, without control characters. */
export interface ErrorRecord {
  readonly class: ErrorClass;
  readonly message: string;
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
  readonly verb?: string | undefined;
  readonly api?: string | undefined;
  /** `namespace/name` of the object that the failing request was about. */
  readonly object?: string | undefined;
  readonly side?: 'consumer' | 'provider' | undefined;
}

export interface DeadLetter {
  readonly v: 1;
  readonly type: 'dead-letter';
  /** Absent for a message that could not be read. */
  readonly request?: ChainedRequest | undefined;
  /** The body of a message that could not be read, cut. */
  readonly body?: string | undefined;
  /** Epoch milliseconds. */
  readonly firstFailure: number;
  readonly lastFailure: number;
  /** Failed attempts, the last one included. */
  readonly attempts: number;
  readonly error: ErrorRecord;
  /** Flowchart nodes that the last attempt passed, each with its answer. */
  readonly trace: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}

/** The longest dead letter, bytes. What is cut is the trace, from its middle. */
export const MAX_DEAD_LETTER_BYTES = 16 * 1024;
const MAX_ERROR_TEXT = 512;
const MAX_TRACE_LINE = 200;
const MAX_RAW_BODY = 4096;
const CUT = '…';

/** Foreign text made safe for a line: control characters become blanks, the rest is cut. */
export function plainText(text: string, max: number): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
  return plain.length > max ? `${plain.slice(0, max)}${CUT}` : plain;
}

const optionalText = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : plainText(text, MAX_ERROR_TEXT);

/** The typed error as it is shown. */
export function errorRecord({ errorClass, message, details }: KbindError): ErrorRecord {
  return {
    class: errorClass,
    message: plainText(message, MAX_ERROR_TEXT),
    status: details.status,
    reason: optionalText(details.reason),
    verb: details.verb,
    api: optionalText(details.api),
    object: details.key === undefined ? undefined : plainText(keyText(details.key), MAX_ERROR_TEXT),
    side: details.side,
  };
}

/** The one line that names the work, for groups and ids. */
export function chainKey(request: ChainedRequest): string {
  return request.type === 'reconcile' ? requestKey(request) : `${request.cluster}|sweep|${request.id}`;
}

function cutTrace(trace: readonly string[], keep: number): string[] {
  if (trace.length <= keep) return [...trace];
  const head = Math.ceil(keep / 2);
  const left = trace.length - keep;
  return [...trace.slice(0, head), `${CUT} ${left} steps ${CUT}`, ...trace.slice(trace.length - (keep - head))];
}

/** The letter's body; a long trace is cut from its middle until it fits, the identity never. */
export function encodeDeadLetter(letter: DeadLetter): string {
  const trace = letter.trace.map((line) => plainText(line, MAX_TRACE_LINE));
  for (let keep = trace.length; ; keep = Math.floor(keep / 2)) {
    const body = JSON.stringify({ ...letter, trace: cutTrace(trace, keep) });
    if (keep === 0 || Buffer.byteLength(body) <= MAX_DEAD_LETTER_BYTES) return body;
  }
}

/**
 * A letter about work that was given up; its id is the key and the first failure, so that a chain leaves one.
 * @param refused the version of the object that was refused: with it, all chains of that version that failed at once leave one
 */
export function deadLetterMessage(
  letter: DeadLetter & { readonly request: ChainedRequest },
  refused?: string,
): QueueMessage {
  const key = chainKey(letter.request);
  // A chain that has failed before, or that a replay began, is known by its time: its letter must not be taken for an earlier one.
  const isFresh = letter.request.firstFailure === undefined;
  return {
    body: encodeDeadLetter(letter),
    group: deadLetterGroup(key),
    deduplicationId: deadLetterId(key, isFresh && refused !== undefined ? refused : letter.firstFailure),
  };
}

/** A letter about a message that could not be read; its id is the message's. */
export function unreadableMessage(
  record: { readonly messageId: string; readonly body: string; readonly sentAt: number },
  error: KbindError,
  context: { readonly now: number; readonly versions: Readonly<Record<string, string>> },
): QueueMessage {
  const letter: DeadLetter = {
    v: 1,
    type: 'dead-letter',
    body: plainText(record.body, MAX_RAW_BODY),
    firstFailure: record.sentAt,
    lastFailure: context.now,
    attempts: 1,
    error: errorRecord(error),
    trace: [],
    versions: context.versions,
  };
  return {
    body: encodeDeadLetter(letter),
    // Each by itself: one that nobody can replay must not stand before the others.
    group: deadLetterGroup(record.messageId),
    deduplicationId: deadLetterId(record.messageId, record.sentAt),
  };
}

const text = z.string().check(z.maxLength(2 * MAX_RAW_BODY));

const deadLetterSchema = z.strictObject({
  v: z.literal(1),
  type: z.literal('dead-letter'),
  request: z.optional(z.discriminatedUnion('type', [reconcileSchema, sweepSchema])),
  body: z.optional(text),
  firstFailure: z.int(),
  lastFailure: z.int(),
  attempts: z.int(),
  error: z.strictObject({
    class: z.enum(errorClasses),
    message: text,
    status: z.optional(z.int()),
    reason: z.optional(text),
    verb: z.optional(text),
    api: z.optional(text),
    object: z.optional(text),
    side: z.optional(z.enum(['consumer', 'provider'])),
  }),
  trace: z.array(text),
  versions: z.record(z.string(), text),
});

/**
 * Reads a dead letter.
 * @throws KbindError class `malformed` for what is none: a raw body that the queue's own redrive put there, for example
 */
export function parseDeadLetter(body: string): DeadLetter {
  const parsed = deadLetterSchema.safeParse(readBoundedJson(body));
  if (!parsed.success) throw new KbindError('malformed', describeIssues(parsed.error));
  return parsed.data;
}
