import type { ObjectKey, ResourceRef } from '../model/api.ts';
import { describeTarget, KbindError, type ErrorClass, type ErrorDetails } from '../model/errors.ts';

/** Characters of a server's own words that reach an error, and with it a condition, an Event or a log. */
const MAX_MESSAGE = 512;
/** Causes of a Status that are kept, and characters of each. */
const MAX_CAUSES = 8;
const MAX_CAUSE = 200;
/** The longest Retry-After that is believed, seconds; the retry policy has its own, lower bound. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

/** What was asked: names the object that an answer must be about. */
export interface Asked {
  readonly verb: string;
  readonly ref?: ResourceRef | undefined;
  readonly key?: ObjectKey | undefined;
  readonly side?: 'consumer' | 'provider' | undefined;
}

/** An answer with a status of 400 or more, its body as text. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly retryAfter?: string | undefined;
}

interface Cause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

interface Status {
  readonly reason: string;
  readonly message: string;
  readonly code: number | undefined;
  readonly details: { readonly name?: string; readonly group?: string; readonly kind?: string };
  readonly causes: readonly Cause[];
}

/** Cuts a foreign text and strips control, format and surrogate characters, so that it can stand in a message. */
export function cleanText(text: string, max: number = MAX_MESSAGE): string {
  const clean = text
    .slice(0, max * 4)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return clean.length <= max ? clean : `${clean.slice(0, max - 1)}…`;
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function parseCauses(value: unknown): Cause[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isMap)
    .map(({ reason, message, field }) => ({ reason: textOf(reason), message: textOf(message), field: textOf(field) }));
}

/** A `v1` Status from a parsed body, or undefined for anything else. */
export function parseStatus(value: unknown): Status | undefined {
  if (!isMap(value) || value['kind'] !== 'Status' || value['apiVersion'] !== 'v1') return undefined;
  const details = isMap(value['details']) ? value['details'] : {};
  return {
    reason: textOf(value['reason']),
    message: textOf(value['message']),
    code: typeof value['code'] === 'number' ? value['code'] : undefined,
    details: { name: textOf(details['name']), group: textOf(details['group']), kind: textOf(details['kind']) },
    causes: parseCauses(details['causes']),
  };
}

function parseBody(body: string): Status | undefined {
  try {
    return parseStatus(JSON.parse(body));
  } catch {
    return undefined; // plain text or HTML, which is what it is taken for
  }
}

/** Seconds of a Retry-After header, in either of its forms. */
export function retryAfterSeconds(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(0, Math.ceil(seconds)), MAX_RETRY_AFTER_SECONDS) : undefined;
}

/** Spec §7: only a Status with reason NotFound that names this very object says that it is absent. */
const namesTheObject = ({ details }: Status, { ref, key }: Asked): boolean =>
  ref !== undefined &&
  key !== undefined &&
  details.name === key.name &&
  details.group === ref.group &&
  details.kind === ref.resource;

const namesTheNamespace = ({ details }: Status, { ref, key }: Asked): boolean =>
  ref?.namespaced === true &&
  key?.namespace !== undefined &&
  details.name === key.namespace &&
  details.group === '' &&
  details.kind === 'namespaces';

function classOf404(status: Status | undefined, asked: Asked): ErrorClass {
  if (status?.reason !== 'NotFound') return 'unserved';
  if (namesTheObject(status, asked)) return 'absent';
  return namesTheNamespace(status, asked) ? 'namespace-missing' : 'unserved';
}

const isTerminating = (status: Status | undefined): boolean =>
  status?.causes.some(({ reason }) => reason === 'NamespaceTerminating') ?? false;

/**
 * A JSON patch whose `test` failed comes as 422 without details, while the object's own refusal names the object and its
 * causes (tried on 1.20.2 and 1.37.2).
 */
const isFailedTest = (status: Status | undefined, asked: Asked): boolean =>
  asked.verb === 'patch' && status !== undefined && status.causes.length === 0 && !namesTheObject(status, asked);

/** etcd's and the API server's own limits answer 500 for what is the object's size. */
const isTooLarge = (status: Status | undefined): boolean =>
  /request is too large|grpc: received message larger|trying to send message larger/i.test(status?.message ?? '');

const CLASSES: Readonly<Record<number, ErrorClass>> = {
  401: 'unauthorized',
  405: 'unserved',
  406: 'unserved',
  408: 'unavailable',
  410: 'expired',
  429: 'throttled',
};

function classOf(code: number, status: Status | undefined, asked: Asked): ErrorClass {
  if (code === 404) return classOf404(status, asked);
  if (code === 403 || code === 409) {
    if (isTerminating(status)) return 'namespace-terminating';
    return code === 403 ? 'forbidden' : 'conflict';
  }
  if (code === 422 && isFailedTest(status, asked)) return 'conflict';
  if (isTooLarge(status)) return 'invalid';
  return CLASSES[code] ?? (code >= 500 || code < 400 ? 'unavailable' : 'invalid');
}

const causeTexts = (causes: readonly Cause[]): string[] =>
  causes
    .slice(0, MAX_CAUSES)
    .map(({ field, message }) => cleanText([field, message].filter((part) => part).join(': '), MAX_CAUSE));

/** What errors of a request carry, as far as it is known before the answer. */
export const detailsOf = ({ verb, ref, key, side }: Asked): ErrorDetails => ({
  verb,
  api: ref === undefined ? undefined : ref.group === '' ? ref.resource : `${ref.resource}.${ref.group}`,
  key,
  side,
});

interface Judged {
  readonly code: number;
  readonly status: Status | undefined;
  /** The body, shown where it is no Status. */
  readonly text: string;
  readonly retryAfterSeconds?: number | undefined;
}

function toError({ code, status, text, retryAfterSeconds }: Judged, asked: Asked): KbindError {
  const details: ErrorDetails = {
    ...detailsOf(asked),
    status: code,
    reason: status?.reason === undefined || status.reason === '' ? undefined : cleanText(status.reason, MAX_CAUSE),
    retryAfterSeconds,
    causes: status === undefined || status.causes.length === 0 ? undefined : causeTexts(status.causes),
  };
  const words = cleanText(status?.message ?? text);
  return new KbindError(
    classOf(code, status, asked),
    `${describeTarget(details)}: ${words === '' ? `HTTP ${code}` : words}`,
    details,
  );
}

/** An answer of 300 and more as one of our errors. Redirects are refusals: they are not followed. */
export function refusalError({ status, body, retryAfter }: Refusal, asked: Asked, nowMs: number): KbindError {
  const wait = retryAfterSeconds(retryAfter, nowMs);
  return toError({ code: status, status: parseBody(body), text: body, retryAfterSeconds: wait }, asked);
}

/** The Status of an ERROR event in a watch stream as one of our errors; anything else there is a broken stream. */
export function streamError(value: unknown, asked: Asked): KbindError {
  const status = parseStatus(value);
  if (status === undefined) {
    return new KbindError('unavailable', 'watch: an ERROR event without a Status', detailsOf(asked));
  }
  return toError({ code: status.code ?? 500, status, text: '' }, asked);
}
