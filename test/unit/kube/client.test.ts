import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock, type Clock } from '../../../lib/model/clock.ts';
import { isError, type KbindError } from '../../../lib/model/errors.ts';
import { json, ScriptedServer, status, text, type Script } from '../../support/kube/scripted-server.ts';

const { configmaps, namespaces } = resources;
const key = { namespace: 'ns', name: 'a' };
const read = { uid: 'u1', resourceVersion: '7' };
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, ...read } };
const sent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: { a: 'b' } };

let server: ScriptedServer;
let client: OpenKubeClient;

beforeAll(async () => {
  server = await ScriptedServer.start();
});
beforeEach(() => {
  client = server.client();
});
afterAll(() => server.stop());

const failure = async (promise: Promise<unknown>): Promise<KbindError> => {
  try {
    await promise;
  } catch (error) {
    return error as KbindError;
  }
  throw new Error('did not fail');
};
const classOf = async (promise: Promise<unknown>): Promise<string> => (await failure(promise)).errorClass;
const clockAt = (at: string): Clock => ({ ...systemClock, now: () => Date.parse(at) });
const reset: Script = (_seen, response) => void response.destroy();
const inTurn = (...scripts: Script[]): Script => {
  let turn = 0;
  return (seen, response, request) => (scripts[Math.min(turn++, scripts.length - 1)] ?? reset)(seen, response, request);
};

describe('requests', () => {
  test('say who asks, ask for no compression, and carry the credential', async () => {
    server.answer(json(200, object));
    await server.client({ token: 't0ken' }).get(configmaps, key);
    await server.client({ username: 'ü', password: 'p:w' }).get(configmaps, key);
    await server.client({ authorization: () => Promise.resolve('Bearer fresh') }).get(configmaps, key);
    expect(server.seen.map(({ headers }) => headers.authorization)).toStrictEqual([
      'Bearer t0ken',
      `Basic ${Buffer.from('ü:p:w').toString('base64')}`,
      'Bearer fresh',
    ]);
    expect(server.seen[0]?.headers).toMatchObject({ 'user-agent': 'kbind-serverless', 'accept-encoding': 'identity' });
  });

  test('go to the path of the resource under the base of the server', async () => {
    server.answer(json(200, object));
    await server.client({ server: `${server.origin}/clusters/one/` }).get(configmaps, key);
    await client.get(resources.leases, key);
    await client.get(resources.crds, { name: 'a' }).catch(() => undefined);
    expect(server.seen.map(({ url }) => url.pathname)).toStrictEqual([
      '/clusters/one/api/v1/namespaces/ns/configmaps/a',
      '/apis/coordination.k8s.io/v1/namespaces/ns/leases/a',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a',
    ]);
  });

  test.each([['..'], ['.'], [''], ['a/b']])('the name %j cannot leave its path', async (name) => {
    server.answer(json(200, object));
    expect(['invalid']).toContain(await classOf(client.get(configmaps, { namespace: 'ns', name })));
    expect(server.seen).toHaveLength(0);
  });

  test('share kept-alive connections, no more than allowed', async () => {
    const sockets = new Set<unknown>();
    server.answer((seen, response, request) => {
      sockets.add(request.socket);
      return json(200, object)(seen, response, request);
    });
    const bounded = server.client({}, { maxConnections: 3 });
    await Promise.all(Array.from({ length: 30 }, () => bounded.get(configmaps, key)));
    await bounded.get(configmaps, key);
    expect(sockets.size).toBeLessThanOrEqual(3);
  });

  test('of every method leave their connection to the next one', async () => {
    const sockets = new Set<unknown>();
    server.answer((seen, response, request) => {
      sockets.add(request.socket);
      return json(200, object)(seen, response, request);
    });
    const single = server.client({}, { maxConnections: 1 });
    await single.get(configmaps, key);
    await single.create(configmaps, sent);
    await single.patch(configmaps, key, { read, operations: [] });
    await single.apply(configmaps, sent, read);
    await single.update(configmaps, object);
    await single.delete(configmaps, key, read);
    await single.get(configmaps, key);
    expect({ requests: server.seen.length, connections: sockets.size }).toStrictEqual({ requests: 7, connections: 1 });
  });

  test('keep numbers as they are, both ways', async () => {
    server.answer((seen, response, request) =>
      json(200, seen.body === '' ? '{"metadata":{"name":"a"},"spec":{"big":9007199254740993,"f":1.0}}' : seen.body)(
        seen,
        response,
        request,
      ),
    );
    const { spec } = await client.get(configmaps, key);
    await client.create(configmaps, { ...sent, spec });
    expect(server.seen[1]?.body).toContain('"spec":{"big":9007199254740993,"f":1.0}');
  });

  test('remember the latest Date that the server has shown', async () => {
    const dated = server.client({}, { clock: clockAt('2026-11-30T12:00:30Z') });
    expect(dated.serverDate()).toBeUndefined();
    const dates = ['Mon, 30 Nov 2026 12:00:10 GMT', 'Mon, 30 Nov 2026 12:00:05 GMT', 'nonsense'];
    server.answer(inTurn(...dates.map((date) => json(200, object, { date }))));
    for (const _date of dates) await dated.get(configmaps, key);
    expect(dated.serverDate()).toBe(Date.parse('2026-11-30T12:00:10Z'));
  });

  test('believe no Date beyond our own clock: one wrong answer must not end the 8 s after every later deletion', async () => {
    let now = '2026-11-30T12:00:30Z';
    const dated = server.client({}, { clock: { ...systemClock, now: () => Date.parse(now) } });
    server.answer(
      inTurn(
        json(200, object, { date: 'Mon, 30 Nov 2099 12:00:00 GMT' }),
        json(200, object, { date: 'Mon, 30 Nov 2026 12:00:50 GMT' }),
      ),
    );
    await dated.get(configmaps, key);
    expect(dated.serverDate()).toBe(Date.parse(now));
    now = '2026-11-30T12:01:00Z';
    await dated.get(configmaps, key);
    expect(dated.serverDate()).toBe(Date.parse('2026-11-30T12:00:50Z'));
  });
});

