import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { OpenKubeClient } from '../../../lib/kube/client.ts';
import type { WatchEvent, WatchOptions } from '../../../lib/kube/types.ts';
import { resources } from '../../../lib/model/api.ts';
import { isError, toKbindError, type KbindError } from '../../../lib/model/errors.ts';
import { json, ScriptedServer, status, text, type Script } from '../../support/kube/scripted-server.ts';

const { configmaps } = resources;
const item = (name: string) => ({
  metadata: { name, namespace: 'ns', uid: name, resourceVersion: '1' },
  data: { x: 'y' },
});

let server: ScriptedServer;
let client: OpenKubeClient;
beforeAll(async () => {
  server = await ScriptedServer.start();
});
beforeEach(() => {
  client = server.client();
});
afterAll(() => server.stop());

async function failure(request: Promise<unknown>): Promise<KbindError> {
  const answer = await request.catch(toKbindError);
  if (answer instanceof Error) return answer as KbindError;
  throw new Error('did not fail');
}

/** Says 200 and nothing more. */
const openStream: Script = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
};

const classOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no error',
    (error: unknown) =>
      isError(error, 'expired', 'unavailable', 'aborted', 'invalid', 'unserved', 'forbidden')
        ? error.errorClass
        : error,
  );

describe('pages', () => {
  test('items of the core group get their kind; metadata comes alone', async () => {
    server.answer(json(200, { metadata: { resourceVersion: '9' }, items: [item('a')] }));
    const page = await client.list(configmaps, { namespace: 'ns', labelSelector: 'a=b', limit: 2 });
    expect(page).toMatchObject({
      resourceVersion: '9',
      items: [{ apiVersion: 'v1', kind: 'ConfigMap', data: { x: 'y' } }],
    });
    expect(page.bytes).toBeGreaterThan(50);
    const { items } = await client.listMetadata(configmaps);
    expect(items).toStrictEqual([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: item('a').metadata }]);
    expect(server.seen[0]?.url.search).toBe('?labelSelector=a%3Db&limit=2');
    expect(server.seen[1]?.headers.accept).toContain('as=PartialObjectMetadataList;g=meta.k8s.io;v=v1');
  });

  const paged: Script = (seen, response, request) => {
    const token = seen.url.searchParams.get('continue');
    const page = token === null ? 0 : Number(token);
    const metadata = { resourceVersion: '9', ...(page < 2 ? { continue: String(page + 1) } : {}) };
    return json(200, { metadata, items: [item(`p${page}`)] })(seen, response, request);
  };

  test('a complete list takes all of them, 500 at a time, never from a cache', async () => {
    server.answer(paged);
    const all = await client.listAll(configmaps, {
      resourceVersion: '0',
      resourceVersionMatch: 'NotOlderThan',
      continue: 'x',
    });
    expect(all.items.map(({ metadata }) => metadata.name)).toStrictEqual(['p0', 'p1', 'p2']);
    expect(all.continue).toBeUndefined();
    expect(server.seen.map(({ url }) => url.search)).toStrictEqual([
      '?limit=500',
      '?limit=500&continue=1',
      '?limit=500&continue=2',
    ]);
  });

  test('it starts over after a 410, three times, then gives up', async () => {
    let expiries = 3;
    server.answer((seen, response, request) => {
      const expires = seen.url.searchParams.get('continue') === '2' && expiries-- > 0;
      return (expires ? json(410, status(410, 'Expired')) : paged)(seen, response, request);
    });
    expect((await client.listAllMetadata(configmaps)).items).toHaveLength(3);
    expiries = 4;
    expect(await classOf(client.listAll(configmaps))).toBe('expired');
  });

  test('a part of a list is never answered', async () => {
    server.answer((seen, response, request) =>
      (seen.url.searchParams.get('continue') === '1' ? json(500, status(500, 'InternalError')) : paged)(
        seen,
        response,
        request,
      ),
    );
    expect(await classOf(client.listAll(configmaps))).toBe('unavailable');
  });

  test('a server that repeats a page is given up', async () => {
    server.answer(json(200, { metadata: { resourceVersion: '9', continue: 'same' }, items: [] }));
    expect(await classOf(client.listAll(configmaps))).toBe('unavailable');
  });

  test('a server whose list never ends is given up at the bytes that its caller can hold', async () => {
    server.answer((seen, response, request) => {
      const page = Number(seen.url.searchParams.get('continue') ?? '0') + 1;
      const metadata = { resourceVersion: '9', continue: String(page) };
      return json(200, { metadata, items: [item(`p${page}`)], padding: 'x'.repeat(10_000) })(seen, response, request);
    });
    const error = await failure(client.listAll(configmaps, { maxTotalBytes: 100_000 }));
    expect(error).toMatchObject({ errorClass: 'unavailable', message: 'list configmaps: the list is too long' });
    expect(server.seen.length).toBeLessThanOrEqual(10);
    expect(server.seen.every(({ url }) => !url.search.includes('maxTotalBytes'))).toBe(true);
  });

  test('pages of large objects are asked for again in halves, and nothing is left out', async () => {
    const tooLarge: Script = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const blanks = function* () {
        for (let mebibytes = 0; mebibytes < 70; mebibytes += 1) yield Buffer.alloc(1024 * 1024, ' ');
      };
      return pipeline(Readable.from(blanks()), response).catch(() => undefined);
    };
    server.answer((seen, response, request) =>
      (Number(seen.url.searchParams.get('limit')) > 125 ? tooLarge : paged)(seen, response, request),
    );
    expect((await client.listAll(configmaps)).items).toHaveLength(3);
    expect(server.seen.map(({ url }) => url.searchParams.get('limit'))).toStrictEqual([
      '500',
      '250',
      '125',
      '125',
      '125',
    ]);
    server.answer(tooLarge);
    expect(await classOf(client.listAll(configmaps, { limit: 2 }))).toBe('invalid');
  });

  test('a token that the server does not understand is expired', async () => {
    server.answer(json(400, status(400, 'BadRequest')));
    expect(await classOf(client.list(configmaps, { continue: 'x' }))).toBe('expired');
    expect(await classOf(client.list(configmaps))).toBe('invalid');
  });

  test.each<[string, unknown]>([
    ['no items', { metadata: { resourceVersion: '9' }, items: 'none' }],
    ['no resourceVersion', { metadata: {}, items: [] }],
    ['an object', item('a')],
    ['an item that is none', { metadata: { resourceVersion: '9' }, items: [1] }],
  ])('%s is no list', async (_name, answer) => {
    server.answer(json(200, answer));
    expect(await classOf(client.list(configmaps))).toBe('unavailable');
  });

  test('an empty list may come as null', async () => {
    server.answer(json(200, { metadata: { resourceVersion: '9' }, items: null }));
    expect((await client.list(configmaps)).items).toStrictEqual([]);
  });
});

