import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Consumer, crdManifest, Konnector } from './fixture.ts';
import { startCluster, stopCluster, until, type ClusterWithHands } from '../../support/apiserver/hands.ts';

/** How a Connection goes: S13, S14, limits L29 and C16, and what waits for what. */

describe.each(clusterKinds())('$name', (kind) => {
  let consumer: Consumer;
  let provider: ClusterWithHands;
  let konnector: Konnector;

  const widgets: ResourceRef = {
    group: 'example.org',
    version: 'v1',
    resource: 'widgets',
    kind: 'Widget',
    namespaced: true,
  };
  const GRACE_MS = 8_000;
  const connectionOf = (name: string) => consumer.find(resources.connections, { name });
  const secretOf = (name: string) => consumer.find(resources.secrets, { namespace: 'kbind', name });
  const finalizersOfSecret = async (name: string) => (await secretOf(name))?.metadata.finalizers ?? [];

  beforeAll(async () => {
    [consumer, provider] = await Promise.all([Consumer.start(kind), startCluster(kind, 'provider')]);
    await provider.hands.create(resources.crds, crdManifest('widgets.example.org'));
    konnector = new Konnector(consumer.cluster);
  }, 120_000);
  afterAll(async () => {
    await konnector.close();
    await Promise.all([consumer.cluster, provider].map(stopCluster));
  });
  beforeEach(() => {
    konnector.serverAheadMs = 0;
  });

  /** A Ready Connection on a Secret of its own, or on one that is there. */
  async function connected(name: string, options: { secret?: string; spec?: object } = {}): Promise<void> {
    const { secret = name, spec = { schema: { source: 'CRD' } } } = options;
    if ((await secretOf(secret)) === undefined) await consumer.secret(secret, provider.server.kubeconfig);
    await consumer.connect(name, secret, spec);
    await konnector.reconcile(name);
    await konnector.reconcile(name);
    expect(await consumer.condition(name, 'Ready')).toBe('True/AsExpected');
    konnector.told.length = 0;
  }

  const afterGrace = (): void => {
    konnector.serverAheadMs = GRACE_MS + 1_000;
  };

  describe('a deleting Connection', () => {
    test('holds its Secret, releases nothing for 8 seconds of the server’s time, and then goes with it', async () => {
      await connected('late');
      await consumer.remove(resources.secrets, { namespace: 'kbind', name: 'late' });
      expect((await secretOf('late'))?.metadata.deletionTimestamp).toBeDefined();
      await konnector.reconcile('late');
      expect(await consumer.condition('late', 'Ready')).toBe('True/AsExpected');

      await consumer.remove(resources.connections, { name: 'late' });
      const deletedAt = Date.parse((await consumer.connection('late')).metadata.deletionTimestamp ?? '');
      const outcome = await konnector.reconcile('late');
      expect(outcome).toMatchObject({ type: 'wait', maxSeconds: 60 });
      expect(await consumer.condition('late', 'Ready')).toBe('False/Pending');
      expect(await secretOf('late')).toBeDefined();
      await until('the Connection is gone', async () => {
        await konnector.reconcile('late');
        return (await connectionOf('late')) === undefined;
      });
      expect(Date.now() - deletedAt).toBeGreaterThanOrEqual(GRACE_MS);
      expect(await secretOf('late')).toBeUndefined();
      expect(await konnector.reconcile('late')).toMatchObject({ type: 'done' });
    });

    test('leaves a shared Secret to the one that stays', async () => {
      await connected('shared-a', { secret: 'shared' });
      await connected('shared-b', { secret: 'shared' });
      await consumer.remove(resources.secrets, { namespace: 'kbind', name: 'shared' });
      await consumer.remove(resources.connections, { name: 'shared-a' });
      afterGrace();
      await konnector.reconcile('shared-a');
      expect(await connectionOf('shared-a')).toBeUndefined();
      expect(await finalizersOfSecret('shared')).toEqual(['core.kbind.io/cleanup']);

      await consumer.remove(resources.connections, { name: 'shared-b' });
      await konnector.reconcile('shared-b');
      expect(await connectionOf('shared-b')).toBeUndefined();
      expect(await secretOf('shared')).toBeUndefined();
    });

    test('waits for the others of its Secret when all of them go and it is the first by name', async () => {
      await connected('both-a', { secret: 'both' });
      await connected('both-b', { secret: 'both' });
      await consumer.remove(resources.connections, { name: 'both-a' });
      await consumer.remove(resources.connections, { name: 'both-b' });
      afterGrace();
      expect(await konnector.reconcile('both-a')).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 60 });
      expect(await consumer.message('both-a', 'Ready')).toContain('both-b');
      await konnector.reconcile('both-b');
      expect(await connectionOf('both-b')).toBeUndefined();
      expect(await finalizersOfSecret('both')).toEqual(['core.kbind.io/cleanup']);
      await konnector.reconcile('both-a');
      expect(await connectionOf('both-a')).toBeUndefined();
      expect(await finalizersOfSecret('both')).toEqual([]);
    });

    test('names the bindings that still refer to it, deleting ones included, and tells them', async () => {
      await connected('used');
      await consumer.bind('blocker', 'used', ['widgets.example.org']);
      await consumer.set(resources.clusterBindings, { name: 'blocker' }, '/metadata/finalizers', [
        'core.kbind.io/cleanup',
      ]);
      await consumer.remove(resources.connections, { name: 'used' });
      afterGrace();
      expect(await konnector.reconcile('used')).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 60 });
      expect(await consumer.condition('used', 'Ready')).toBe('False/DrainingBindings');
      expect(await consumer.message('used', 'Ready')).toContain('ClusterBinding blocker');
      expect(konnector.told).toEqual(['clusterbinding|||blocker']);

      await consumer.remove(resources.clusterBindings, { name: 'blocker' });
      await konnector.reconcile('used');
      expect(await consumer.message('used', 'Ready')).toContain('ClusterBinding blocker (deleting)');
      expect(await finalizersOfSecret('used')).toEqual(['core.kbind.io/cleanup']);
      expect(konnector.told).toHaveLength(1);

      await consumer.set(resources.clusterBindings, { name: 'blocker' }, '/metadata/finalizers', undefined);
      await konnector.reconcile('used');
      expect(await connectionOf('used')).toBeUndefined();
    });

    test('waits for instances of its CRDs that carry our finalizer, and names them', async () => {
      await connected('pinned', { spec: { schema: { source: 'CRD', pullPolicy: 'All' } } });
      const make = (name: string, finalizers: string[]) =>
        consumer.create(widgets, { namespace: 'default', name, finalizers }, { spec: {} });
      await until('widgets are served', () => make('held', ['core.kbind.io/syncer', 'other/x']));
      await make('free', ['other/x']);
      await consumer.remove(resources.connections, { name: 'pinned' });
      afterGrace();
      await konnector.reconcile('pinned');
      expect(await consumer.condition('pinned', 'Ready')).toBe('False/DrainingBindings');
      expect(await consumer.message('pinned', 'Ready')).toContain('widgets.example.org (default/held)');
      expect(konnector.told).toEqual(['crd|||widgets.example.org']);

      await consumer.set(widgets, { namespace: 'default', name: 'held' }, '/metadata/finalizers', ['other/x']);
      await konnector.reconcile('pinned');
      expect(await connectionOf('pinned')).toBeUndefined();
      expect(await consumer.find(resources.crds, { name: 'widgets.example.org' })).toBeDefined();
    });

    test('asks the ClusterBinding of autoBind to go, and nobody else’s', async () => {
      await connected('auto', { spec: { schema: { source: 'CRD' }, autoBind: true } });
      expect(await consumer.find(resources.clusterBindings, { name: 'auto' })).toBeDefined();
      await consumer.remove(resources.connections, { name: 'auto' });
      await konnector.reconcile('auto');
      expect(await consumer.find(resources.clusterBindings, { name: 'auto' })).toBeUndefined();
      afterGrace();
      await konnector.reconcile('auto');
      expect(await connectionOf('auto')).toBeUndefined();

      await consumer.bind('mine', 'mine', ['widgets.example.org']);
      await connected('mine', { spec: { schema: { source: 'CRD' }, autoBind: true } });
      await consumer.remove(resources.connections, { name: 'mine' });
      await konnector.reconcile('mine');
      const theirs = await consumer.find(resources.clusterBindings, { name: 'mine' });
      expect(theirs).toBeDefined();
      expect(theirs?.metadata.deletionTimestamp).toBeUndefined();
      await consumer.remove(resources.clusterBindings, { name: 'mine' });
      await konnector.reconcile('mine');
      expect(await connectionOf('mine')).toBeUndefined();
    });

    test('does not need its Secret', async () => {
      await connected('bare');
      await consumer.set(resources.secrets, { namespace: 'kbind', name: 'bare' }, '/metadata/finalizers', undefined);
      await consumer.remove(resources.secrets, { namespace: 'kbind', name: 'bare' });
      expect(await secretOf('bare')).toBeUndefined();
      await consumer.remove(resources.connections, { name: 'bare' });
      afterGrace();
      await konnector.reconcile('bare');
      expect(await connectionOf('bare')).toBeUndefined();
    });
  });

  describe('a Secret that is going already for another reason', () => {
    test('gets no finalizer of ours and serves while it is there', async () => {
      await consumer.secret('leaving', provider.server.kubeconfig);
      const key = { namespace: 'kbind', name: 'leaving' };
      await consumer.set(resources.secrets, key, '/metadata/finalizers', ['other/x']);
      await consumer.remove(resources.secrets, key);
      await connected('leaving');
      expect(await finalizersOfSecret('leaving')).toEqual(['other/x']);
    });
  });
});
