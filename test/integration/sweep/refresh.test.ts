import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources, type ObjectKey } from '../../../lib/model/api.ts';
import { reconcileRequest, type RefreshRequest } from '../../../lib/model/request.ts';
import { reconcileBinding } from '../../../lib/reconcile/binding/reconcile.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { reconcileSyncer } from '../../../lib/reconcile/syncer/reconcile.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { runRefresh } from '../../../lib/sweep/refresh.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Consumer, crdManifest, Konnector } from '../connection/fixture.ts';
import { startCluster, stopCluster, until, type ClusterWithHands } from '../../support/apiserver/hands.ts';

/** The refresh with the real controllers on API servers: what it costs at rest, and what it finds. */

const API = 'widgets.example.org';
describe.each(clusterKinds())('$name', (kind) => {
  let consumer: Consumer;
  let provider: ClusterWithHands;
  let konnector: Konnector;

  beforeAll(async () => {
    [consumer, provider] = await Promise.all([Consumer.start(kind), startCluster(kind, 'provider')]);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kbind' } };
    await provider.hands.create(resources.namespaces, namespace);
    await provider.hands.create(resources.crds, crdManifest(API));
    konnector = new Konnector(consumer.cluster);
    await consumer.secret('demo', provider.server.kubeconfig);
    await consumer.connect('demo', 'demo');
    await consumer.bind('widgets', 'demo', [API]);
    await until('everything is at rest', async () => {
      const writes = await konnector.writesOf(settleOnce);
      return writes.filter((write) => !write.endsWith('leases')).length === 0;
    });
  }, 120_000);
  afterAll(async () => {
    await konnector.close();
    await Promise.all([stopCluster(consumer.cluster), stopCluster(provider)]);
  });

  async function settleOnce(): Promise<void> {
    const uid = consumer.cluster.uid;
    await konnector.reconcile('demo');
    await reconcileBinding(konnector.world(), reconcileRequest(uid, 'clusterbinding', { name: 'widgets' }));
    const crd: ObjectKey = { name: API };
    await reconcileSyncer(konnector.world(), reconcileRequest(uid, 'crd', crd));
  }

  interface Pass {
    readonly told: string[];
    readonly writes: string[];
    /** Requests to both sides, Lease writes aside. */
    readonly asked: string[];
  }

  async function refresh(id: string): Promise<Pass> {
    konnector.told.length = 0;
    const asked: string[] = [];
    const counted = (side: string, client: KubeClient): KubeClient =>
      interceptClient(client, (call, send) => {
        asked.push(`${side} ${call.kind} ${call.ref?.resource ?? 'path'}`);
        return send();
      });
    konnector.providerClient = (client) => client;
    const base = konnector.world();
    const cache = createReadsCache(counted('consumer', base.consumer.client), base.clock);
    const reads = cache.viewFor(undefined);
    const world: World = {
      ...base,
      consumer: { ...base.consumer, client: cache.client },
      reads,
      providers: countedProviders(base, counted),
    };
    const request: RefreshRequest = { v: 1, type: 'refresh', cluster: consumer.cluster.uid, id };
    const writes = await konnector.writesOf(() => runRefresh(world, request, { deadline: Number.MAX_SAFE_INTEGER }));
    return { told: [...konnector.told], writes, asked };
  }

  function countedProviders(
    base: World,
    counted: (side: string, client: KubeClient) => KubeClient,
  ): World['providers'] {
    return {
      open: async (connection) => {
        const side = await base.providers.open(connection);
        return { ...side, client: counted('provider', side.client) };
      },
      probe: async (connection) => {
        const probe = await base.providers.probe(connection);
        return { ...probe, side: { ...probe.side, client: counted('provider', probe.side.client) } };
      },
    };
  }

  describe('the 30-second refresh', () => {
    test('at rest: tells nobody, writes the heartbeat Lease and nothing else, and costs what is budgeted', async () => {
      const first = await refresh('refresh/1');
      expect(first.told).toEqual([]);
      expect(first.writes.every((write) => write === 'provider leases')).toBe(true);
      // 6 for the pass, 6 for the Connection, 2 for the binding's API; the provider's identity is asked beside what is seen here.
      expect(first.asked.length).toBeLessThanOrEqual(6 + 6 + 2);
    });

    test('finds a binding whose CRD was taken away, and enqueues that binding without writing anything', async () => {
      await consumer.set(resources.crds, { name: API }, '/metadata/annotations/core.kbind.io~1schema-hash', 'sha256:0');
      const { told, writes } = await refresh('refresh/2');
      expect(told).toContain('clusterbinding|||widgets');
      expect(writes.every((write) => write === 'provider leases')).toBe(true);
    });
  });
});
