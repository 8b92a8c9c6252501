import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import type { HeartbeatRequest, ReconcileRequest, Request, SweepRequest } from '../model/request.ts';
import { describeIssues, parseMessage } from './codec.ts';
import { MAX_INGEST_BODY_BYTES, MAX_INGEST_MESSAGES } from './signed-request.ts';

/** The body of a signed request: keys and the changes that they report. Groups and deduplication ids are made on arrival. */

/** What a forwarder may say. */
export type IngestMessage = ReconcileRequest | HeartbeatRequest | SweepRequest;

export interface IngestItem {
  readonly message: IngestMessage;
  /** Names the change that it reports; goes into the deduplication id (design.md, rule 3). */
  readonly change: string;
}

const MAX_CHANGE = 512;

const bodySchema = z.strictObject({
  v: z.literal(1),
  items: z
    .array(z.strictObject({ message: z.unknown(), change: z.string().check(z.minLength(1), z.maxLength(MAX_CHANGE)) }))
    .check(z.minLength(1), z.maxLength(MAX_INGEST_MESSAGES)),
});

/** A message of a body that is not taken, by its place. */
export class RefusedItem extends KbindError {
  readonly index: number;

  constructor(index: number, message: string) {
    super('malformed', `item ${index}: ${message}`);
    this.index = index;
  }
}

/** The body that carries these items. */
export const encodeIngestBody = (items: readonly IngestItem[]): string => JSON.stringify({ v: 1, items });

function parseJson(body: string): unknown {
  if (Buffer.byteLength(body) > MAX_INGEST_BODY_BYTES) throw new KbindError('malformed', 'the body is too large');
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new KbindError('malformed', 'the body is not JSON', {}, error);
  }
}

/**
 * The items of a body. Throws class `malformed` for a body of another form, {@link RefusedItem} for a message that no
 * forwarder sends.
 */
export function parseIngestBody(body: string): readonly IngestItem[] {
  const parsed = bodySchema.safeParse(parseJson(body));
  if (!parsed.success) throw new KbindError('malformed', describeIssues(parsed.error));
  return parsed.data.items.map(({ message, change }, index) => ({ message: readItem(message, index), change }));
}

function readItem(message: unknown, index: number): IngestMessage {
  const request = parse(message, index);
  if (!isFirst(request)) throw new RefusedItem(index, 'not what a forwarder sends');
  return request;
}

function parse(message: unknown, index: number): Request {
  try {
    // As text, through the one reader of messages: its limits and its rules on keys hold here too.
    return parseMessage(JSON.stringify(message) ?? '');
  } catch (error) {
    throw new RefusedItem(index, error instanceof KbindError ? error.message : 'cannot be read');
  }
}

/** First requests only: chains, cursors and what waits are made on our side of the webhook. */
function isFirst(request: Request): request is IngestMessage {
  if (request.type === 'heartbeat') return true;
  if (request.type !== 'reconcile' && request.type !== 'sweep') return false;
  const { attempt, firstFailure, waited } = request;
  if ((attempt ?? 0) !== 0 || firstFailure !== undefined || waited !== undefined) return false;
  return request.type === 'reconcile' || request.cursor === undefined;
}
