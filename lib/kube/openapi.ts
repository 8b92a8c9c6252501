import { isError, KbindError } from '../model/errors.ts';
import { isMap } from './raw-json.ts';
import type { KubeReads, ReadOptions } from './types.ts';

/**
 * Bytes of one document. The largest group of a well-known project is under 5 MB; parsed, a document takes about six times
 * its text, and a function has 1 GiB for everything. Version 2 holds all groups in one (6 MB with a hundred CRDs).
 */
export const MAX_DOCUMENT_BYTES = 32 * 1024 * 1024;

export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** The OpenAPI documents of one server, as one pass of a controller sees them: each is asked for once at most. */
export interface OpenApiDocuments {
  /**
   * The parsed document that describes a group version; undefined where the server describes none.
   * @throws KbindError `forbidden`, `unauthorized`, `throttled`, `aborted` as they came, and `invalid`, naming the document,
   * for one that cannot be had or is no JSON: the API is then left out, and no other.
   */
  of(at: GroupVersion): Promise<unknown>;
}

type Client = Pick<KubeReads, 'getPath'>;
type Index = ReadonlyMap<string, string>;

const V2 = '/openapi/v2';
const V3 = '/openapi/v3';

/**
 * Documents of `/openapi/v3` (Kubernetes 1.24 and later), one for each group version, each at an address with the hash of
 * its contents (see document-cache.ts); of `/openapi/v2`, one for all, where that is not served.
 */
export function openApiDocuments(client: Client, options: ReadOptions = {}): OpenApiDocuments {
  let index: Promise<Index | undefined> | undefined;
  const documents = new Map<string, Promise<unknown>>();
  const once = (path: string): Promise<unknown> => {
    const known = documents.get(path) ?? readDocument(client, path, options);
    documents.set(path, known);
    return known;
  };
  return {
    of: async ({ group, version }) => {
      index ??= readIndex(client, options);
      const paths = await index;
      if (paths === undefined) return once(V2);
      const path = paths.get(`apis/${group}/${version}`);
      return path === undefined ? undefined : once(path);
    },
  };
}

/** Address of each group version's document; undefined where the server has no version 3. */
async function readIndex(client: Client, options: ReadOptions): Promise<Index | undefined> {
  const answer = await ask(client, V3, options);
  if (answer === undefined) return undefined;
  const paths = isMap(answer) ? answer['paths'] : undefined;
  if (!isMap(paths)) throw new KbindError('invalid', `${V3} is no index of OpenAPI documents`);
  return new Map(Object.entries(paths).flatMap(([name, entry]) => addressOf(name, entry)));
}

/** An address is foreign text: only the hash of it is used. */
function addressOf(name: string, entry: unknown): [string, string][] {
  const [kind, group, version, ...more] = name.split('/');
  if (kind !== 'apis' || group === undefined || version === undefined || more.length > 0) return [];
  const url = isMap(entry) && typeof entry['serverRelativeURL'] === 'string' ? entry['serverRelativeURL'] : '';
  const hash = new URLSearchParams(url.split('?')[1] ?? '').get('hash');
  const path = `${V3}/apis/${encodeURIComponent(group)}/${encodeURIComponent(version)}`;
  return [[name, hash === null ? path : `${path}?hash=${encodeURIComponent(hash)}`]];
}

async function readDocument(client: Client, path: string, options: ReadOptions): Promise<unknown> {
  const answer = await askForCurrent(client, path, options);
  if (answer === undefined || isMap(answer)) return answer;
  throw new KbindError('invalid', `the OpenAPI document ${nameOf(path)} is no object`);
}

/** A document that changed since the index was read is elsewhere: its address without the hash is that of the current one. */
async function askForCurrent(client: Client, path: string, options: ReadOptions): Promise<unknown> {
  if (nameOf(path) === path) return ask(client, path, options);
  try {
    return (await ask(client, path, options)) ?? (await ask(client, nameOf(path), options));
  } catch (error) {
    if (!isError(error, 'invalid') || error.details.status === undefined) throw error;
    return ask(client, nameOf(path), options);
  }
}

const nameOf = (path: string): string => path.split('?')[0] ?? path;

/** Undefined: not served. */
async function ask(client: Client, path: string, options: ReadOptions): Promise<unknown> {
  try {
    // Kubernetes 1.20 sends its document as text/plain.
    return await client.getPath(path, { ...options, maxBytes: MAX_DOCUMENT_BYTES, plainText: true });
  } catch (error) {
    if (isError(error, 'unserved')) return undefined;
    if (!isError(error, 'unavailable', 'invalid')) throw error;
    throw new KbindError(
      'invalid',
      `the OpenAPI document ${nameOf(path)} cannot be used: ${error.message}`,
      error.details,
      error,
    );
  }
}
