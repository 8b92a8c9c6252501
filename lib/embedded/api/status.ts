/** One reason of a refusal, with the field that it is about. */
export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

/** What a Status is about. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: readonly Partial<Cause>[];
  retryAfterSeconds?: number;
}

/** The API's own answer to a request that failed. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: Record<string, unknown>;
  status: 'Failure' | 'Success';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

/** A group and a plural (or a kind, where a message wants that). */
export interface GroupName {
  readonly group: string;
  readonly plural: string;
}

/** A refusal that is answered as a Status. */
export class StatusError extends Error {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = 'StatusError';
    this.status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message };
    if (reason) this.status.reason = reason;
    if (details) this.status.details = details;
    this.status.code = code;
  }
}

/** `widgets.example.org`, or only the plural in the core group. */
export function qualified(resource: GroupName): string {
  return resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
}

function about(resource: GroupName, name: string): StatusDetails {
  return { ...(name && { name }), ...(resource.group && { group: resource.group }), kind: resource.plural };
}

export const notFound = (resource: GroupName, name: string): StatusError =>
  new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, about(resource, name));

export const alreadyExists = (resource: GroupName, name: string): StatusError =>
  new StatusError(409, 'AlreadyExists', `${qualified(resource)} "${name}" already exists`, about(resource, name));

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export const conflict = (resource: GroupName, name: string, why: string = MODIFIED): StatusError =>
  new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    about(resource, name),
  );

export const badRequest = (message: string): StatusError => new StatusError(400, 'BadRequest', message);

export const expired = (message: string): StatusError => new StatusError(410, 'Expired', message);

export const internal = (message: string): StatusError =>
  new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });

/** An error of the storage, which Kubernetes passes on without a reason. */
export const plainError = (message: string): StatusError => new StatusError(500, '', message);

export const notImplemented = (message: string): StatusError =>
  new StatusError(501, 'NotImplemented', `the embedded API server does not support this: ${message}`);

export const unauthorized = (): StatusError => new StatusError(401, 'Unauthorized', 'Unauthorized');

/** The generic answer to a path below a served API that is not there. */
export const noSuchResource = (): StatusError =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});

export function forbidden(resource: GroupName, name: string, why: string, causes: Partial<Cause>[] = []): StatusError {
  const shown = name ? `${qualified(resource)} "${name}"` : qualified(resource);
  const details = about(resource, name);
  if (causes.length > 0) details.causes = causes;
  return new StatusError(403, 'Forbidden', `${shown} is forbidden: ${why}`, details);
}

export const methodNotAllowed = (resource: GroupName, message: string): StatusError =>
  new StatusError(405, 'MethodNotAllowed', message, about(resource, ''));

export const unsupportedMediaType = (message: string): StatusError =>
  new StatusError(415, 'UnsupportedMediaType', message);

export const notAcceptable = (accepted: readonly string[]): StatusError =>
  new StatusError(406, 'NotAcceptable', `only the following media types are accepted: ${accepted.join(', ')}`);

export const tooLarge = (message: string): StatusError => new StatusError(413, 'RequestEntityTooLarge', message);

/** A refusal of an object for what it contains. */
export function invalid(kind: { group: string; kind: string }, name: string, causes: readonly Cause[]): StatusError {
  const texts = [...new Set(causes.map((cause) => (cause.field ? `${cause.field}: ${cause.message}` : cause.message)))];
  const shown = kind.group ? `${kind.kind}.${kind.group}` : kind.kind;
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  const details: StatusDetails = {
    ...(name && { name }),
    ...(kind.group && { group: kind.group }),
    kind: kind.kind,
    causes,
  };
  return new StatusError(422, 'Invalid', `${shown} "${name}" is invalid: ${list}`, details);
}

/** The refusal of a server-side apply whose fields others own. */
export const applyConflict = (causes: Partial<Cause>[], message: string): StatusError =>
  new StatusError(409, 'Conflict', message, { causes });

/** Shows a refused value the way Go does. */
export function shown(value: unknown): string {
  return value === undefined || value === null ? 'null' : JSON.stringify(value);
}

export const invalidValue = (field: string, value: unknown, detail: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${shown(value)}: ${detail}`,
  field,
});

export const required = (field: string, detail: string): Cause => ({
  reason: 'FieldValueRequired',
  message: detail ? `Required value: ${detail}` : 'Required value',
  field,
});

export const duplicate = (field: string, value: unknown): Cause => ({
  reason: 'FieldValueDuplicate',
  message: `Duplicate value: ${shown(value)}`,
  field,
});

export const fieldForbidden = (field: string, detail: string): Cause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${detail}`,
  field,
});

export const unsupported = (field: string, value: unknown, supported: readonly unknown[]): Cause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${shown(value)}: supported values: ${supported.map(shown).join(', ')}`,
  field,
});
