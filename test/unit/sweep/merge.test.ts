import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ListPage } from '../../../lib/kube/types.ts';
import { keyOf, keyText, type KubeObject } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { compareKeys } from '../../../lib/sweep/key-order.ts';
import { mergeSides, type Pairing } from '../../../lib/sweep/merge.ts';
import { PAGE_ITEMS, PagedList, type LoadPage } from '../../../lib/sweep/paged-list.ts';

const textOf = (object: KubeObject): string => keyText(keyOf(object));
const objectAt = (key: string): KubeObject => {
  const [namespace, name] = key.split('/');
  return { apiVersion: 'v1', kind: 'W', metadata: { namespace, name } } as unknown as KubeObject;
};

/** A server that pages a list of keys as they stand, `size` at a time, whatever was asked for. */
const server =
  (keys: readonly string[], size: number): LoadPage =>
  ({ continue: token = '0' }) => {
    const from = Number(token);
    const next = from + size;
    return Promise.resolve({
      items: keys.slice(from, next).map(objectAt),
      resourceVersion: '1',
      sentAt: { wall: 0, mono: 0 },
      bytes: 1,
      ...(next < keys.length ? { continue: String(next) } : {}),
    });
  };

const list = (keys: readonly string[], size: number): PagedList =>
  new PagedList({ load: server(keys, size), keyOf: textOf });
const collect = async (consumer: PagedList, provider: PagedList | undefined): Promise<Pairing[]> => {
  const pairings: Pairing[] = [];
  for await (const pairing of mergeSides({ consumer, provider, sourceKey: textOf, copyKey: textOf }))
    pairings.push(pairing);
  return pairings;
};

const name = fc.stringMatching(/^[a-c-][a-c.-]{0,3}$/);
const keys = fc.uniqueArray(
  fc.tuple(name, name).map(([namespace, own]) => `${namespace}/${own}`),
  { maxLength: 30 },
);
const size = fc.integer({ min: 1, max: 7 });

describe('merge', () => {
  test('lists in the server’s order: every key once, paired exactly when both sides hold it', async () => {
    await fc.assert(
      fc.asyncProperty(keys, keys, size, size, async (left, right, one, two) => {
        const [a, b] = [[...left].sort(compareKeys), [...right].sort(compareKeys)];
        const pairings = await collect(list(a, one), list(b, two));
        expect(pairings.map(({ key }) => key)).toEqual([...new Set([...a, ...b])].sort(compareKeys));
        for (const { key, source, copy, certain } of pairings) {
          expect([source !== undefined, copy !== undefined, certain]).toEqual([a.includes(key), b.includes(key), true]);
        }
      }),
    );
  });

  test('lists in any order: nothing is lost, and nothing that follows a jump back counts as certain', async () => {
    await fc.assert(
      fc.asyncProperty(keys, keys, size, async (left, right, one) => {
        const pairings = await collect(list(left, one), list(right, one));
        const sources = pairings.flatMap(({ source }) => (source === undefined ? [] : [textOf(source)]));
        const copies = pairings.flatMap(({ copy }) => (copy === undefined ? [] : [textOf(copy)]));
        expect(sources).toEqual(left);
        expect(copies).toEqual(right);
        const certain = pairings.filter((pairing) => pairing.certain).map(({ key }) => key);
        expect(certain).toEqual([...certain].sort(compareKeys));
        const firstDoubt = pairings.findIndex((pairing) => !pairing.certain);
        expect(firstDoubt === -1 || pairings.slice(firstDoubt).every((pairing) => !pairing.certain)).toBe(true);
      }),
    );
  });

  test('without a provider list each source is uncertain', async () => {
    const pairings = await collect(list(['a/x', 'b/x'], 1), undefined);
    expect(pairings.map(({ certain }) => certain)).toEqual([false, false]);
  });

  test('stopped anywhere, it goes on with exactly the rest', async () => {
    await fc.assert(
      fc.asyncProperty(keys, size, fc.nat(30), async (all, pageSize, stopAfter) => {
        const sorted = [...all].sort(compareKeys);
        const first = list(sorted, pageSize);
        const seen: string[] = [];
        for (; seen.length < stopAfter; first.shift()) {
          const next = await first.peek();
          if (next === undefined) break;
          seen.push(textOf(next));
        }
        const resumed = new PagedList({
          load: server(sorted, pageSize),
          keyOf: textOf,
          from: first.position,
          after: seen.at(-1),
        });
        const rest = (await collect(resumed, undefined)).map(({ key }) => key);
        expect([...seen, ...rest]).toEqual(sorted);
      }),
    );
  });

  test('a-b/x comes before a/x, as the server has it', () => {
    expect(compareKeys('a-b/x', 'a/x')).toBeLessThan(0);
  });
});

describe('pages', () => {
  const page = (keysOf: string[], more?: string, bytes = 1): ListPage<KubeObject> => ({
    items: keysOf.map(objectAt),
    resourceVersion: '1',
    sentAt: { wall: 0, mono: 0 },
    bytes,
    ...(more === undefined ? {} : { continue: more }),
  });
  const walk = async (load: LoadPage): Promise<string[]> =>
    (await collect(new PagedList({ load, keyOf: textOf }), undefined)).map(({ key }) => key);

  test('a token that ran out is replaced by the one in that answer', async () => {
    const seen = await walk(({ continue: token }) => {
      if (token === undefined) return Promise.resolve(page(['a/1'], 'old'));
      if (token === 'old') return Promise.reject(new KbindError('expired', 'too old', { continueToken: 'new' }));
      return Promise.resolve(page(['a/2']));
    });
    expect(seen).toEqual(['a/1', 'a/2']);
  });

  test('without another token the list starts over, past what was seen', async () => {
    let asked = 0;
    const seen = await walk(({ continue: token }) => {
      asked += 1;
      if (token !== undefined && asked < 3) return Promise.reject(new KbindError('expired', 'too old'));
      return Promise.resolve(token === undefined ? page(['a/1', 'a/2'], 'more') : page(['a/3']));
    });
    expect(seen).toEqual(['a/1', 'a/2', 'a/3']);
  });

  test('a token that always runs out is an error in the end', async () => {
    const load: LoadPage = ({ continue: token }) =>
      token === undefined
        ? Promise.resolve(page(['a/1'], 'x'))
        : Promise.reject(new KbindError('expired', 'too old', { continueToken: 'x' }));
    await expect(walk(load)).rejects.toMatchObject({ errorClass: 'expired' });
  });

  test('large objects make smaller pages, and a page that is too large is asked for in parts', async () => {
    const limits: number[] = [];
    const seen = await walk(({ limit, continue: token }) => {
      limits.push(limit);
      if (limit > 100) return Promise.reject(new KbindError('invalid', 'the body is over the cap'));
      return Promise.resolve(token === undefined ? page(['a/1'], 'more', 1024 * 1024) : page(['a/2']));
    });
    expect(seen).toEqual(['a/1', 'a/2']);
    expect(limits).toEqual([PAGE_ITEMS, 62, 9]);
  });
});