describe('watches', () => {
  const event = (type: string, name: string): string => `${JSON.stringify({ type, object: item(name) })}\n`;
  const stream =
    (...chunks: (string | Buffer)[]): Script =>
    async (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      for (const chunk of chunks) await new Promise((resolve) => response.write(chunk, resolve));
      response.end();
    };
  const watch = async (options: Partial<WatchOptions> = {}): Promise<WatchEvent[]> => {
    const events: WatchEvent[] = [];
    for await (const one of client.watch(configmaps, { resourceVersion: '5', metadataOnly: true, ...options }))
      events.push(one);
    return events;
  };

  test('ask for bookmarks from where the list was', async () => {
    server.answer(stream());
    let opened = 0;
    await watch({ namespace: 'ns', labelSelector: 'a=b', timeoutSeconds: 60, onOpen: () => void (opened += 1) });
    expect(server.seen[0]?.url.pathname).toBe('/api/v1/namespaces/ns/configmaps');
    expect(Object.fromEntries(server.seen[0]?.url.searchParams ?? [])).toStrictEqual({
      labelSelector: 'a=b',
      resourceVersion: '5',
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '60',
    });
    expect(server.seen[0]?.headers.accept).toContain('as=PartialObjectMetadata;g=meta.k8s.io;v=v1');
    expect(opened).toBe(1);
  });

  test('bring events and bookmarks until the server ends the stream', async () => {
    const bookmark = `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '8' } } })}\n`;
    server.answer(stream(event('ADDED', 'a'), event('MODIFIED', 'a') + bookmark, event('DELETED', 'a')));
    const events = await watch();
    expect(events.map(({ type }) => type)).toStrictEqual(['ADDED', 'MODIFIED', 'BOOKMARK', 'DELETED']);
    expect(events[0]).toStrictEqual({
      type: 'ADDED',
      object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: item('a').metadata },
    });
    expect(events[2]).toStrictEqual({ type: 'BOOKMARK', resourceVersion: '8' });
  });

  test('bring whole objects on demand, whatever the chunks', async () => {
    const bytes = Buffer.from(
      `${JSON.stringify({ type: 'ADDED', object: { ...item('a'), data: { x: 'ü😀\u2028' } } })}\n`,
    );
    server.answer(stream(...Array.from(bytes, (byte) => Buffer.from([byte]))));
    expect(await watch({ metadataOnly: false })).toMatchObject([
      { type: 'ADDED', object: { data: { x: 'ü😀\u2028' } } },
    ]);
  });

  test.each<[string, Script, string]>([
    ['a 410 answer', json(410, status(410, 'Expired')), 'expired'],
    [
      'a 410 in the stream',
      stream(event('ADDED', 'a'), `${JSON.stringify({ type: 'ERROR', object: status(410, 'Expired') })}\n`),
      'expired',
    ],
    [
      'a 500 in the stream',
      stream(`${JSON.stringify({ type: 'ERROR', object: status(500, 'InternalError') })}\n`),
      'unavailable',
    ],
    ['an ERROR without a Status', stream(`{"type":"ERROR"}\n`), 'unavailable'],
    ['an unknown event', stream(event('RENAMED', 'a')), 'unavailable'],
    ['a line that is no JSON', stream('{"type":\n'), 'unavailable'],
    ['a line that is no event', stream('null\n'), 'unavailable'],
    ['an event without object', stream('{"type":"ADDED"}\n'), 'unavailable'],
    ['HTML', text(200, '<html/>', 'text/html'), 'unavailable'],
    [
      'a reset',
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(event('ADDED', 'a'), () => response.destroy());
      },
      'unavailable',
    ],
    ['a refusal', json(403, status(403, 'Forbidden')), 'forbidden'],
    ['an API that is not there', text(404, '404 page not found'), 'unserved'],
  ])('%s ends it', async (_name, script, expected) => {
    server.answer(script);
    expect(await classOf(watch())).toBe(expected);
  });

  test('silence beyond the limit ends it', async () => {
    server.answer(openStream);
    expect(await classOf(watch({ idleMs: 50 }))).toBe('unavailable');
  });

  test('an abort ends it, before and after its opening', async () => {
    const controller = new AbortController();
    server.answer(openStream);
    expect(await classOf(watch({ signal: controller.signal, onOpen: () => controller.abort() }))).toBe('aborted');
    expect(await classOf(watch({ signal: controller.signal }))).toBe('aborted');
  });

  test('leaving it ends its request', async () => {
    const closed = Promise.withResolvers<void>();
    server.answer((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(event('ADDED', 'a'));
      response.on('close', () => closed.resolve());
    });
    for await (const _event of client.watch(configmaps, { resourceVersion: '5', metadataOnly: true })) break;
    await expect(closed.promise).resolves.toBeUndefined();
  });

  test('nothing is read ahead while the caller works', async () => {
    let written = 0;
    const large = `${JSON.stringify({ type: 'ADDED', object: { ...item('a'), data: { x: 'x'.repeat(100_000) } } })}\n`;
    const events = function* () {
      for (; written < 1_000; written += 1) yield large;
    };
    server.answer((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      return pipeline(Readable.from(events()), response).catch(() => undefined);
    });
    const stream = client.watch(configmaps, { resourceVersion: '5', metadataOnly: true })[Symbol.asyncIterator]();
    await stream.next();
    // Until the server has been held up: what lies between the two is in the buffers of sockets, a few MiB.
    for (let before = -1; before !== written; await new Promise((resolve) => setTimeout(resolve, 50))) before = written;
    expect(written).toBeLessThan(500);
    await stream.return?.();
  });

  test('watches do not take the connections of requests', async () => {
    server.answer((seen, response, request) =>
      seen.url.searchParams.has('watch')
        ? openStream(seen, response, request)
        : json(200, item('a'))(seen, response, request),
    );
    const single = server.client({}, { maxConnections: 1 });
    const controller = new AbortController();
    const { signal } = controller;
    const open = Array.from({ length: 3 }, () => {
      const stands = Promise.withResolvers<void>();
      const options = { resourceVersion: '5', metadataOnly: true, signal, onOpen: stands.resolve };
      const ended = (async () => {
        for await (const _event of single.watch(configmaps, options)) throw new Error('no event was sent');
      })();
      return { stands: stands.promise, ended: classOf(ended) };
    });
    await Promise.all(open.map(({ stands }) => stands));
    await expect(single.get(configmaps, { namespace: 'ns', name: 'a' })).resolves.toMatchObject(item('a'));
    controller.abort();
    expect(await Promise.all(open.map(({ ended }) => ended))).toStrictEqual(['aborted', 'aborted', 'aborted']);
  });
});
