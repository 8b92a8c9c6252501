import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseJson, printJson } from '../../../lib/kube/json.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Fixture, widgets } from './fixture.ts';
import { until } from '../../support/apiserver/hands.ts';

describe.each(clusterKinds())('$name', (kind) => {
  let f: Fixture;
  beforeAll(async () => {
    f = await Fixture.start(kind);
    await f.bind('widgets', ['widgets.example.org']);
  }, 120_000);
  afterAll(() => f.stop());

  const key = (name: string) => ({ namespace: 'default', name });

  describe('an instance between two API servers', () => {
    test('create, change, first removal of a field, status, and a second reconcile that writes nothing', async () => {
      // A container that is cold asks the consumer for its APIs as well, once a minute.
      await f.create(f.consumer, key('warm'), { spec: {} });
      await f.reconcile(key('warm'));
      const k = key('life');
      await f.create(f.consumer, k, { spec: { size: 'large', extra: 'goes', nested: { a: 1, b: 2 } } });
      const first = await f.counted(() => f.reconcile(k));
      expect(first.reads + first.writes).toBeLessThanOrEqual(8);
      expect(first.writes).toBe(2);
      const copy = await f.provider.hands.get(widgets, k);
      expect(copy.spec).toEqual({ size: 'large', extra: 'goes', nested: { a: 1, b: 2 } });
      expect(copy.metadata.labels?.['core.kbind.io/managed']).toBe('true');
      expect((await f.consumer.hands.get(widgets, k)).metadata.finalizers).toEqual(['core.kbind.io/syncer']);
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });

      await f.set(f.consumer, k, ['/spec', { size: 'small', nested: { a: 1 } }]);
      const edit = await f.counted(() => f.reconcile(k));
      expect(edit).toEqual({ reads: 2, writes: 2 });
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'small', nested: { a: 1 } });
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });

      await f.set(f.consumer, k, ['/spec', { nested: { a: 1 } }]);
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 1 });
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ nested: { a: 1 } });

      await f.set(f.provider, k, ['/status', { phase: 'Running' }], { subresource: 'status' });
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 1 });
      expect((await f.consumer.hands.get(widgets, k)).status).toEqual({ phase: 'Running' });
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });
    });

    test('a hand-edited copy is repaired and a hand-deleted one returns', async () => {
      const k = key('hands');
      await f.create(f.consumer, k, { spec: { size: 'large' } });
      await f.reconcile(k);
      await f.set(f.provider, k, ['/spec/size', 'hacked']);
      await f.reconcile(k);
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'large' });
      await f.remove(f.provider, k);
      await f.reconcile(k);
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'large' });
    });

    test('deletion of what nothing holds takes at most 7 requests, who both clusters are among them, in one go', async () => {
      const k = key('gone');
      await f.create(f.consumer, k, { spec: {} });
      await f.reconcile(k);
      await f.remove(f.consumer, k);
      const counts = await f.counted(async () => {
        expect(await f.reconcile(k)).toMatchObject({ type: 'done', reason: 'finalizer released' });
      });
      expect(await f.consumer.hands.find(widgets, k)).toBeUndefined();
      expect(await f.provider.hands.find(widgets, k)).toBeUndefined();
      expect(counts.writes).toBe(2);
      expect(counts.reads + counts.writes).toBeLessThanOrEqual(7);
    });

    test('deletion of a copy that a finalizer holds waits for it, and takes at most 8', async () => {
      const k = key('held');
      await f.create(f.consumer, k, { spec: {} });
      await f.reconcile(k);
      await f.set(f.provider, k, ['/metadata/finalizers', ['example.org/hold']]);
      await f.remove(f.consumer, k);
      const counts = await f.counted(async () => {
        expect(await f.reconcile(k)).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 60 });
        expect(await f.consumer.hands.find(widgets, k)).toBeDefined();
      });
      expect(await f.reconcile(k)).toMatchObject({ type: 'wait' });
      await f.set(f.provider, k, ['/metadata/finalizers', []]);
      const rest = await f.counted(async () => {
        expect(await f.reconcile(k)).toMatchObject({ type: 'done' });
      });
      expect(await f.consumer.hands.find(widgets, k)).toBeUndefined();
      expect(await f.provider.hands.find(widgets, k)).toBeUndefined();
      expect(counts.writes + rest.writes).toBe(2);
      expect(counts.reads + counts.writes + rest.reads + rest.writes).toBeLessThanOrEqual(8);
    });

    test('numbers, nulls, empty maps and lists, unicode and a 253-character name arrive as they are', async () => {
      const name = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
      expect(name).toHaveLength(253);
      const k = key(name);
      const spec = parseJson(
        '{"big":9007199254740993,"float":1.0,"none":null,"map":{},"list":[],"text":"ü\\u2028\\u0085😀","deep":[{"n":null}]}',
      );
      await f.create(f.consumer, k, { spec });
      await f.reconcile(k);
      const [source, copy] = await Promise.all([f.consumer.hands.get(widgets, k), f.provider.hands.get(widgets, k)]);
      expect(printJson(copy.spec)).toBe(printJson(source.spec));
      expect(printJson(copy.spec)).toContain('9007199254740993');
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });
      await f.set(f.consumer, k, ['/spec/more', { x: null, y: 1 }]);
      await f.reconcile(k);
      const again = await Promise.all([f.consumer.hands.get(widgets, k), f.provider.hands.get(widgets, k)]);
      expect(printJson(again[1].spec)).toBe(printJson(again[0].spec));
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });
    });

    test('a namespace that the provider misses is made with the managed label', async () => {
      const k = { namespace: 'fresh', name: 'a' };
      await f.ensureNamespace('fresh');
      await f.create(f.consumer, k, { spec: { size: 'x' } });
      const counts = await f.counted(() => f.reconcile(k));
      expect(counts.reads + counts.writes).toBeLessThanOrEqual(10);
      expect(await until('copy', () => f.provider.hands.find(widgets, k))).toBeDefined();
    });
  });
});
