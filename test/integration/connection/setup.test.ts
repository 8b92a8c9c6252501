import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Consumer, crdManifest, Konnector } from './fixture.ts';
import { startCluster, stopCluster, until, type ClusterWithHands } from '../../support/apiserver/hands.ts';

/** How a Connection comes up, on API servers: scenarios S1, S2, S10, S12, S16, S17, S25 and the field cases beside them. */

describe.each(clusterKinds())('$name', (kind) => {
  let consumer: Consumer;
  let provider: ClusterWithHands;
  let konnector: Konnector;

  beforeAll(async () => {
    [consumer, provider] = await Promise.all([Consumer.start(kind), startCluster(kind, 'provider')]);
    await provider.hands.create(resources.namespaces, namespace('kbind'));
    await provider.hands.create(resources.crds, crdManifest('widgets.example.org'));
    await provider.hands.create(resources.crds, crdManifest('hidden.example.org', { exported: false }));
    konnector = new Konnector(consumer.cluster);
  }, 120_000);
  afterAll(async () => {
    await konnector.close();
    await Promise.all([stopCluster(consumer.cluster), stopCluster(provider)]);
  });

  const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const leaseKey = (connection: string) => ({
    namespace: 'kbind',
    name: `${connection}-${consumer.cluster.uid.slice(0, 10)}`,
  });

  /** Runs the controller as its own events would. */
  async function settle(name: string): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) {
      const writes = await konnector.writesOf(() => konnector.reconcile(name));
      if (writes.length === 0) return;
    }
    throw new Error(`Connection ${name} does not come to rest`);
  }

  describe('a Connection', () => {
    test('comes up after its Secret: finalizers first, then pins, exports, heartbeat, Ready', async () => {
      await consumer.secret('demo', provider.server.kubeconfig);
      await consumer.connect('demo', 'demo');
      const first = await konnector.writesOf(() => konnector.reconcile('demo'));
      expect(first).toEqual(['consumer connections']);
      expect((await consumer.connection('demo')).metadata).toMatchObject({
        finalizers: ['core.kbind.io/cleanup'],
        annotations: { 'core.kbind.io/kubeconfig-secret-ref': 'kbind/demo/kubeconfig' },
      });
      const outcome = await konnector.reconcile('demo');
      expect(outcome.type).toBe('done');

      const { status } = await consumer.connection('demo');
      expect(status).toMatchObject({
        remoteClusterUID: provider.uid,
        localClusterUID: consumer.cluster.uid,
        activeSchemaSource: 'CRD',
        exportedAPIs: [
          {
            name: 'widgets.example.org',
            group: 'example.org',
            resource: 'widgets',
            scope: 'Namespaced',
            versions: ['v1'],
          },
        ],
      });
      expect(status.secretVersion).toMatch(/^sha256:[0-9a-f]{16}$/);
      const said = Object.fromEntries(
        (status.conditions ?? []).map(({ type, status, reason }) => [type, `${status}/${reason}`]),
      );
      expect(said).toEqual({
        SecretValid: 'True/AsExpected',
        Connected: 'True/AsExpected',
        SchemaInSync: 'True/AsExpected',
        PermissionDenied: 'False/AsExpected',
        Ready: 'True/AsExpected',
      });
      const secret = await consumer.find(resources.secrets, { namespace: 'kbind', name: 'demo' });
      expect(secret?.metadata.finalizers).toEqual(['core.kbind.io/cleanup']);
    });

    test('that has come to rest is not written again', async () => {
      await settle('demo');
      expect(await konnector.writesOf(() => konnector.reconcile('demo'))).toEqual([]);
    });

    test('renews a Lease that says whose it is, with six fractional digits', async () => {
      const lease = await provider.hands.get(resources.leases, leaseKey('demo'));
      expect(lease.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
      expect(lease.metadata.annotations).toEqual({
        'core.kbind.io/connection': 'demo',
        'core.kbind.io/consumer-cluster-uid': consumer.cluster.uid,
      });
      expect(lease.spec).toMatchObject({ holderIdentity: consumer.cluster.uid, leaseDurationSeconds: 60 });
      const { renewTime } = lease.spec as { renewTime: string };
      expect(renewTime).toMatch(/T\d\d:\d\d:\d\d\.\d{6}Z$/);

      konnector.clock.forward(11_000);
      await konnector.reconcile('demo');
      const later = (await provider.hands.get(resources.leases, leaseKey('demo'))).spec as { renewTime: string };
      expect(later.renewTime > renewTime).toBe(true);
    });

    test('costs five requests of its own to look at, the Lease included', async () => {
      konnector.clock.forward(11_000);
      konnector.requests.length = 0;
      await konnector.reconcile('demo');
      const own = konnector.requests.filter((request) => /^provider|secrets$/.test(request));
      expect(own.sort()).toEqual([
        'consumer secrets',
        'provider customresourcedefinitions',
        'provider leases',
        'provider leases',
        'provider namespaces',
      ]);
    });

    test('notices a new export and one that is taken back, without an edit on the consumer', async () => {
      const created = await provider.hands.create(
        resources.crds,
        crdManifest('gadgets.gadget.io', { scope: 'Cluster' }),
      );
      await konnector.reconcile('demo');
      const names = async () => (await consumer.connection('demo')).status.exportedAPIs?.map(({ name }) => name);
      expect(await names()).toEqual(['gadgets.gadget.io', 'widgets.example.org']);

      const { uid } = created.metadata;
      await provider.hands.patch(
        resources.crds,
        { name: 'gadgets.gadget.io' },
        {
          read: { uid },
          operations: [{ op: 'replace', path: '/metadata/labels/core.kbind.io~1exported', value: 'yes' }],
        },
      );
      await konnector.reconcile('demo');
      expect(await names()).toEqual(['widgets.example.org']);
    });

    test('before its Secret waits with SecretNotFound and comes up with it', async () => {
      await consumer.connect('late', 'late');
      await konnector.reconcile('late');
      expect(await konnector.reconcile('late')).toMatchObject({ type: 'done' });
      expect(await consumer.condition('late', 'SecretValid')).toBe('False/SecretNotFound');
      expect(await consumer.condition('late', 'Connected')).toBe('Unknown/Pending');
      expect(await consumer.condition('late', 'Ready')).toBe('False/SecretNotFound');
      expect(await consumer.message('late', 'Ready')).toContain('Secret kbind/late does not exist');

      await consumer.secret('late', provider.server.kubeconfig);
      await konnector.reconcile('late');
      expect(await consumer.condition('late', 'Ready')).toBe('True/AsExpected');
    });

    test('loses readiness with a broken kubeconfig, keeps its pins, and is another epoch when it is back', async () => {
      const before = await consumer.connection('late');
      await consumer.setKubeconfig('late', 'junk');
      await konnector.reconcile('late');
      expect(await consumer.condition('late', 'SecretValid')).toBe('False/SecretNotFound');
      expect(await consumer.condition('late', 'Ready')).toBe('False/SecretNotFound');
      expect((await consumer.connection('late')).status.remoteClusterUID).toBe(provider.uid);

      await until('the clock is in another second', () =>
        Promise.resolve(Date.now() - Date.parse(before.metadata.creationTimestamp ?? '') > 1_000),
      );
      await consumer.setKubeconfig('late', provider.server.kubeconfig);
      await konnector.reconcile('late');
      expect(await consumer.condition('late', 'Ready')).toBe('True/AsExpected');
      expect(await konnector.writesOf(() => konnector.reconcile('late'))).toEqual([]);
    });

    test.each([
      ['exec', /users\[0\]\.user\.exec/],
      ['tokenFile', /users\[0\]\.user\.tokenFile/],
      ['auth-provider', /users\[0\]\.user\.auth-provider/],
    ])('refuses a kubeconfig with %s and names the field', async (field, expected) => {
      const kubeconfig = [
        'apiVersion: v1',
        'kind: Config',
        'current-context: a',
        'clusters: [{name: a, cluster: {server: "https://provider.example:6443"}}]',
        'contexts: [{name: a, context: {cluster: a, user: a}}]',
        `users: [{name: a, user: {${field}: {command: "true"}}}]`,
      ].join('\n');
      const name = `refused-${field.toLowerCase()}`;
      await consumer.secret(name, kubeconfig);
      await consumer.connect(name, name);
      await settle(name);
      expect(await consumer.condition(name, 'SecretValid')).toBe('False/SecretNotFound');
      expect(await consumer.message(name, 'Ready')).toMatch(expected);
    });

    test('whose user may do nothing says what to grant, and recovers', async () => {
      const user = await provider.server.addStranger('nobody');
      await consumer.secret('restricted', user.kubeconfig);
      await consumer.connect('restricted', 'restricted');
      await settle('restricted');
      expect(await consumer.condition('restricted', 'PermissionDenied')).toBe('True/Forbidden');
      expect(await consumer.condition('restricted', 'Ready')).toBe('False/Forbidden');
      expect(await consumer.condition('restricted', 'SecretValid')).toBe('True/AsExpected');
      expect(await consumer.message('restricted', 'Ready')).toMatch(
        /grant get on namespaces to the kubeconfig's user.*kube-system/,
      );

      await consumer.setKubeconfig('restricted', provider.server.kubeconfig);
      await konnector.reconcile('restricted');
      expect(await consumer.condition('restricted', 'PermissionDenied')).toBe('False/AsExpected');
      expect(await consumer.condition('restricted', 'Ready')).toBe('True/AsExpected');
    });

    test('whose provider does not answer is looked at again after 2 seconds, doubling to 30', async () => {
      const gone = provider.server.kubeconfig.replace(/server: .*/g, 'server: https://127.0.0.1:1');
      await consumer.secret('away', gone);
      await consumer.connect('away', 'away');
      await konnector.reconcile('away');
      expect(await konnector.reconcile('away')).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 30 });
      expect(await consumer.condition('away', 'Connected')).toBe('False/Pending');
      expect(await consumer.condition('away', 'Ready')).toBe('False/Pending');
      expect(await konnector.writesOf(() => konnector.reconcile('away'))).toEqual([]);
    });

    test('with a name too long for a Lease is Ready all the same', async () => {
      const name = `long-${'x'.repeat(245)}`;
      await consumer.connect(name, 'demo');
      await settle(name);
      expect(await consumer.condition(name, 'Ready')).toBe('True/AsExpected');
    });

    test('leaves a Lease alone that bears its name and not our mark', async () => {
      const key = leaseKey('squatted');
      const theirs = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: key,
        spec: { holderIdentity: 'x' },
      };
      await provider.hands.create(resources.leases, theirs);
      await consumer.connect('squatted', 'demo');
      await settle('squatted');
      expect(await consumer.condition('squatted', 'Ready')).toBe('True/AsExpected');
      expect((await provider.hands.get(resources.leases, key)).spec).toEqual({ holderIdentity: 'x' });
    });

    test('whose secret reference is changed on a server that lets it says that it is immutable', async () => {
      await consumer.connect('fixed', 'demo');
      await settle('fixed');
      const change = consumer.set(resources.connections, { name: 'fixed' }, '/spec/kubeconfigSecretRef/name', 'late');
      const refusal = await change.then(
        () => undefined,
        (error: unknown) => String(error),
      );
      if (refusal === undefined) await konnector.reconcile('fixed');
      const said = refusal ?? (await consumer.message('fixed', 'Ready'));
      expect(said).toContain('kubeconfigSecretRef is immutable');
      expect(await consumer.condition('fixed', 'Ready')).toBe(
        refusal === undefined ? 'False/SecretNotFound' : 'True/AsExpected',
      );
    });
  });
});
