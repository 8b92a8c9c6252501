import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import {
  crdFor,
  ensureNamespace,
  installCrd,
  makeBinding,
  makeConnection,
  startBound,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { staysTrue, until } from '../support/e2e/until.ts';
import { at } from '../support/e2e/objects.ts';

const crd = { name: 'widgets.example.org' };

describe('unbinding', () => {
  let f0: F0;
  afterEach(() => f0.stop());

  describe('a ClusterBinding', () => {
    beforeEach(async () => {
      f0 = await startBound();
    });

    test('case 31 a: 1,000 instances are drained while instances are still being created: nothing of ours is left', async () => {
      const make = (index: number): Promise<unknown> =>
        f0.consumer.make(widgets, at(`w-${String(index).padStart(4, '0')}`), { spec: { index } });
      for (let start = 0; start < 1_000; start += 20)
        await Promise.all(Array.from({ length: 20 }, (_, offset) => make(start + offset)));
      await until('most copies are there', async () => (await f0.provider.list(widgets)).length >= 1_000, {
        timeoutMs: 170_000,
      });
      await f0.consumer.delete(resources.clusterBindings, { name: 'widgets' });
      let made = 1_000;
      for (; (await f0.consumer.find(resources.clusterBindings, { name: 'widgets' })) !== undefined; made += 1) {
        const refused = await make(made).then(
          () => false,
          () => true,
        );
        if (refused) break;
      }
      await untilGone(f0.consumer, resources.clusterBindings, { name: 'widgets' }, 170_000);
      await untilGone(f0.consumer, resources.crds, crd, 60_000);
      await until(
        'no copy of ours is left',
        async () => (await f0.provider.list(widgets, { labelSelector: 'core.kbind.io/managed=true' })).length === 0,
        {
          timeoutMs: 30_000,
        },
      );
    }, 420_000);

    test('an API that is listed elsewhere is skipped: copies and CRD stay', async () => {
      await makeBinding(f0.consumer, { name: 'second' });
      await untilReady(f0.consumer, resources.clusterBindings, { name: 'second' });
      await f0.consumer.make(widgets, at('kept'), { spec: { size: 's' } });
      await untilObject(f0.provider, widgets, at('kept'));
      await f0.consumer.delete(resources.clusterBindings, { name: 'widgets' });
      await untilGone(f0.consumer, resources.clusterBindings, { name: 'widgets' });
      expect(await f0.provider.find(widgets, at('kept'))).toBeDefined();
      expect((await f0.consumer.get(widgets, at('kept'))).metadata.finalizers).toContain('core.kbind.io/syncer');
      await f0.consumer.merge(widgets, at('kept'), { spec: { size: 'l' } });
      await untilObject(f0.provider, widgets, at('kept'), (copy) => (copy.spec as { size: string }).size === 'l');
    });

    test('case 32 a: kubectl delete crd with synced instances finishes, copies gone, and the binding brings the API back', async () => {
      for (const name of ['a', 'b', 'c']) {
        await f0.consumer.make(widgets, at(name), { spec: { size: 's' } });
        await untilObject(f0.provider, widgets, at(name));
      }
      const { uid } = (await f0.consumer.get(resources.crds, crd)).metadata;
      await f0.consumer.delete(resources.crds, crd);
      await until('the CRD goes', async () => (await f0.consumer.find(resources.crds, crd))?.metadata.uid !== uid, {
        timeoutMs: 90_000,
      });
      expect(await f0.provider.list(widgets, { labelSelector: 'core.kbind.io/managed=true' })).toEqual([]);
      await untilObject(f0.consumer, resources.crds, crd, (object) => object.metadata.uid !== uid);
      await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
      await f0.consumer.make(widgets, at('again'), { spec: { size: 's' } });
      await untilObject(f0.provider, widgets, at('again'));
    });
  });

  test('a namespaced Binding: its namespace only; unbinding keeps CRD and instances, copies go (S18–S20)', async () => {
    f0 = await startF0();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer, { namespace: 'default' });
    await untilReady(f0.consumer, resources.bindings, at('widgets'));
    await ensureNamespace(f0.consumer, 'other');
    await f0.consumer.make(widgets, at('out-of-scope', 'other'), { spec: { size: 's' } });
    await f0.consumer.make(widgets, at('in-scope'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('in-scope'));
    await staysTrue(
      'the other namespace is not synced',
      3_000,
      async () => (await f0.provider.find(widgets, at('out-of-scope', 'other'))) === undefined,
    );
    await f0.consumer.delete(resources.bindings, at('widgets'));
    await untilGone(f0.consumer, resources.bindings, at('widgets'));
    await untilGone(f0.provider, widgets, at('in-scope'));
    expect(await f0.consumer.find(resources.crds, crd)).toBeDefined();
    const kept = await f0.consumer.get(widgets, at('in-scope'));
    expect(kept.metadata.finalizers ?? []).not.toContain('core.kbind.io/syncer');
  });

  test('a CRD that is not ours is skipped, and an Event says so', async () => {
    f0 = await startF0();
    await installCrd(
      f0.consumer,
      crdFor(widgets, { exported: false, columns: [{ name: 'mine', type: 'string', jsonPath: '.spec.mine' }] }),
    );
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'widgets' },
      (binding) =>
        (
          binding.status as { conditions?: { type: string; status: string; reason: string; message: string }[] }
        ).conditions?.some(
          ({ type, status, reason, message }) =>
            type === 'Conflicts' &&
            status === 'True' &&
            reason === 'ForeignObjectExists' &&
            message.includes('widgets.example.org'),
        ) === true,
    );
    await f0.consumer.make(widgets, at('theirs'), { spec: { size: 's' } });
    await f0.consumer.delete(resources.clusterBindings, { name: 'widgets' });
    await untilGone(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    expect(await f0.consumer.find(resources.crds, crd)).toBeDefined();
    expect(await f0.consumer.find(widgets, at('theirs'))).toBeDefined();
    expect(await f0.provider.find(widgets, at('theirs'))).toBeUndefined();
    const events = await f0.consumer.list(resources.events);
    expect(events.some((event) => String(event['message']).includes('widgets.example.org'))).toBe(true);
  });

  test('a cluster-scoped API syncs under a ClusterBinding only; a Binding that lists it says so', async () => {
    const zones = { group: 'example.org', version: 'v1', resource: 'zones', kind: 'Zone', namespaced: false };
    f0 = await startF0({ exported: [crdFor(widgets), crdFor(zones)] });
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer, {
      namespace: 'default',
      name: 'both',
      apis: ['widgets.example.org', 'zones.example.org'],
    });
    await untilObject(f0.consumer, resources.bindings, at('both'), (binding) =>
      JSON.stringify(binding.status).includes('zones.example.org'),
    );
    await makeBinding(f0.consumer, { name: 'zones', apis: ['zones.example.org'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'zones' });
    await f0.consumer.make(zones, { name: 'z1' }, { spec: { size: 's' } });
    await untilObject(f0.provider, zones, { name: 'z1' });
    await f0.provider.setStatus(zones, { name: 'z1' }, { phase: 'Up' });
    await untilObject(
      f0.consumer,
      zones,
      { name: 'z1' },
      (zone) => (zone.status as { phase?: string } | undefined)?.phase === 'Up',
    );
    // Any live binding that lists an API keeps it from being unwound, also one that cannot act on it (spec §4).
    await f0.consumer.delete(resources.bindings, at('both'));
    await untilGone(f0.consumer, resources.bindings, at('both'));
    expect(await f0.provider.find(zones, { name: 'z1' })).toBeDefined();
    await f0.consumer.delete(resources.clusterBindings, { name: 'zones' });
    await untilGone(f0.provider, zones, { name: 'z1' });
    await untilGone(f0.consumer, resources.clusterBindings, { name: 'zones' });
  });
});
