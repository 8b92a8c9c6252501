import { keyText, type ObjectKey } from './api.ts';

/**
 * What can go wrong, by what is to be done about it. The class is decided where the knowledge is (the status code at the
 * API client, the identity check at the side) and acted on in one place (lib/queue/settle.ts, by lib/queue/retry-policy).
 */
export const errorClasses = [
  /** The server says that this very object does not exist (spec §7). */
  'absent',
  /** A 404 that is none: wrong version, proxy page, another object's name. */
  'unserved',
  /** 409: somebody wrote in between, a uid or resourceVersion guard failed, or the name is taken. Read again. */
  'conflict',
  /** 403 by RBAC or admission policy. */
  'forbidden',
  /** 403 or 404 because the namespace is missing. */
  'namespace-missing',
  /** 403 or 409 because the namespace is being terminated. */
  'namespace-terminating',
  /** 401. */
  'unauthorized',
  /** 400, 413, 422 and whatever else the object itself is refused for. Retrying the same object cannot help. */
  'invalid',
  /** 410: the resourceVersion or continue token is too old. */
  'expired',
  /** 429, Retry-After kept. */
  'throttled',
  /** 5xx, refused, reset, timed out, no TLS: the server does not answer as a healthy one does. */
  'unavailable',
  /** The cluster behind the address is another one. Means unavailable, never absence. */
  'identity',
  /** What was read of Connections and bindings is too old to write on. Read again (spec §8). */
  'stale',
  /** The time of the invocation is up, or somebody aborted it. */
  'aborted',
  /** The credential itself is unusable: spec §9. */
  'credential',
  /** The consumer cluster belongs to another installation (design.md, rule 13): nothing is read or written there. */
  'held',
  /** The configuration cannot work, retried because people fix it (spec §6: a missing connection annotation). */
  'misconfigured',
  /** A message that no reconcile can serve. */
  'malformed',
  /** A bug of ours. */
  'internal',
] as const;
export type ErrorClass = (typeof errorClasses)[number];

/** What a request to an API server was about; never contents or credentials. */
export interface ErrorDetails {
  readonly verb?: string | undefined;
  /** `<plural>.<group>`. */
  readonly api?: string | undefined;
  readonly key?: ObjectKey | undefined;
  /** HTTP status, absent when there was no answer. */
  readonly status?: number | undefined;
  /** `reason` of the Status object. */
  readonly reason?: string | undefined;
  /** Class `throttled`: the server fills its cache of this one collection, a new CRD's for example; it is not busy otherwise. */
  readonly fillsItsCache?: boolean | undefined;
  /** Seconds. */
  readonly retryAfterSeconds?: number | undefined;
  /** Which cluster: `consumer` or `provider`, set by the side that asked. */
  readonly side?: 'consumer' | 'provider' | undefined;
  /**
   * Nothing was asked: the cluster answered 429 or nothing a moment ago and is left alone that much longer (design.md, rule 7).
   * Says nothing about any object; such work is put off, which is no attempt.
   */
  readonly leftAloneSeconds?: number | undefined;
  /** `field: message` of each cause in the Status object, cut. */
  readonly causes?: readonly string[] | undefined;
  /**
   * Class `invalid`: uid and resourceVersion of the user's object that was refused, or whose status was. The same one would be
   * refused in the same way: whatever else names its key leaves no second dead letter.
   */
  readonly refused?: string | undefined;
  /** Class `held`: installation and stage that the cluster belongs to. */
  readonly heldBy?: string | undefined;
  /** Class `expired` of a list: the token with which it goes on where it was, over a newer state (design.md, rule 10). */
  readonly continueToken?: string | undefined;
}

/** Every error that this product throws on purpose. Foreign errors are converted where they enter. */
export class KbindError extends Error {
  override readonly name = 'KbindError';
  readonly errorClass: ErrorClass;
  readonly details: ErrorDetails;

  constructor(errorClass: ErrorClass, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.errorClass = errorClass;
    this.details = details;
  }
}

/** True for our own errors of one of the given classes. */
export function isError(error: unknown, ...classes: readonly ErrorClass[]): error is KbindError {
  return error instanceof KbindError && classes.includes(error.errorClass);
}

/** A 429 about one collection only: {@link ErrorDetails.fillsItsCache}. */
export const isFillingCache = (error: unknown): boolean =>
  error instanceof KbindError && error.details.fillsItsCache === true;

/** Any thrown value as one of ours: what is not ours already is a bug of ours. */
export function toKbindError(error: unknown): KbindError {
  if (error instanceof KbindError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new KbindError('internal', message, {}, error);
}

/** `get widgets.example.org default/a`: how an error names what it was about. */
export function describeTarget(details: ErrorDetails): string {
  return [details.verb, details.api, details.key === undefined ? undefined : keyText(details.key)]
    .filter((part) => part !== undefined)
    .join(' ');
}
