import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { done } from '../../../lib/model/outcome.ts';
import type { ReconcileRequest, RefreshRequest } from '../../../lib/model/request.ts';
import { setMarkers } from '../../../lib/reconcile/object-writes.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { runRefresh, type RefreshedControllers } from '../../../lib/sweep/refresh.ts';
import { API, crd, FakeWorld, managed, NOW } from '../binding/fake-world.ts';

const request: RefreshRequest = { v: 1, type: 'refresh', cluster: 'consumer-uid', id: 'refresh/7' };
const ends = { deadline: NOW + 1000 };

/** One Connection, one ClusterBinding, two Bindings, one managed CRD. */
function cluster(): FakeWorld {
  const world = new FakeWorld();
  world.connection();
  world.binding();
  world.binding({ kind: 'Binding', metadata: { name: 'one' } });
  world.binding({ kind: 'Binding', metadata: { name: 'two' } });
  world.consumer.put(resources.crds, crd(managed()));
  return world;
}

type Run = (world: World, key: ReconcileRequest) => Promise<void>;

/** Controllers that all do one thing, and note the keys that they were run for. */
function controllers(run: Run): { readonly own: RefreshedControllers; readonly seen: string[] } {
  const seen: string[] = [];
  const reconcile = async (world: World, key: ReconcileRequest) => {
    seen.push(`${key.controller} ${key.name}`);
    await run(world, key);
    return done('looked');
  };
  return { own: { connection: reconcile, binding: reconcile, crd: reconcile }, seen };
}

const toldNames = (world: FakeWorld): string[] => world.told.flatMap(({ keys }) => keys).sort();

describe('the 30-second refresh', () => {
  test('looks at every Connection, managed CRD and binding, and tells nobody when nothing would be written', async () => {
    const world = cluster();
    const { own, seen } = controllers(() => Promise.resolve());
    await runRefresh(world.world(), request, { ...ends, controllers: own });
    expect(seen.sort()).toEqual(
      ['binding one', 'binding two', 'clusterbinding b', `connection demo`, `crd ${API}`].sort(),
    );
    expect(world.told).toEqual([]);
  });

  test('enqueues what would write and what would tell, without retry, and writes nothing itself', async () => {
    const world = cluster();
    const keys: ReconcileRequest[] = [];
    const { own } = controllers(async (dry, key) => {
      if (key.name === 'one') {
        const object = await dry.consumer.client.get(resources.bindings, {
          namespace: key.namespace ?? '',
          name: 'one',
        });
        await setMarkers(dry.consumer.client, { ref: resources.bindings, object }, { labels: { a: 'b' } });
      }
      if (key.controller === 'crd') await dry.tell.sweep({ v: 1, type: 'sweep', cluster: '', id: 'x', retry: true });
    });
    const real = world.world();
    const tell = {
      ...real.tell,
      reconcile: (requests: readonly ReconcileRequest[], change: string) => {
        keys.push(...requests);
        expect(change).toBe('refresh/7');
        return Promise.resolve();
      },
    };
    await runRefresh({ ...real, tell }, request, { ...ends, controllers: own });
    expect(keys.map(({ controller, name, retry }) => `${controller} ${name} ${retry}`).sort()).toEqual([
      'binding one false',
      `crd ${API} false`,
    ]);
    expect(world.writes).toEqual([]);
    expect(world.sweeps).toEqual([]);
  });

  test('reads its own kinds four times, whatever reconciles ask for', async () => {
    const world = cluster();
    const asked: string[] = [];
    world.consumer.beforeRequest = ({ verb, api }) => asked.push(`${verb} ${api}`);
    const { own } = controllers(async (dry, key) => {
      await dry.reads.connections({ fresh: true });
      await dry.reads.bindings({ fresh: true });
      await dry.reads.clusterBindings();
      await dry.reads.managedCrds({ fresh: true });
      await dry.reads.crd(API, { fresh: true });
      if (key.controller === 'connection') await dry.consumer.client.get(resources.connections, { name: key.name });
    });
    await runRefresh(world.world(), request, { ...ends, controllers: own });
    expect(asked.sort()).toEqual([
      'list bindings.core.kbind.io',
      'list clusterbindings.core.kbind.io',
      'list connections.core.kbind.io',
      'list customresourcedefinitions.apiextensions.k8s.io',
    ]);
  });

  test('one object that fails does not stop the pass', async () => {
    const world = cluster();
    const { own, seen } = controllers(async (dry, key) => {
      if (key.controller === 'connection') throw new KbindError('unavailable', 'down');
      if (key.name === 'one') throw new TypeError('a bug');
      if (key.name === 'two') await dry.tell.sweep({ v: 1, type: 'sweep', cluster: '', id: 'x', retry: true });
    });
    await runRefresh(world.world(), request, { ...ends, controllers: own });
    expect(seen).toHaveLength(5);
    expect(toldNames(world)).toEqual(['team-a/two']);
  });

  test('starts nothing once its time is up', async () => {
    const world = cluster();
    const { own, seen } = controllers(() => Promise.resolve());
    await runRefresh(world.world(), request, { deadline: NOW, controllers: own });
    expect(seen).toEqual([]);
  });

  test('a queue that takes nothing is an error', async () => {
    const world = cluster();
    const { own } = controllers((dry) => dry.tell.sweep({ v: 1, type: 'sweep', cluster: '', id: 'x', retry: true }));
    const real = world.world();
    const tell = { ...real.tell, reconcile: () => Promise.reject(new KbindError('unavailable', 'no queue')) };
    const pass = runRefresh({ ...real, tell }, request, { ...ends, controllers: own });
    await expect(pass).rejects.toMatchObject({ errorClass: 'unavailable' });
  });
});
