import { keyOf, type KubeObject } from '../api/object.ts';
import { badRequest, expired, internal, invalid, notFound, StatusError } from '../api/status.ts';
import type { Table } from '../storage/table.ts';
import { readInteger } from './options.ts';
import { readSelectors } from './selectors.ts';
import { atVersion, type Answer, type Call } from './world.ts';

/** A list as the API shows it, before any other representation. */
export interface ListAnswer {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  readonly items: KubeObject[];
}

/** The stored object that a call names, or a 404. */
export function mustGet(call: Call): KubeObject {
  const { world, resource, info } = call;
  const object = world.store.table(resource).get(callKey(call));
  if (!object) throw notFound(resource, info.name);
  return object;
}

/** The key of the object that a call names. */
export const callKey = ({ resource, info }: Call): string =>
  keyOf(resource.namespaced ? info.namespace : '', info.name);

/** A version that only a conversion webhook can produce, which is not there. */
export function checkConversion(call: Call): void {
  const { resource, version } = call;
  if (!resource.webhookConversion || version.name === resource.storageVersion) return;
  const from = `${resource.group}/${resource.storageVersion}, Kind=${resource.kind}`;
  throw internal(`conversion webhook for ${from} failed: the embedded API server calls no webhooks`);
}

/** GET of one object. */
export function get(call: Call): Answer {
  const object = mustGet(call);
  checkConversion(call);
  const asked = call.query.get('resourceVersion');
  if (asked && Number(asked) > call.world.store.revision) throw tooLargeVersion(asked, call.world.store.revision);
  return { code: 200, body: atVersion(object, call) };
}

function tooLargeVersion(asked: string, current: number): StatusError {
  const error = new StatusError(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
  return error;
}

interface Page {
  readonly revision: number;
  /** The first key of the page is the first one after this. */
  readonly after: string;
}

const encodeToken = (page: Page): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: page.revision, start: page.after })).toString('base64url');

function decodeToken(token: string): Page {
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as {
      v: string;
      rv: number;
      start: string;
    };
    if (v === 'meta.k8s.io/v1' && typeof rv === 'number' && typeof start === 'string')
      return { revision: rv, after: start };
  } catch {
    // Falls through to the refusal.
  }
  throw badRequest('continue key is not valid: illegal base64 data at input byte 0');
}

/** GET of a collection: the whole of it, or a page. */
export function list(call: Call): Answer {
  const { world, resource, version, query, info } = call;
  const matches = readSelectors(query, resource, version);
  const limit = readInteger(call, 'limit') ?? 0;
  const table = world.store.table(resource);
  const page = startOfPage(call, table);
  const snapshot = table.snapshot(page.revision);
  const prefix = resource.namespaced && info.namespace ? `${info.namespace}/` : '';
  const keys = within(snapshot.keys, prefix);
  const items: KubeObject[] = [];
  let next = firstAfter(keys, page.after);
  const most = limit > 0 ? limit : Infinity;
  for (; next < keys.length && items.length < most; next += 1) {
    const object = snapshot.get(keys[next] ?? '');
    if (object && (!matches || matches(object))) items.push(atVersion(object, call));
  }
  if (items.length > 0) checkConversion(call);
  const metadata: ListAnswer['metadata'] = { resourceVersion: String(page.revision) };
  if (next < keys.length) {
    metadata.continue = encodeToken({ revision: page.revision, after: keys[next - 1] ?? '' });
    if (!matches) metadata.remainingItemCount = keys.length - next;
  }
  return {
    code: 200,
    body: { apiVersion: listVersion(call), kind: resource.listKind, metadata, items } satisfies ListAnswer,
  };
}

const listVersion = ({ resource, version }: Call): string =>
  resource.group ? `${resource.group}/${version.name}` : version.name;

function startOfPage(call: Call, table: Table): Page {
  const { query, world } = call;
  const token = query.get('continue');
  const asked = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  checkMatch(match, asked, token);
  const current = world.store.revision;
  if (token) {
    if (asked && asked !== '0') throw badRequest('specifying resource version is not allowed when using continue');
    return resumed(decodeToken(token), table, current);
  }
  if (!asked || asked === '0') return { revision: current, after: '' };
  if (!/^\d+$/.test(asked))
    throw badRequest(
      `Invalid value: ${JSON.stringify(asked)}: strconv.ParseUint: parsing ${JSON.stringify(asked)}: invalid syntax`,
    );
  const revision = Number(asked);
  if (revision > current) throw tooLargeVersion(asked, current);
  if (match !== 'Exact') return { revision: current, after: '' };
  if (revision < table.compacted) throw expired(`The resourceVersion for the provided list is too old.`);
  return { revision, after: '' };
}

function resumed(page: Page, table: Table, current: number): Page {
  if (page.revision >= table.compacted) return page;
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  );
  // The token in the answer goes on from the same key, in the present.
  error.status.metadata = { continue: encodeToken({ revision: current, after: page.after }) };
  throw error;
}

function checkMatch(match: string, asked: string, token: string | null): void {
  if (!match) return;
  const refuse = (message: string): never => {
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      { reason: 'FieldValueForbidden', message: `Forbidden: ${message}`, field: 'resourceVersionMatch' },
    ]);
  };
  if (token) refuse('resourceVersionMatch is forbidden when continue is provided');
  if (!asked) refuse('resourceVersionMatch is forbidden unless resourceVersion is provided');
  if (match === 'Exact' && asked === '0') refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  if (match !== 'Exact' && match !== 'NotOlderThan') {
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`,
        field: 'resourceVersionMatch',
      },
    ]);
  }
}

/** The keys that start with a prefix, which are neighbours. */
function within(keys: readonly string[], prefix: string): readonly string[] {
  if (!prefix) return keys;
  const start = lowerBound(keys, prefix);
  // The character after the slash ends the namespace's range.
  const end = lowerBound(keys, `${prefix.slice(0, -1)}0`);
  return keys.slice(start, end);
}

function firstAfter(keys: readonly string[], key: string): number {
  return key ? lowerBound(keys, `${key}\u0000`) : 0;
}

function lowerBound(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
