import { beforeEach, describe, expect, test } from 'vitest';
import { cacheDocuments } from '../../../lib/kube/document-cache.ts';
import { MAX_DOCUMENT_BYTES, openApiDocuments } from '../../../lib/kube/openapi.ts';
import type { KubeReads } from '../../../lib/kube/types.ts';
import { KbindError, type ErrorClass } from '../../../lib/model/errors.ts';

type Answer = unknown;
let answers: Record<string, Answer>;
let asked: string[];
let now: number;
beforeEach(() => {
  asked = [];
  now = 0;
  answers = {
    '/openapi/v3': index({
      'apis/a.io/v1': '/openapi/v3/apis/a.io/v1?hash=1',
      'apis/b.io/v1': '/openapi/v3/apis/b.io/v1?hash=2',
    }),
    '/openapi/v3/apis/a.io/v1?hash=1': { a: 1 },
    '/openapi/v3/apis/b.io/v1?hash=2': { b: 1 },
  };
});

const index = (paths: Record<string, unknown>) => ({
  paths: Object.fromEntries(Object.entries(paths).map(([name, url]) => [name, { serverRelativeURL: url }])),
});
const failure = (errorClass: ErrorClass, status?: number) => new KbindError(errorClass, `is ${errorClass}`, { status });

const getPath: KubeReads['getPath'] = (path, options) => {
  asked.push(path);
  expect(options).toMatchObject({ maxBytes: MAX_DOCUMENT_BYTES, plainText: true });
  const answer = answers[path] ?? failure('unserved', 404);
  return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
};
const documents = () => openApiDocuments({ getPath });
const a = { group: 'a.io', version: 'v1' };

describe('OpenAPI documents', () => {
  test('version 3: the index and each document once, whoever asks how often', async () => {
    const pass = documents();
    expect(await Promise.all([pass.of(a), pass.of(a), pass.of({ group: 'b.io', version: 'v1' })])).toEqual([
      { a: 1 },
      { a: 1 },
      { b: 1 },
    ]);
    expect(asked).toEqual(['/openapi/v3', '/openapi/v3/apis/a.io/v1?hash=1', '/openapi/v3/apis/b.io/v1?hash=2']);
  });

  test('a group version that the index does not know has none', async () => {
    expect(await documents().of({ group: 'c.io', version: 'v1' })).toBeUndefined();
  });

  test('no version 3: the one document of version 2 serves all', async () => {
    answers = { '/openapi/v2': { swagger: '2.0' } };
    const pass = documents();
    expect(await pass.of(a)).toEqual({ swagger: '2.0' });
    expect(await pass.of({ group: 'b.io', version: 'v1' })).toEqual({ swagger: '2.0' });
    expect(asked).toEqual(['/openapi/v3', '/openapi/v2']);
  });

  test('neither: there is none', async () => {
    answers = {};
    expect(await documents().of(a)).toBeUndefined();
  });

  test.each([
    ['unserved', 404],
    ['unavailable', 301],
  ] as const)(
    'a document that changed since the index was read is asked for without its hash (%s)',
    async (error, status) => {
      answers['/openapi/v3/apis/a.io/v1?hash=1'] = failure(error, status);
      answers['/openapi/v3/apis/a.io/v1'] = { a: 2 };
      expect(await documents().of(a)).toEqual({ a: 2 });
    },
  );

  test.each(['forbidden', 'unauthorized', 'throttled', 'aborted'] as const)('%s stays what it is', async (error) => {
    answers['/openapi/v3'] = failure(error);
    await expect(documents().of(a)).rejects.toMatchObject({ errorClass: error });
  });

  test.each<[string, Answer]>([
    ['no JSON', failure('unavailable')],
    ['too large', failure('invalid')],
    ['a list', []],
    ['a number', 7],
  ])('a document that is %s is named, and no other suffers', async (_name, answer) => {
    answers['/openapi/v3/apis/a.io/v1?hash=1'] = answer;
    const pass = documents();
    await expect(pass.of(a)).rejects.toMatchObject({
      errorClass: 'invalid',
      message: expect.stringContaining('/openapi/v3/apis/a.io/v1 ') as string,
    });
    expect(await pass.of({ group: 'b.io', version: 'v1' })).toEqual({ b: 1 });
  });

  test.each([[7], [{}], [{ paths: [] }]])('an index that is %j is an error, not an empty one', async (answer) => {
    answers['/openapi/v3'] = answer;
    await expect(documents().of(a)).rejects.toMatchObject({ errorClass: 'invalid' });
  });

  test.each([['https://elsewhere.io/x?hash=9'], ['/../secrets?hash=9'], [7], ['/openapi/v3/apis/b.io/v1?hash=9']])(
    'of an address %j only the hash is used',
    async (url) => {
      answers['/openapi/v3'] = index({ 'apis/a.io/v1': url });
      answers['/openapi/v3/apis/a.io/v1'] = { a: 3 };
      expect(await documents().of(a)).toEqual({ a: 3 });
      expect(asked.every((path) => path.startsWith('/openapi/v3'))).toBe(true);
      expect(asked.some((path) => path.includes('b.io'))).toBe(false);
    },
  );
});

describe('what a container keeps of them', () => {
  const cached = () => cacheDocuments(getPath, { now: () => now, monotonic: () => now });
  const options = { maxBytes: MAX_DOCUMENT_BYTES, plainText: true };

  test('a document with a hash is asked for once, an index every time', async () => {
    const get = cached();
    for (let pass = 0; pass < 3; pass += 1) {
      expect(await openApiDocuments({ getPath: get }).of(a)).toEqual({ a: 1 });
      now += 3_600_000;
    }
    expect(asked).toEqual(['/openapi/v3', '/openapi/v3/apis/a.io/v1?hash=1', '/openapi/v3', '/openapi/v3']);
  });

  test('version 2 has no hash: it is believed for less than a refresh', async () => {
    answers = { '/openapi/v2': {} };
    const get = cached();
    for (const at of [0, 19_000, 20_001]) {
      now = at;
      await get('/openapi/v2', options);
    }
    expect(asked).toHaveLength(2);
  });

  test('what was not used for longest goes when there is too much; a failure is not kept', async () => {
    const get = cached();
    const large = (name: string) => `/openapi/v3/apis/${name}/v1?hash=1`;
    for (const name of ['x', 'y', 'z']) answers[large(name)] = { text: 'x'.repeat(5_000_000) };
    for (const name of ['x', 'y', 'x', 'z', 'x', 'y']) await get(large(name), options);
    expect(asked).toEqual(['x', 'y', 'z', 'y'].map(large));
    await expect(get('/openapi/v3/apis/none/v1?hash=1', options)).rejects.toThrow('is unserved');
    answers['/openapi/v3/apis/none/v1?hash=1'] = {};
    expect(await get('/openapi/v3/apis/none/v1?hash=1', options)).toEqual({});
  });
});