describe('answers that are none', () => {
  test.each<[string, Script]>([
    ['HTML with 200', text(200, '<html>sign in</html>', 'text/html')],
    ['plain text with 200', text(200, 'ok')],
    ['no content type', (_seen, response) => void response.writeHead(200).end('{}')],
    ['JSON that is cut', json(200, '{"metadata":{"name":"a"')],
    ['JSON that is no object', json(200, '[]')],
    ['an object without metadata', json(200, { status: 'ok' })],
    ['a namespace that is no text', json(200, { metadata: { ...object.metadata, namespace: 5 } })],
    ['a uid that is no text', json(200, { metadata: { ...object.metadata, uid: {} } })],
    ['a version that is no text', json(200, { metadata: { ...object.metadata, resourceVersion: 1 } })],
    ['labels that are a list', json(200, { metadata: { ...object.metadata, labels: ['a'] } })],
    ['an annotation that is no text', json(200, { metadata: { ...object.metadata, annotations: { a: {} } } })],
    ['finalizers that are a text', json(200, { metadata: { ...object.metadata, finalizers: 'core.kbind.io/syncer' } })],
    ['a finalizer that is no text', json(200, { metadata: { ...object.metadata, finalizers: [7] } })],
    ['managed fields that are a map', json(200, { metadata: { ...object.metadata, managedFields: {} } })],
    ['a deletion that is no time', json(200, { metadata: { ...object.metadata, deletionTimestamp: true } })],
    ['another object', json(200, { metadata: { ...object.metadata, name: 'b' } })],
    ['compressed unasked', json(200, object, { 'content-encoding': 'gzip' })],
    [
      'a body shorter than it says',
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' });
        response.write('{');
        response.destroy();
      },
    ],
    ['a redirect', (_seen, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()],
    ['no answer at all', reset],
    ['a protocol error', (_seen, _response, request) => void request.socket.end('nonsense\r\n\r\n')],
  ])('%s is class unavailable', async (_name, script) => {
    server.answer(script);
    expect(await classOf(client.get(configmaps, key))).toBe('unavailable');
    expect(await classOf(client.find(configmaps, key))).toBe('unavailable');
    expect(await classOf(client.list(configmaps))).toBe('unavailable');
  });

  test('a body beyond the cap is given up while it comes', async () => {
    let written = 0;
    const blanks = function* () {
      for (; written < 200; written += 1) yield Buffer.alloc(1024 * 1024, ' ');
    };
    server.answer((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      return pipeline(Readable.from(blanks()), response).catch(() => undefined);
    });
    const error = await failure(client.get(configmaps, key));
    expect(error).toMatchObject({ errorClass: 'invalid', message: 'get configmaps ns/a: the answer is too large' });
    expect(written).toBeLessThan(100);
  });

  test('a redirect is not followed, its target not asked', async () => {
    server.answer((seen, response, request) =>
      seen.url.pathname === '/elsewhere'
        ? json(200, object)(seen, response, request)
        : void response.writeHead(307, { location: '/elsewhere' }).end(),
    );
    await failure(client.update(configmaps, object));
    expect(server.seen).toHaveLength(1);
  });

  test('a refusal says so in one line, with Retry-After', async () => {
    server.answer(json(429, status(429, 'TooManyRequests'), { 'retry-after': '3' }));
    const error = await failure(client.get(configmaps, key));
    expect(error).toMatchObject({ errorClass: 'throttled', details: { retryAfterSeconds: 3, status: 429 } });
  });

  test('a server that fills its cache of one collection does not count as busy', async () => {
    const message = 'storage is (re)initializing';
    server.answer(json(429, { ...status(429, 'TooManyRequests'), message }, { 'retry-after': '1' }));
    const error = await failure(client.list(configmaps));
    expect(error).toMatchObject({ errorClass: 'throttled', details: { retryAfterSeconds: 1, fillsItsCache: true } });
    server.answer(json(429, status(429, 'TooManyRequests')));
    expect((await failure(client.list(configmaps))).details.fillsItsCache).toBeUndefined();
  });

  test('find answers undefined for what the server calls absent, and for nothing else', async () => {
    server.answer(json(404, status(404, 'NotFound', { details: { name: 'a', kind: 'configmaps' } })));
    expect(await client.find(configmaps, key)).toBeUndefined();
    server.answer(text(404, '404 page not found'));
    expect(await classOf(client.find(configmaps, key))).toBe('unserved');
  });
});

