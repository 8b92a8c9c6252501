import type { ObjectKey, ResourceRef } from '../model/api.ts';
import { describeTarget, KbindError, type ErrorClass, type ErrorDetails } from '../model/errors.ts';
import { isMap } from './raw-json.ts';

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
  /** In the 410 of a list: the token that goes on over a newer state. */
  readonly continueToken: string;
  readonly reason: string;
  readonly message: string;
  readonly code: number | undefined;
  readonly details: { readonly name?: string; readonly group?: string; readonly kind?: string };
  readonly causes: readonly Cause[];
}

/** Of a foreign text, characters that are looked at. */
const MAX_SCANNED = 16_384;
/** Validation errors quote the refused value: a whole object, when it does not decode. */
const QUOTED_OBJECT = /(Invalid value: )"[{[](?:[^"\\]|\\.)*(?:"|$)/g;
const QUOTED_VALUE = /(Invalid value: )"(?:[^"\\]|\\.)*(?:"|$)/g;

/** Server's words without objects in them, and without any value when they are about a Secret. */
function withoutValues(text: string, ref: ResourceRef | undefined): string {
  const secret = ref?.group === '' && ref.resource === 'secrets';
  return text.slice(0, MAX_SCANNED).replaceAll(secret ? QUOTED_VALUE : QUOTED_OBJECT, '$1(not shown)');
}

/** Cuts a foreign text and strips control, format and surrogate characters, so that it can stand in a message. */
export function cleanText(text: string, max: number = MAX_MESSAGE): string {
  const clean = text
    .slice(0, MAX_SCANNED)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return clean.length <= max ? clean : `${clean.slice(0, max - 1)}…`;
}

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
  const metadata = isMap(value['metadata']) ? value['metadata'] : {};
  return {
    continueToken: textOf(metadata['continue']),
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

/** Only HTTP's own form: Date.parse takes nearly anything for a date. */
const httpDate = (text: string): number => (/^[A-Z][a-z]{2,8},? .*GMT$/.test(text) ? Date.parse(text) : Number.NaN);

/** Seconds of a Retry-After header, in either of its forms. */
export function retryAfterSeconds(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (httpDate(text) - nowMs) / 1000;
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

const isTerminating = ({ causes }: Status): boolean => causes.some(({ reason }) => reason === 'NamespaceTerminating');

/**
 * A JSON patch whose `test` failed comes as 422 without details, while the object's own refusal names the object and its
 * causes, and a webhook's says so (tried on 1.20.2 and 1.37.2).
 */
const isFailedTest = (status: Status, asked: Asked): boolean =>
  asked.verb === 'patch' &&
  status.causes.length === 0 &&
  !namesTheObject(status, asked) &&
  !/admission webhook/i.test(status.message);

/** An apply or update whose uid is another's, though the resourceVersion fits: `metadata.uid: field is immutable`. */
const isOtherUid = ({ causes }: Status): boolean =>
  causes.length > 0 && causes.every(({ field }) => field === 'metadata.uid');

/**
 * Refusals of the object itself that come as 500: etcd's and gRPC's limits of size, and a server-side apply of what the
 * schema does not know (tried on 1.20.2 and 1.37.2).
 */
const REFUSED_AS_500 =
  /request is too large|trying to send message larger than max|failed to create typed (?:patch|live) object/i;

/** A CRD that goes away refuses new objects, as 405 or, since 1.3x, 403: not by anybody's permissions. */
const IS_CRD_GOING = /create not allowed while custom resource definition is terminating/;

/** From 1.31 on, lists and watches of a collection whose watch cache is not filled yet are answered so (seen on 1.37.2). */
const IS_FILLING_CACHE = /storage is \(re\)initializing/;

const CLASSES: Readonly<Record<number, ErrorClass>> = {
  401: 'unauthorized',
  403: 'forbidden',
  405: 'unserved',
  406: 'unserved',
  408: 'unavailable',
  409: 'conflict',
  410: 'expired',
  429: 'throttled',
};

function classOf(code: number, status: Status | undefined, asked: Asked): ErrorClass {
  const special = status === undefined ? undefined : classOfWords(code, status, asked);
  if (special !== undefined) return special;
  if (code === 404) return classOf404(status, asked);
  return CLASSES[code] ?? (code >= 500 || code < 400 ? 'unavailable' : 'invalid');
}

/** Where the code alone would mislead. */
function classOfWords(code: number, status: Status, asked: Asked): ErrorClass | undefined {
  if (code === 403 && IS_CRD_GOING.test(status.message)) return 'unserved';
  if ((code === 403 || code === 409) && isTerminating(status)) return 'namespace-terminating';
  if (code === 422 && (isFailedTest(status, asked) || isOtherUid(status))) return 'conflict';
  if (code === 500 && REFUSED_AS_500.test(status.message)) return 'invalid';
  return undefined;
}

const causeTexts = (causes: readonly Cause[], ref: ResourceRef | undefined): string[] =>
  causes
    .slice(0, MAX_CAUSES)
    .map(({ field, message = '' }) =>
      cleanText([field, withoutValues(message, ref)].filter((part) => part).join(': '), MAX_CAUSE),
    );

/** What errors of a request carry, as far as it is known before the answer. */
export const detailsOf = ({ verb, ref, key, side }: Asked): ErrorDetails => ({
  verb,
  api: ref === undefined ? undefined : ref.group === '' ? ref.resource : `${ref.resource}.${ref.group}`,
  // Callers may pass a whole metadata as the key: nothing of it but the name may reach a log.
  key: key === undefined ? undefined : { namespace: key.namespace, name: key.name },
  side,
});

/** An error of a request, with what was asked and what is wrong, in our own words. */
export function requestError(errorClass: ErrorClass, asked: Asked, problem: string, cause?: unknown): KbindError {
  const details = detailsOf(asked);
  return new KbindError(errorClass, `${describeTarget(details)}: ${problem}`, details, cause);
}

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
    fillsItsCache: (code === 429 && IS_FILLING_CACHE.test(status?.message ?? '')) || undefined,
    causes: status === undefined || status.causes.length === 0 ? undefined : causeTexts(status.causes, asked.ref),
    continueToken:
      status?.continueToken === undefined || status.continueToken === '' ? undefined : status.continueToken,
  };
  const words = cleanText(withoutValues(status?.message ?? text, asked.ref));
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
  if (status === undefined) return requestError('unavailable', asked, 'an ERROR event without a Status');
  return toError({ code: status.code ?? 500, status, text: '' }, asked);
}
