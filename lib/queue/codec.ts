import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import { controllers, type Request } from '../model/request.ts';

/**
 * Messages in and out. What arrives is untrusted: strict schemas, bounded sizes, no key that could reach a prototype.
 * Everything refused here is class `malformed` and ends as a dead letter with the reason (design.md, Messages).
 */

/** The longest body that is read or written, bytes: SQS counts 256 KiB with attributes. */
export const MAX_MESSAGE_BYTES = 200 * 1024;

const MAX_NAME = 253;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** `<plural>.<group>`; what it names is looked up, so the pattern only keeps out what could not be a URL segment. */
const API_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/;
/** A path segment name by the API server's own rule: no slash, no percent sign; control characters and blanks never occur. */
const OBJECT_NAME = /^(?!\.{1,2}$)[^\s/%\p{Cc}]+$/u;
const CLUSTER_UID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const DELAY_LIMIT_SECONDS = 86_400;

const clusterUid = z.string().check(z.regex(CLUSTER_UID));
const namespaceName = z.string().check(z.regex(DNS_LABEL));
const objectName = z.string().check(z.maxLength(MAX_NAME), z.regex(OBJECT_NAME));
const apiNameText = z.string().check(z.maxLength(2 * MAX_NAME), z.regex(API_NAME));
const epochMs = z.int().check(z.nonnegative());
const count = z.int().check(z.nonnegative(), z.lte(1_000_000));
const seconds = z.number().check(z.nonnegative(), z.lte(DELAY_LIMIT_SECONDS));
const changeId = z.string().check(z.minLength(1), z.maxLength(512));
const cursorText = z.string().check(z.maxLength(32 * 1024));

const chain = { firstFailure: z.optional(epochMs), waited: z.optional(seconds) };

/** Which keys a controller's requests carry: the rest of the identity must be absent. */
function hasFieldsOfItsController(request: {
  readonly controller: string;
  readonly api?: string | undefined;
  readonly namespace?: string | undefined;
}): boolean {
  if (request.controller === 'instance') return request.api !== undefined;
  return request.api === undefined && (request.controller === 'binding') === (request.namespace !== undefined);
}

export const reconcileSchema = z
  .strictObject({
    v: z.literal(1),
    type: z.literal('reconcile'),
    cluster: clusterUid,
    controller: z.enum(controllers),
    api: z.optional(apiNameText),
    namespace: z.optional(namespaceName),
    name: objectName,
    retry: z.boolean(),
    attempt: count,
    ...chain,
  })
  .check(z.refine(hasFieldsOfItsController, { error: 'api or namespace does not fit the controller' }));

const heartbeatSchema = z.strictObject({
  v: z.literal(1),
  type: z.literal('heartbeat'),
  cluster: clusterUid,
  at: epochMs,
  watches: count,
});

const dueSchema = z.strictObject({
  v: z.literal(1),
  type: z.literal('due'),
  request: reconcileSchema,
  dueAt: epochMs,
  delaySeconds: seconds,
});

/** Counts of one API so far. */
const tally = z.strictObject({
  finalizers: z.int().check(z.nonnegative()),
  bindings: z.record(
    z.string().check(z.maxLength(128)),
    z.tuple([z.int().check(z.nonnegative()), z.int().check(z.nonnegative())]),
  ),
  bothSides: z.boolean(),
});

export const sweepSchema = z.strictObject({
  v: z.literal(1),
  type: z.literal('sweep'),
  cluster: clusterUid,
  apis: z.optional(z.array(apiNameText)),
  namespace: z.optional(namespaceName),
  id: changeId,
  retry: z.boolean(),
  cursor: z.optional(
    z.strictObject({
      api: apiNameText,
      consumer: z.optional(z.nullable(cursorText)),
      provider: z.optional(z.nullable(cursorText)),
      after: z.optional(cursorText),
      tally: z.optional(tally),
    }),
  ),
  attempt: z.optional(count),
  ...chain,
});

const refreshSchema = z.strictObject({
  v: z.literal(1),
  type: z.literal('refresh'),
  cluster: clusterUid,
  id: changeId,
});

const requestSchema = z.discriminatedUnion('type', [
  reconcileSchema,
  heartbeatSchema,
  dueSchema,
  sweepSchema,
  refreshSchema,
]);

const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

/** Reads JSON of bounded size without keys that could reach a prototype. Throws class `malformed`. */
export function readBoundedJson(body: string): unknown {
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_MESSAGE_BYTES) {
    throw new KbindError('malformed', `message of ${bytes} bytes: more than ${MAX_MESSAGE_BYTES}`);
  }
  try {
    return JSON.parse(body, (key, value: unknown) => {
      if (FORBIDDEN_KEYS.has(key)) throw new KbindError('malformed', `message has the forbidden key ${key}`);
      return value;
    });
  } catch (error) {
    if (error instanceof KbindError) throw error;
    throw new KbindError('malformed', 'message is not JSON', {}, error);
  }
}

/** zod/mini brings no texts of its own. Values are never quoted; names of unknown fields are, cut. */
export function describeIssue(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${issue.expected}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return `unknown field ${issue.keys.map((key) => JSON.stringify(key.slice(0, 40))).join(', ')}`;
    case 'too_big':
      return `must be at most ${String(issue.maximum)}`;
    case 'too_small':
      return `must be at least ${String(issue.minimum)}`;
    case 'invalid_format':
      return issue.message === 'Invalid input' ? 'is not of the form that is wanted' : issue.message;
    case 'invalid_union':
      return 'is of no known kind';
    default:
      return issue.message;
  }
}

/** `field: what is wrong` for the first few issues. */
export function describeIssues(error: z.core.$ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.length === 0 ? 'message' : issue.path.join('.')}: ${describeIssue(issue)}`)
    .join('; ')
    .slice(0, 300);
}

/**
 * The request in a message body.
 * @throws KbindError class `malformed` with the reason, for anything but a well-formed request of version 1
 */
export function parseMessage(body: string): Request {
  const parsed = requestSchema.safeParse(readBoundedJson(body));
  if (!parsed.success) throw new KbindError('malformed', describeIssues(parsed.error));
  return parsed.data;
}

/**
 * The body of a message.
 * @throws KbindError class `internal` when it would not be readable again: a bug of ours, seen before it is sent
 */
export function encodeMessage(request: Request): string {
  const body = JSON.stringify(request);
  try {
    parseMessage(body);
  } catch (error) {
    throw new KbindError('internal', `unreadable message: ${(error as Error).message}`, {}, error);
  }
  return body;
}