describe('connections that fail', () => {
  test.each(['get', 'update', 'patch', 'delete'] as const)(
    '%s is sent again after a reset, twice at most',
    async (verb) => {
      const send = {
        get: () => client.get(configmaps, key),
        update: () => client.update(configmaps, object),
        patch: () => client.patch(configmaps, key, { read, operations: [] }),
        delete: () => client.delete(configmaps, key, read),
      }[verb];
      server.answer(inTurn(reset, reset, json(200, object)));
      await send();
      expect(server.seen).toHaveLength(3);
      server.answer(reset);
      expect(await classOf(send())).toBe('unavailable');
      expect(server.seen).toHaveLength(3);
    },
  );

  test('a POST is never sent again', async () => {
    server.answer(inTurn(reset, json(201, object)));
    expect(await classOf(client.create(configmaps, sent))).toBe('unavailable');
    expect(server.seen).toHaveLength(1);
  });

  test('a reset in the middle of a body is a reset', async () => {
    const half: Script = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' });
      response.write('{"metadata":', () => response.destroy());
    };
    server.answer(inTurn(half, json(200, object)));
    await expect(client.get(configmaps, key)).resolves.toMatchObject(object);
  });

  test('nobody listens', async () => {
    const gone = await ScriptedServer.start();
    const lost = gone.client();
    const { origin } = gone;
    await gone.stop();
    const waits: number[] = [];
    const alone = createKubeClient(
      { server: origin },
      {
        clock: systemClock,
        egress: { allowLoopback: true },
        random: () => 0.5,
        sleep: async (ms) => void waits.push(ms),
      },
    );
    const error = await failure(alone.get(configmaps, key));
    expect(error).toMatchObject({
      errorClass: 'unavailable',
      message: 'get configmaps ns/a: no answer (ECONNREFUSED)',
    });
    expect(waits).toStrictEqual([100, 400]);
    expect(await classOf(lost.get(configmaps, key))).toBe('unavailable');
    await alone.close();
  });

  test('errors name the side', async () => {
    server.answer(reset);
    const error = await failure(server.client({}, { side: 'provider' }).get(configmaps, key));
    expect(error.details).toMatchObject({ side: 'provider', verb: 'get', api: 'configmaps', key });
  });

  test('loopback is refused without connecting', async () => {
    server.answer(json(200, object));
    const make = (origin: string) =>
      createKubeClient({ server: origin }, { clock: systemClock, egress: { allowLoopback: false } });
    expect(() => make(`https://127.0.0.1:${server.port}`)).toThrow(/leads to a loopback address/);
    expect(() => make(server.origin)).toThrow(/is not https/);
    expect(() => make('nonsense')).toThrow(/is no URL/);
    const named = make(`https://localhost:${server.port}`);
    expect(await classOf(named.get(configmaps, key))).toBe('credential');
    await named.close();
    expect(server.seen).toHaveLength(0);
  });
});

