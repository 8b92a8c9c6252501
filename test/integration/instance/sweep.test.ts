import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { isError, KbindError } from '../../../lib/model/errors.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import type { SweepRequest } from '../../../lib/model/request.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { runSweep } from '../../../lib/sweep/sweep.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Fixture, WIDGETS, widgets } from './fixture.ts';

const MANY = 520;
describe.each(clusterKinds())('$name', (kind) => {
  let f: Fixture;
  const key = (name: string, namespace = 'default') => ({ namespace, name });
  const name = (i: number): string => `w-${String(i).padStart(4, '0')}`;

  beforeAll(async () => {
    f = await Fixture.start(kind);
    const binding = await f.bind('widgets', [WIDGETS]);
    await f.consumer.hands.patch(
      resources.clusterBindings,
      { name: 'widgets' },
      {
        read: { uid: binding.metadata.uid },
        operations: [{ op: 'add', path: '/status/boundAPIs', value: [{ name: WIDGETS, conflictCount: 0 }] }],
        subresource: 'status',
      },
    );
    await f.ensureNamespace('a-b');
    for (let i = 0; i < MANY; i += 20) {
      const part = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? key(name(i + n)) : key(name(i + n), 'a-b')));
      await Promise.all(part.map((k) => f.create(f.consumer, k, { spec: { size: 'x' } })));
      await f.reconcile(part[1] ?? key('')); // makes the namespace once
      await Promise.all(part.map((k) => f.reconcile(k)));
    }
  }, 180_000);
  afterAll(() => f.stop());

  const request: SweepRequest = { v: 1, type: 'sweep', cluster: '', id: 'backstop/1', retry: false };
  const ends = { deadline: Number.MAX_SAFE_INTEGER };

  async function sweep(
    overrides: Partial<World> = {},
    options: { readonly deadline: number } = ends,
    asked: Partial<SweepRequest> = {},
  ): Promise<{ found: string[]; rest: SweepRequest | undefined }> {
    f.told.length = 0;
    const reads = createReadsCache(f.consumer.client, systemClock).viewFor(undefined);
    const world = f.world({ reads, ...overrides });
    const rest = (await runSweep(world, { ...request, cluster: f.consumer.uid, ...asked }, options))?.request;
    return { found: f.told.map(({ namespace = '', name }) => `${namespace}/${name}`).sort(), rest };
  }

  describe('a sweep over two API servers', () => {
    test('first writes how far delivery is into the binding, then nothing, and costs 2 requests a page', async () => {
      const first = await f.counted(() => sweep());
      expect(first.writes).toBe(1);
      const { status } = await f.consumer.hands.get(resources.clusterBindings, { name: 'widgets' });
      expect((status as { boundAPIs: unknown[] }).boundAPIs).toEqual([
        { name: WIDGETS, conflictCount: 0, instances: MANY, synced: MANY, pending: 0 },
      ]);
      let found: string[] = ['not run'];
      const second = await f.counted(async () => {
        found = (await sweep()).found;
      });
      expect(found).toEqual([]);
      expect(second.writes).toBe(0);
      expect(second.reads).toBeLessThanOrEqual(2 * Math.ceil(MANY / 500) + 8);
    });

    test('enqueues exactly the keys that need work', async () => {
      await f.create(f.consumer, key('new'), { spec: {} });
      await f.set(f.consumer, key(name(0)), ['/spec/size', 'y']);
      await f.set(f.provider, key(name(2)), ['/spec/size', 'drifted']);
      await f.set(f.provider, key(name(4)), ['/status', { phase: 'Up' }], { subresource: 'status' });
      await f.remove(f.provider, key(name(6)));
      await f.remove(f.consumer, key(name(8)));
      await f.set(f.provider, key(name(3), 'a-b'), ['/metadata/labels/core.kbind.io~1managed', undefined]);
      await f.create(f.consumer, key('zz-never-synced'), { metadata: { finalizers: ['hold/me'] }, spec: {} });
      await f.remove(f.consumer, key('zz-never-synced'));
      const expected = ['a-b/w-0003', 'default/new', ...[0, 2, 4, 6, 8].map((i) => `default/${name(i)}`)];
      const { found, rest } = await sweep();
      expect(found).toEqual(expected.sort());
      expect(rest).toBeUndefined();
      expect(f.told.every(({ retry, api }) => !retry && api === WIDGETS)).toBe(true);
      for (const one of [...f.told, ...f.told]) await f.reconcile({ name: one.name, namespace: one.namespace });
      expect((await sweep()).found).toEqual([]);
      expect((await sweep({}, ends, { namespace: 'a-b' })).found).toEqual([]);
    });

    test('reports a copy whose source is gone, and leaves it alone', async () => {
      const k = key('m-left');
      await f.create(f.consumer, k, { spec: {} });
      await f.reconcile(k);
      await f.set(f.consumer, k, ['/metadata/finalizers', undefined]);
      await f.remove(f.consumer, k);
      const reported: unknown[] = [];
      const log = {
        ...f.world().log,
        warn: (_message: string, fields?: { key?: unknown }) => reported.push(fields?.key),
      };
      const { found } = await sweep({ log });
      expect(reported).toEqual(['default/m-left']);
      expect(found).toEqual([]);
      expect(await f.provider.hands.find(widgets, k)).toBeDefined();
      await f.remove(f.provider, k);
    });

    test('out of time it goes on where it stopped, also when its tokens ran out meanwhile', async () => {
      for (const i of [10, 12, 500, 514]) await f.set(f.consumer, key(name(i)), ['/spec/size', 'z']);
      await f.set(f.consumer, key(name(1), 'a-b'), ['/spec/size', 'z']);
      const found: string[] = [];
      let rest: SweepRequest | undefined;
      let runs = 0;
      do {
        let looks = 0;
        // Time is up after some 150 keys.
        const clock = { ...systemClock, now: () => (looks++ < 150 ? 0 : 2) };
        const once = await sweep({ clock }, { deadline: 1 }, rest ?? {});
        found.push(...once.found);
        rest = once.rest;
        runs += 1;
        if (runs === 2) {
          await f.create(f.consumer, key('aaa-behind'), { spec: {} });
          await f.consumer.server.compact();
          await f.provider.server.compact();
        }
      } while (rest !== undefined && runs < 20);
      expect(runs).toBeGreaterThan(2);
      expect([...new Set(found)].sort()).toEqual(
        ['a-b/w-0001', ...[10, 12, 500, 514].map((i) => `default/${name(i)}`)].sort(),
      );
      expect(new Set(found).size).toBe(found.length);
      await f.remove(f.consumer, key('aaa-behind'));
    });

    test('without the provider it sees the consumer only: new ones, and deletions of Orphans', async () => {
      await f.set(f.consumer, key(name(20)), ['/metadata/annotations', { 'core.kbind.io/deletion-policy': 'Orphan' }]);
      await f.remove(f.consumer, key(name(20)));
      const open = () => Promise.reject(new KbindError('unavailable', 'down'));
      const down: Partial<World> = { providers: { open, probe: open } };
      const { found } = await sweep(down);
      expect(found).toEqual([`default/${name(20)}`]);
      const { status } = await f.consumer.hands.get(resources.clusterBindings, { name: 'widgets' });
      expect((status as { boundAPIs: { instances: number }[] }).boundAPIs[0]?.instances).toBeGreaterThanOrEqual(
        MANY - 2,
      );
    });
  });

  describe('a token that ran out on the way', () => {
    test('goes on with the one in that answer, on both sides', async () => {
      await f.set(f.consumer, key(name(516)), ['/spec/size', 'after']);
      let expired = 0;
      const compacting = (which: 'consumer' | 'provider'): Partial<World> => {
        const side = f.sides[which];
        const client: KubeClient = {
          ...interceptClient(side.client, (_call, send) => send()),
          list: async (ref, options) => {
            if (options?.continue !== undefined && expired < 2) {
              await f.set(f[which], key(name(30)), ['/metadata/labels', { touched: which }]);
              await f[which].server.compact();
            }
            return side.client.list(ref, options).catch((error: unknown) => {
              if (isError(error, 'expired')) expired += 1;
              throw error;
            });
          },
        };
        const other = { ...side, client };
        if (which === 'consumer') return { consumer: other };
        return { providers: { open: () => Promise.resolve(other), probe: () => Promise.reject(new Error('unused')) } };
      };
      const { found, rest } = await sweep({ ...compacting('consumer'), ...compacting('provider') });
      expect(rest).toBeUndefined();
      // Newer servers page from snapshots in their cache, which a compaction of etcd does not touch.
      expect(expired).toBe(f.consumer.server.version.startsWith('v1.20.') ? 2 : expired);
      expect(found).toContain(`default/${name(516)}`);
    });
  });
});
