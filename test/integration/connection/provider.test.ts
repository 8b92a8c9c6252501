import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { dryRunWorld } from '../../../lib/reconcile/dry-run.ts';
import { setMarkers } from '../../../lib/reconcile/object-writes.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Consumer, crdManifest, Konnector } from './fixture.ts';
import { startCluster, stopCluster, until, type ClusterWithHands } from '../../support/apiserver/hands.ts';

/** What a Connection makes of its provider: policies, autoBind, identity, rotation. S23, S24, S37 and the limits beside them. */

describe.each(clusterKinds())('$name', (kind) => {
  let consumer: Consumer;
  let provider: ClusterWithHands;
  let other: ClusterWithHands;
  let konnector: Konnector;

  const anApi = (name: string) => ({ name });
  const clusterBinding = (name: string) => consumer.find(resources.clusterBindings, { name });
  const consumerCrd = (name: string) => consumer.find(resources.crds, { name });

  beforeAll(async () => {
    [consumer, provider, other] = await Promise.all([
      Consumer.start(kind),
      startCluster(kind, 'provider'),
      startCluster(kind, 'other provider'),
    ]);
    for (const { hands } of [provider, other]) {
      await hands.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kbind' } });
    }
    await provider.hands.create(resources.crds, crdManifest('widgets.example.org'));
    await consumer.secret('demo', provider.server.kubeconfig);
    konnector = new Konnector(consumer.cluster);
  }, 120_000);
  afterAll(async () => {
    await konnector.close();
    await Promise.all([consumer.cluster, provider, other].map(stopCluster));
  });

  /** Runs the controller as its own events would. */
  async function settle(name: string): Promise<void> {
    for (let turn = 0; turn < 8; turn += 1) {
      const writes = await konnector.writesOf(() => konnector.reconcile(name));
      if (writes.length === 0) return;
    }
    throw new Error(`Connection ${name} does not come to rest: ${konnector.writes.join(', ')}`);
  }

  async function setExported(cluster: ClusterWithHands, crd: string, value: 'true' | 'false'): Promise<void> {
    const object = await cluster.hands.get(resources.crds, { name: crd });
    await setMarkers(cluster.hands, { ref: resources.crds, object }, { labels: { 'core.kbind.io/exported': value } });
  }

  describe('pullPolicy All', () => {
    test('installs every exported schema without a binding, follows it, and says that all are in sync', async () => {
      await provider.hands.create(resources.crds, crdManifest('doodads.doodad.io'));
      await consumer.connect('all', 'demo', { schema: { source: 'CRD', pullPolicy: 'All' } });
      await until('its schemas are in sync', async () => {
        await konnector.reconcile('all');
        return (await consumer.condition('all', 'SchemaInSync')) === 'True/AsExpected';
      });
      const crd = await consumerCrd('doodads.doodad.io');
      expect(crd?.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
      expect(crd?.metadata.annotations?.['core.kbind.io/connection']).toBe('all');
      expect(await consumer.condition('all', 'Ready')).toBe('True/AsExpected');

      const theirs = await provider.hands.get(resources.crds, { name: 'doodads.doodad.io' });
      const { spec } = crdManifest('doodads.doodad.io', { columns: ['.spec.colour'] });
      await provider.hands.update(resources.crds, { ...theirs, spec } as typeof theirs);
      await settle('all');
      expect(JSON.stringify((await consumerCrd('doodads.doodad.io'))?.spec)).toContain('.spec.colour');
    });

    test('leaves somebody else’s CRD of that name alone, and is Ready beside it', async () => {
      const foreign = crdManifest('thingies.example.org', { exported: false, columns: ['.spec.mine'] });
      await consumer.cluster.hands.create(resources.crds, foreign);
      await provider.hands.create(resources.crds, crdManifest('thingies.example.org'));
      await settle('all');
      expect(await consumer.condition('all', 'SchemaInSync')).toBe('False/ForeignObjectExists');
      expect(await consumer.message('all', 'SchemaInSync')).toContain('thingies.example.org');
      expect(await consumer.condition('all', 'Ready')).toBe('True/AsExpected');
      expect((await consumerCrd('thingies.example.org'))?.metadata.labels).toBeUndefined();
    });

    test('leaves what another Connection brought in to that one', async () => {
      await consumer.connect('second', 'demo', { schema: { source: 'CRD', pullPolicy: 'All' } });
      await settle('second');
      expect(await consumer.condition('second', 'SchemaInSync')).toBe('False/OwnedByAnother');
      expect((await consumerCrd('doodads.doodad.io'))?.metadata.annotations?.['core.kbind.io/connection']).toBe('all');
    });
  });

  describe('autoBind', () => {
    test('keeps a ClusterBinding of the Connection’s name that lists every export', async () => {
      await consumer.connect('auto', 'demo', { schema: { source: 'CRD' }, autoBind: true });
      await settle('auto');
      const made = await clusterBinding('auto');
      expect(made?.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
      expect(made?.metadata.ownerReferences).toMatchObject([{ kind: 'Connection', name: 'auto' }]);
      expect(made?.spec).toMatchObject({
        connectionRef: { name: 'auto' },
        apis: ['doodads.doodad.io', 'thingies.example.org', 'widgets.example.org'].map(anApi),
      });

      await provider.hands.create(resources.crds, crdManifest('apples.fruit.io'));
      await settle('auto');
      expect((await clusterBinding('auto'))?.spec).toMatchObject({
        apis: expect.arrayContaining([anApi('apples.fruit.io')]),
      });
    });

    test('takes over nobody’s ClusterBinding, and says so', async () => {
      await consumer.bind('mine', 'demo', ['widgets.example.org']);
      await consumer.connect('mine', 'demo', { schema: { source: 'CRD' }, autoBind: true });
      await settle('mine');
      expect((await clusterBinding('mine'))?.spec).toMatchObject({ apis: [anApi('widgets.example.org')] });
      expect(await consumer.condition('mine', 'Ready')).toBe('True/AsExpected');
      expect(await consumer.message('mine', 'Ready')).toContain(
        'ClusterBinding mine exists and was not made by autoBind',
      );
    });

    test('deletes its ClusterBinding only after a second empty list, a minute after the first', async () => {
      const crds = ['apples.fruit.io', 'doodads.doodad.io', 'thingies.example.org', 'widgets.example.org'];
      await Promise.all(crds.map((crd) => setExported(provider, crd, 'false')));
      await settle('auto');
      expect((await consumer.connection('auto')).status.exportsEmptySince).toBeDefined();
      expect((await clusterBinding('auto'))?.metadata.deletionTimestamp).toBeUndefined();
      konnector.clock.forward(30_000);
      await konnector.reconcile('auto');
      expect(await clusterBinding('auto')).toBeDefined();

      konnector.clock.forward(32_000);
      await konnector.reconcile('auto');
      expect(await clusterBinding('auto')).toBeUndefined();

      await Promise.all(crds.map((crd) => setExported(provider, crd, 'true')));
      await settle('auto');
      expect((await consumer.connection('auto')).status.exportsEmptySince).toBeUndefined();
      expect(await clusterBinding('auto')).toBeDefined();
    });

    test('acts on no list that failed', async () => {
      const before = await clusterBinding('auto');
      konnector.providerClient = (client) =>
        interceptClient(client, (call, send) =>
          call.ref === resources.crds
            ? Promise.reject(new KbindError('unavailable', 'etcd is away', { side: 'provider' }))
            : send(),
        );
      await consumer.setKubeconfig('demo', `# new bytes, so a new client\n${provider.server.kubeconfig}`);
      await expect(konnector.reconcile('auto')).rejects.toThrow('etcd is away');
      konnector.clock.forward(61_000);
      await expect(konnector.reconcile('auto')).rejects.toThrow('etcd is away');
      expect((await clusterBinding('auto'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
      expect((await consumer.connection('auto')).status.exportedAPIs).toHaveLength(4);
      konnector.providerClient = (client) => client;
      await consumer.setKubeconfig('demo', `# and once more\n${provider.server.kubeconfig}`);
      await settle('auto');
    });

    test('turned off keeps the ClusterBinding and says that it is no longer maintained', async () => {
      await consumer.set(resources.connections, { name: 'auto' }, '/spec/autoBind', false);
      await settle('auto');
      expect(await clusterBinding('auto')).toBeDefined();
      expect(await consumer.message('auto', 'Ready')).toContain('no longer maintained');
    });
  });

  describe('Auto', () => {
    test('offers everything of a provider without labelled CRDs, says so, and not before a minute while bound', async () => {
      await consumer.secret('other', other.server.kubeconfig);
      await other.hands.create(resources.crds, crdManifest('lamps.light.io'));
      await other.hands.create(resources.crds, crdManifest('plain.light.io', { exported: false }));
      await consumer.connect('choice', 'other', {});
      await consumer.bind('lamps', 'choice', ['lamps.light.io']);
      await settle('choice');
      const status = async () => (await consumer.connection('choice')).status;
      expect((await status()).activeSchemaSource).toBe('CRD');

      await setExported(other, 'lamps.light.io', 'false');
      await settle('choice');
      expect(await status()).toMatchObject({ activeSchemaSource: 'CRD', exportedAPIs: [] });
      konnector.clock.forward(62_000);
      await settle('choice');
      expect((await status()).activeSchemaSource).toBe('OpenAPI');
      expect((await status()).exportedAPIs?.map(({ name }) => name)).toEqual(['lamps.light.io', 'plain.light.io']);
      expect(await consumer.message('choice', 'Ready')).toContain('every API that it serves is offered');

      await setExported(other, 'lamps.light.io', 'true');
      await settle('choice');
      expect((await status()).activeSchemaSource).toBe('CRD');
    });
  });

  describe('identity', () => {
    test('is the LogicalCluster’s where the provider serves one', async () => {
      const kcp: ResourceRef = resources.logicalClusters;
      await other.hands.create(
        resources.crds,
        crdManifest('logicalclusters.core.kcp.io', {
          exported: false,
          scope: 'Cluster',
          versions: [{ name: 'v1alpha1', served: true, storage: true }],
        }),
      );
      const body = { apiVersion: 'core.kcp.io/v1alpha1', kind: 'Logicalcluster', metadata: { name: 'cluster' } };
      const made = await until('logical clusters are served', () => other.hands.create(kcp, body));
      const fresh = new Konnector(consumer.cluster);
      await consumer.connect('kcp', 'other', { schema: { source: 'OpenAPI' } });
      await fresh.reconcile('kcp');
      await fresh.reconcile('kcp');
      const { status } = await consumer.connection('kcp');
      expect(status.remoteClusterUID).toBe(made.metadata.uid);
      expect(status.exportedAPIs?.map(({ name }) => name)).toContain('lamps.light.io');
      expect(await consumer.condition('kcp', 'Ready')).toBe('True/AsExpected');

      // The one that knew this server by its namespace sees another cluster now.
      await fresh.reconcile('choice');
      expect(await consumer.condition('choice', 'Ready')).toBe('False/ClusterIdentityChanged');
      await fresh.close();
    });

    test('that changes under the same Secret is told, moves nothing, and is over when the first one is back', async () => {
      await consumer.secret('moving', provider.server.kubeconfig);
      await consumer.connect('moving', 'moving');
      await settle('moving');
      const before = (await consumer.connection('moving')).status;
      await consumer.setKubeconfig('moving', other.server.kubeconfig);
      await konnector.reconcile('moving');
      expect(await consumer.condition('moving', 'Connected')).toBe('False/ClusterIdentityChanged');
      expect(await consumer.condition('moving', 'Ready')).toBe('False/ClusterIdentityChanged');
      expect(await consumer.message('moving', 'Ready')).toContain(provider.uid);
      const after = (await consumer.connection('moving')).status;
      expect(after).toMatchObject({ remoteClusterUID: provider.uid, exportedAPIs: before.exportedAPIs });
      const world = konnector.world();
      await expect(world.providers.open(await consumer.connection('moving'))).rejects.toMatchObject({
        errorClass: 'identity',
      });
      const leases = await other.hands.list(resources.leases, { labelSelector: 'core.kbind.io/managed=true' });
      expect(leases.items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('moving'))).toEqual([]);

      await consumer.setKubeconfig('moving', provider.server.kubeconfig);
      await konnector.reconcile('moving');
      expect(await consumer.condition('moving', 'Ready')).toBe('True/AsExpected');
    });

    test('is confirmed before the first use of every client, and again when the last answer is old', async () => {
      const connection = await consumer.connection('moving');
      const side = await konnector.world().providers.open(connection);
      await expect(side.confirmIdentity(0)).resolves.toBeUndefined();
      const led = new Konnector(consumer.cluster);
      let elsewhere = false;
      led.providerClient = (client) =>
        interceptClient(client, (call, send) =>
          elsewhere && call.ref?.resource === 'namespaces'
            ? (other.hands.get(resources.namespaces, { name: 'kube-system' }) as ReturnType<typeof send>)
            : send(),
        );
      const through = await led.world().providers.open(connection);
      elsewhere = true;
      await expect(through.confirmIdentity(10_000)).resolves.toBeUndefined();
      led.clock.forward(11_000);
      await expect(through.confirmIdentity(10_000)).rejects.toMatchObject({ errorClass: 'identity' });
      await led.close();
    });
  });

  describe('rotation', () => {
    test('uses new credentials in the next reconcile, in another epoch, and closes the old ones when idle', async () => {
      const admin = (name: string) => provider.server.addUser({ name, groups: ['system:masters'] });
      const [old, renewed] = [await admin('old'), await admin('renewed')];
      const own = new Konnector(consumer.cluster);
      await consumer.secret('rotating', old.kubeconfig);
      await consumer.connect('rotating', 'rotating');
      await own.reconcile('rotating');
      await own.reconcile('rotating');
      const before = (await consumer.connection('rotating')).status;
      own.told.length = 0;
      await consumer.bind('rotated', 'rotating', ['widgets.example.org']);
      await consumer.setKubeconfig('rotating', renewed.kubeconfig);
      await own.reconcile('rotating');
      const after = (await consumer.connection('rotating')).status;
      expect(after.secretVersion).not.toBe(before.secretVersion);
      expect(await consumer.condition('rotating', 'Ready')).toBe('True/AsExpected');
      expect(own.told).toEqual(['clusterbinding|||rotated']);
      expect(own.opened).toHaveLength(2);
      expect(own.closed).toHaveLength(0);

      own.clock.forward(31_000);
      await own.reconcile('rotating');
      await until('the old client is closed', () => Promise.resolve(own.closed.length === 1));
      expect(own.closed).toEqual([own.opened[0]]);
      await own.close();
    });

    test('drops a credential at once when it gets a 401', async () => {
      const own = new Konnector(consumer.cluster);
      let refuse = false;
      own.providerClient = (client) =>
        interceptClient(client, (_call, send) => {
          if (!refuse) return send();
          return Promise.reject(new KbindError('unauthorized', 'Unauthorized', { side: 'provider' }));
        });
      await own.reconcile('rotating');
      refuse = true;
      expect(await own.reconcile('rotating')).toMatchObject({ type: 'wait', maxSeconds: 30 });
      expect(await consumer.condition('rotating', 'Connected')).toBe('False/Pending');
      expect(await consumer.message('rotating', 'Ready')).toContain('Secret kbind/rotating');
      refuse = false;
      await own.reconcile('rotating');
      expect(await consumer.condition('rotating', 'Ready')).toBe('True/AsExpected');
      expect(own.opened.length).toBeGreaterThan(1);
      await own.close();
    });
  });

  describe('a dry run', () => {
    test('stops before the first write, renews heartbeats when asked to, and writes nothing at rest', async () => {
      await settle('moving');
      const run = (heartbeats: 'renew' | 'pretend', trace = new Trace()) =>
        konnector.reconcile('moving', dryRunWorld(konnector.world(trace), { heartbeats }));
      konnector.clock.forward(11_000);
      expect(await konnector.writesOf(() => run('pretend'))).toEqual([]);
      await provider.hands.create(resources.crds, crdManifest('news.example.org'));
      const stopped = run('pretend');
      await expect(stopped).rejects.toMatchObject({ name: 'WouldWrite', api: 'connections.core.kbind.io' });
      await settle('moving');
    });
  });
});