test.each<[string, Parameters<typeof createKubeClient>[0]]>([
  ['http beyond this machine, also in a local run', { server: 'http://10.0.0.1' }],
  ['key material that is none', { server: 'https://10.0.0.1', clientCertificate: 'x', clientKey: 'y' }],
])('%s is class credential, before anything is connected to', (_name, target) => {
  const make = () => createKubeClient(target, { clock: systemClock, egress: { allowLoopback: true } });
  expect(make).toThrow(expect.objectContaining({ errorClass: 'credential' }));
});

describe('an abort', () => {
  test('ends a request that waits for its answer', async () => {
    const controller = new AbortController();
    server.answer(() => controller.abort());
    expect(await classOf(client.get(configmaps, key, { signal: controller.signal }))).toBe('aborted');
  });

  test('of the client ends its requests, and those that come later', async () => {
    const controller = new AbortController();
    server.answer(() => controller.abort());
    const mortal = server.client({}, { signal: controller.signal });
    expect(await classOf(mortal.get(configmaps, key))).toBe('aborted');
    expect(await classOf(mortal.create(configmaps, sent))).toBe('aborted');
    expect(server.seen).toHaveLength(1);
  });

  test('ends the wait between two attempts', async () => {
    const controller = new AbortController();
    server.answer(reset);
    const waiting = server.client(
      {},
      {
        sleep: (_ms, signal) =>
          new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => reject(new Error('aborted')));
            controller.abort();
          }),
      },
    );
    expect(await classOf(waiting.get(configmaps, key, { signal: controller.signal }))).toBe('aborted');
  });
});

describe('writes carry their guards', () => {
  beforeEach(() => server.answer(json(200, object)));
  const only = () => {
    expect(server.seen).toHaveLength(1);
    const [{ method, url, headers, body }] = server.seen as [(typeof server.seen)[number]];
    const query = Object.fromEntries(url.searchParams);
    return { method, path: url.pathname, query, type: headers['content-type'], body: JSON.parse(body) as unknown };
  };

  test('create', async () => {
    await client.create(configmaps, sent, { strict: true });
    expect(only()).toStrictEqual({
      method: 'POST',
      path: '/api/v1/namespaces/ns/configmaps',
      query: { fieldManager: 'kbind-konnector', fieldValidation: 'Strict' },
      type: 'application/json',
      body: sent,
    });
  });

  test('apply: forced, with uid and resourceVersion', async () => {
    await client.apply(configmaps, sent, read, { strict: true, fieldManager: 'other', dryRun: true });
    expect(only()).toStrictEqual({
      method: 'PATCH',
      path: '/api/v1/namespaces/ns/configmaps/a',
      query: { fieldManager: 'other', fieldValidation: 'Strict', dryRun: 'All', force: 'true' },
      type: 'application/apply-patch+yaml',
      body: { ...sent, metadata: { ...key, ...read } },
    });
  });

  test('update: the object with its version', async () => {
    await client.update(configmaps, object);
    expect(only()).toMatchObject({ method: 'PUT', query: { fieldManager: 'kbind-konnector' }, body: object });
  });

  test('patch: tests before the change; a status without resourceVersion on demand', async () => {
    await client.patch(configmaps, key, { read, operations: [{ op: 'add', path: '/data', value: {} }] });
    expect(only()).toMatchObject({
      method: 'PATCH',
      type: 'application/json-patch+json',
      body: [
        { op: 'test', path: '/metadata/uid', value: 'u1' },
        { op: 'test', path: '/metadata/resourceVersion', value: '7' },
        { op: 'add', path: '/data', value: {} },
      ],
    });
    server.seen.length = 0;
    const operations = [{ op: 'add', path: '/status', value: {} }] as const;
    await client.patch(configmaps, key, { read: { uid: 'u1' }, operations, subresource: 'status' });
    expect(only()).toMatchObject({
      path: '/api/v1/namespaces/ns/configmaps/a/status',
      body: [{ op: 'test', path: '/metadata/uid', value: 'u1' }, operations[0]],
    });
  });

  test('delete: preconditions and a length, dryRun in the body', async () => {
    await client.delete(configmaps, key, read, { dryRun: true });
    expect(server.seen[0]?.headers['content-length']).toBe(String(server.seen[0]?.body.length));
    expect(only()).toMatchObject({
      method: 'DELETE',
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: read, dryRun: ['All'] },
    });
  });

  test.each(['uid', 'resourceVersion'])('nothing is sent without %s', async (missing) => {
    const half = { ...read, [missing]: '' };
    const without = { ...object, metadata: { ...key, ...read, [missing]: undefined } };
    expect(await classOf(client.apply(configmaps, sent, half))).toBe('internal');
    expect(await classOf(client.delete(configmaps, key, half))).toBe('internal');
    expect(await classOf(client.update(configmaps, without as never))).toBe('internal');
    expect(await classOf(client.patch(configmaps, key, { read: half, operations: [] }))).toBe('internal');
    expect(server.seen).toHaveLength(0);
  });

  test('an object that is gone fails the guard; a delete of it says absent', async () => {
    server.answer(json(404, status(404, 'NotFound', { details: { name: 'a', kind: 'configmaps' } })));
    expect(await classOf(client.apply(configmaps, sent, read))).toBe('conflict');
    expect(await classOf(client.update(configmaps, object))).toBe('conflict');
    expect(await classOf(client.patch(configmaps, key, { read, operations: [] }))).toBe('conflict');
    expect(await classOf(client.delete(configmaps, key, read))).toBe('absent');
    server.answer(text(404, '404 page not found'));
    expect(await classOf(client.apply(configmaps, sent, read))).toBe('unserved');
  });

  test('a missing namespace is known by its name, on create only', async () => {
    server.answer(json(404, status(404, 'NotFound', { details: { name: 'ns', kind: 'namespaces' } })));
    expect(await classOf(client.create(configmaps, sent))).toBe('namespace-missing');
    expect(await classOf(client.apply(configmaps, sent, read))).toBe('conflict');
    expect(await classOf(client.create(namespaces, { ...sent, metadata: { name: 'ns' } }))).toBe('absent');
  });

  test.each([
    ['still there', read.uid, 'unserved'],
    ['another by now', 'u2', 'conflict'],
  ])('404 to a patch of a subresource, the object is %s', async (_name, uid, expected) => {
    server.answer((seen, response, request) =>
      seen.method === 'GET'
        ? json(200, { ...object, metadata: { ...object.metadata, uid } })(seen, response, request)
        : json(404, status(404, 'NotFound', { details: { name: 'a', kind: 'configmaps' } }))(seen, response, request),
    );
    expect(await classOf(client.patch(configmaps, key, { read, operations: [], subresource: 'status' }))).toBe(
      expected,
    );
  });
});

