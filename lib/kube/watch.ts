import type { ResourceRef } from '../model/api.ts';
import type { Exchange } from './exchange.ts';
import { parseJson } from './json.ts';
import { splitLines } from './lines.ts';
import { bookmarkVersion, toItem, toMetadata } from './objects.ts';
import { collectionPath } from './paths.ts';
import { requestError, streamError, type Asked } from './status.ts';
import type { WatchEvent, WatchOptions } from './types.ts';

/** API servers send a bookmark a minute: three missed ones are a dead stream. */
const DEFAULT_IDLE_MS = 200_000;
/** An object, twice over, and its event. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';

/** Events until the server ends the stream (see KubeReads.watch). Reads a piece when the caller asks for the next event. */
export async function* watch(exchange: Exchange, ref: ResourceRef, options: WatchOptions): AsyncGenerator<WatchEvent> {
  const { namespace, metadataOnly, signal, idleMs = DEFAULT_IDLE_MS, onOpen, timeoutSeconds, ...query } = options;
  const asked = exchange.asked({ verb: 'watch', ref });
  const body = await exchange.open(
    {
      verb: 'watch',
      ref,
      method: 'GET',
      path: collectionPath(ref, namespace),
      query: { ...query, watch: true, allowWatchBookmarks: true, timeoutSeconds },
      accept: metadataOnly ? METADATA : undefined,
      signal,
      maxBytes: MAX_LINE_BYTES,
    },
    idleMs,
  );
  onOpen?.();
  const lines = splitLines(body as AsyncIterable<Uint8Array>, MAX_LINE_BYTES);
  try {
    for await (const line of lines) {
      const event = toEvent(line, { ref, metadataOnly, asked });
      if (event !== undefined) yield event;
    }
  } catch (error) {
    throw exchange.toError(error, asked, signal);
  } finally {
    // Also when the caller leaves early. What the end of an aborted body says is of no interest any more.
    body.on('error', () => undefined).destroy();
  }
}

interface Reading {
  readonly ref: ResourceRef;
  readonly metadataOnly: boolean;
  readonly asked: Asked;
}

function toEvent(line: Uint8Array, { ref, metadataOnly, asked }: Reading): WatchEvent | undefined {
  const { type, object } = parseLine(line, asked);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: metadataOnly ? toMetadata(object, ref, asked) : toItem(object, ref, asked) };
    case 'BOOKMARK': {
      const resourceVersion = bookmarkVersion(object);
      return resourceVersion === undefined ? undefined : { type, resourceVersion };
    }
    case 'ERROR':
      throw streamError(object, asked);
    default:
      throw requestError('unavailable', asked, 'an event of an unknown type');
  }
}

function parseLine(line: Uint8Array, asked: Asked): { readonly type?: unknown; readonly object?: unknown } {
  try {
    const value = parseJson(line);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // told below, without the words of the parser: they quote the line
  }
  throw requestError('unavailable', asked, 'a line that is no event');
}
