import type { KubeObject, MetaObject, ObjectKey, ResourceRef } from '../model/api.ts';
import { isError, KbindError } from '../model/errors.ts';
import { TooLarge } from './body.ts';
import type { Answer, Call, Exchange } from './exchange.ts';
import { toItem, toList, toMetadata, toObject } from './objects.ts';
import { collectionPath, objectPath } from './paths.ts';
import { requestError, type Asked } from './status.ts';
import type { KubeReads, ListOptions, ListPage, ReadOptions } from './types.ts';
import { watch } from './watch.ts';

/** An object is at most about 3 MiB of JSON (etcd takes 1.5 MiB of it, escapes and managedFields beside). */
export const MAX_OBJECT_BYTES = 16 * 1024 * 1024;
/** A page of a list, a document of OpenAPI. */
export const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** All pages of a complete list together, unless its caller says less: a server whose list never ends must not fill a function. */
const MAX_COMPLETE_BYTES = 256 * 1024 * 1024;
/** Items a page of {@link KubeReads.listAll}. */
export const PAGE_ITEMS = 500;
/** How often a complete list starts over after a 410. */
const MAX_STARTS = 4;

const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

type Lister<T> = (ref: ResourceRef, options?: ListOptions) => Promise<ListPage<T>>;

/** The reading half of a client. */
export function createReads(exchange: Exchange): KubeReads {
  const get = (ref: ResourceRef, key: ObjectKey, options?: ReadOptions): Promise<KubeObject> =>
    getObject(exchange, { ref, key }, options);
  const list: Lister<KubeObject> = (ref, options = {}) =>
    listPage(exchange, { ref, options, toItem, accept: undefined });
  const listMetadata: Lister<MetaObject> = (ref, options = {}) =>
    listPage(exchange, { ref, options, toItem: toMetadata, accept: METADATA_LIST });
  return {
    get,
    find: async (ref, key, options) => {
      try {
        return await get(ref, key, options);
      } catch (error) {
        if (isError(error, 'absent')) return undefined;
        throw error;
      }
    },
    list,
    listMetadata,
    listAll: (ref, options) => listAll(list, ref, options),
    listAllMetadata: (ref, options) => listAll(listMetadata, ref, options),
    watch: (ref, options) => watch(exchange, ref, options),
    getPath: async (path, options = {}) => {
      const { accept, signal, plainText, maxBytes = MAX_LIST_BYTES } = options;
      return (await exchange.send({ verb: `get ${path}`, method: 'GET', path, accept, signal, maxBytes, plainText }))
        .json;
    },
  };
}

/** Reads one object (see KubeReads.get). */
export async function getObject(
  exchange: Exchange,
  target: { readonly ref: ResourceRef; readonly key: ObjectKey },
  options: ReadOptions = {},
): Promise<KubeObject> {
  const asked = { verb: 'get', ...target };
  const path = objectPath(target.ref, target.key);
  const { json } = await exchange.send({
    ...asked,
    method: 'GET',
    path,
    signal: options.signal,
    maxBytes: MAX_OBJECT_BYTES,
  });
  return toObject(json, exchange.asked(asked));
}

interface PageCall<T> {
  readonly ref: ResourceRef;
  readonly options: ListOptions;
  readonly accept: string | undefined;
  readonly toItem: (value: unknown, ref: ResourceRef, asked: Asked) => T;
}

async function listPage<T>(exchange: Exchange, { ref, options, accept, toItem }: PageCall<T>): Promise<ListPage<T>> {
  const { namespace, signal, maxTotalBytes: _ofAllPages, ...query } = options;
  const asked = exchange.asked({ verb: 'list', ref });
  const { json, bytes, sentAt } = await sendList(exchange, {
    verb: 'list',
    ref,
    method: 'GET',
    path: collectionPath(ref, namespace),
    query: { ...query },
    accept,
    signal,
    maxBytes: MAX_LIST_BYTES,
  });
  const { items, ...head } = toList(json, asked);
  return { ...head, items: items.map((item) => toItem(item, ref, asked)), sentAt, bytes };
}

/** A token that the server does not understand, of another server or version, is as good as one that is too old. */
async function sendList(exchange: Exchange, call: Call): Promise<Answer> {
  try {
    return await exchange.send(call);
  } catch (error) {
    const paged = call.query?.['continue'] !== undefined;
    if (!paged || !isError(error, 'invalid') || error.details.status !== 400) throw error;
    throw new KbindError('expired', error.message, error.details, error);
  }
}

/** All pages or nothing: what is decided on the list may be irreversible. */
async function listAll<T>(lister: Lister<T>, ref: ResourceRef, options: ListOptions = {}): Promise<ListPage<T>> {
  const { continue: _continue, resourceVersion: _version, resourceVersionMatch: _match, ...rest } = options;
  const { maxTotalBytes = MAX_COMPLETE_BYTES, ...selection } = rest;
  for (let start = 1; ; start += 1) {
    try {
      return await allPages(lister, ref, { limit: PAGE_ITEMS, ...selection }, maxTotalBytes);
    } catch (error) {
      if (!isError(error, 'expired') || start === MAX_STARTS) throw error;
    }
  }
}

async function allPages<T>(
  lister: Lister<T>,
  ref: ResourceRef,
  selection: ListOptions,
  maxBytes: number,
): Promise<ListPage<T>> {
  const first = await pageOf(lister, ref, selection);
  const items: T[] = [...first.items];
  let { continue: token, bytes, limit } = first;
  while (token !== undefined) {
    const page: ListPage<T> & { readonly limit: number } = await pageOf(lister, ref, {
      ...selection,
      limit,
      continue: token,
    });
    for (const item of page.items) items.push(item);
    bytes += page.bytes;
    if (bytes > maxBytes) throw requestError('unavailable', { verb: 'list', ref }, 'the list is too long');
    if (page.continue === token) throw requestError('unavailable', { verb: 'list', ref }, 'the server repeats a page');
    ({ continue: token, limit } = page);
  }
  return { items, resourceVersion: first.resourceVersion, sentAt: first.sentAt, bytes };
}

/** A page that fits: one of large objects is asked for again in halves, and those after it are as small. */
async function pageOf<T>(
  lister: Lister<T>,
  ref: ResourceRef,
  { limit = PAGE_ITEMS, ...selection }: ListOptions,
): Promise<ListPage<T> & { readonly limit: number }> {
  for (let fits = limit; ; fits = Math.ceil(fits / 2)) {
    try {
      return { ...(await lister(ref, { limit: fits, ...selection })), limit: fits };
    } catch (error) {
      const isLarge = isError(error, 'invalid') && error.cause instanceof TooLarge;
      if (!isLarge || fits === 1) throw error;
    }
  }
}