describe('writes that rest on what was read', () => {
  let nowMs = 0;
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs };
  const at = (ageMs: number) => ({ belief: { sentAt: { wall: nowMs - ageMs, mono: nowMs - ageMs } } });
  beforeEach(() => {
    nowMs = 1_000_000;
    server.answer(json(200, object));
    client = server.client({}, { clock });
  });

  test.each([
    [0, '5000ms'],
    [1_200, '3800ms'],
    [4_000, '1000ms'],
  ])('after %i ms the write is given %s', async (ageMs, timeout) => {
    await client.create(configmaps, sent, at(ageMs));
    await client.apply(configmaps, sent, read, at(ageMs));
    await client.delete(configmaps, key, read, at(ageMs));
    expect(server.seen.map(({ url }) => url.searchParams.get('timeout'))).toStrictEqual([timeout, timeout, timeout]);
  });

  test('with less than a second left it is not sent', async () => {
    for (const ageMs of [4_001, 5_000, 1e9]) {
      expect(await classOf(client.create(configmaps, sent, at(ageMs)))).toBe('stale');
    }
    expect(server.seen).toHaveLength(0);
  });

  test('the older of the two clocks counts', async () => {
    const belief = { sentAt: { wall: nowMs, mono: nowMs - 4_500 } };
    expect(await classOf(client.update(configmaps, object, { belief }))).toBe('stale');
  });

  test('an attempt after a reset looks at the time again', async () => {
    server.answer((seen, response, request) => {
      nowMs += 4_500;
      return reset(seen, response, request);
    });
    expect(await classOf(client.update(configmaps, object, at(0)))).toBe('stale');
    expect(server.seen).toHaveLength(1);
  });

  test('a write that waited for a connection is not sent: its timeout would say too much', async () => {
    const single = server.client({}, { clock, maxConnections: 1 });
    const release = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    server.answer(async (seen, response, request) => {
      arrived.resolve();
      await release.promise;
      return json(200, object)(seen, response, request);
    });
    const first = single.get(configmaps, key);
    await arrived.promise;
    const second = failure(single.update(configmaps, object, at(0)));
    nowMs += 600;
    release.resolve();
    expect(isError(await second, 'stale')).toBe(true);
    await first;
    expect(server.seen).toHaveLength(1);
    await expect(single.get(configmaps, key)).resolves.toMatchObject(object);
  });
});
