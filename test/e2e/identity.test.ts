import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../lib/model/api.ts';
import {
  base64,
  conditionOf,
  installCrd,
  crdFor,
  makeBinding,
  makeConnection,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { CuttableProxy } from '../support/e2e/proxy.ts';
import { staysTrue, until } from '../support/e2e/until.ts';
import { at, specOf } from '../support/e2e/objects.ts';

const secret = { namespace: 'kbind', name: 'demo-provider-kubeconfig' };

describe('a provider that is away, is another one, or serves another version', () => {
  let f0: F0;
  let proxy: CuttableProxy;
  beforeAll(async () => {
    f0 = await startF0();
    proxy = await CuttableProxy.start(f0.provider.real.server);
    await f0.consumer.merge(resources.secrets, secret, {
      data: { kubeconfig: base64(proxy.throughProxy(f0.providerKubeconfig)) },
    });
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  });
  afterAll(async () => {
    await proxy.stop();
    await f0.stop();
  });

  test('an unreachable provider holds a deletion, and it finishes when the provider is back', async () => {
    await f0.consumer.make(widgets, at('held'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('held'));
    proxy.cut();
    await f0.consumer.delete(widgets, at('held'));
    await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'demo-provider' },
      (object) => conditionOf(object, 'Connected')?.status === 'False',
    );
    await staysTrue(
      'the deleted object waits',
      3_000,
      async () => (await f0.consumer.find(widgets, at('held'))) !== undefined,
    );
    expect(await f0.provider.find(widgets, at('held'))).toBeDefined();
    await f0.consumer.make(widgets, at('born-in-the-dark'), { spec: { size: 's' } });
    proxy.mend();
    await untilGone(f0.provider, widgets, at('held'), 120_000);
    await untilGone(f0.consumer, widgets, at('held'));
    await untilObject(f0.provider, widgets, at('born-in-the-dark'));
    await untilReady(f0.consumer, resources.connections, { name: 'demo-provider' });
  });

  test('another cluster under the same Secret: ClusterIdentityChanged, nothing moves and nothing is deleted', async () => {
    await f0.consumer.make(widgets, at('stays'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('stays'));
    const other = await f0.consumer.real.addUser({ name: 'wrong-cluster', groups: ['system:masters'] });
    await f0.consumer.merge(resources.secrets, secret, { data: { kubeconfig: base64(other.kubeconfig) } });
    const changed = await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'demo-provider' },
      (object) => conditionOf(object, 'Ready')?.reason === 'ClusterIdentityChanged',
    );
    expect(conditionOf(changed, 'Connected')?.reason).toBe('ClusterIdentityChanged');
    await f0.consumer.delete(widgets, at('stays'));
    await staysTrue(
      'the object waits, its copy stays',
      4_000,
      async () =>
        (await f0.consumer.find(widgets, at('stays'))) !== undefined &&
        (await f0.provider.find(widgets, at('stays'))) !== undefined,
    );
    await f0.consumer.merge(resources.secrets, secret, {
      data: { kubeconfig: base64(proxy.throughProxy(f0.providerKubeconfig)) },
    });
    await untilReady(f0.consumer, resources.connections, { name: 'demo-provider' });
    await untilGone(f0.consumer, widgets, at('stays'));
    expect(await f0.provider.find(widgets, at('stays'))).toBeUndefined();
  });

  test('a provider that stops serving the version in use deletes nothing and releases nothing', async () => {
    await f0.consumer.make(widgets, at('versioned'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('versioned'));
    const crd = await f0.provider.get(resources.crds, { name: 'widgets.example.org' });
    const spec = crd.spec as { versions: Record<string, unknown>[] };
    const [v1] = spec.versions;
    await f0.provider.replace(resources.crds, {
      ...crd,
      spec: {
        ...spec,
        versions: [
          { ...v1, served: false },
          { ...v1, name: 'v2', storage: false },
        ],
      },
    });
    const v2 = { ...widgets, version: 'v2' };
    await untilObject(f0.provider, v2, at('versioned'));
    await f0.consumer.delete(widgets, at('versioned'));
    await staysTrue(
      'the object waits, its copy stays',
      5_000,
      async () =>
        (await f0.consumer.find(widgets, at('versioned')).catch(() => ({}))) !== undefined &&
        (await f0.provider.find(v2, at('versioned'))) !== undefined,
    );
    const now = await f0.provider.get(resources.crds, { name: 'widgets.example.org' });
    await f0.provider
      .replace(resources.crds, { ...now, spec: { ...spec, versions: [v1] } } as unknown as KubeObject)
      .catch(async () => {
        await f0.provider.replace(resources.crds, {
          ...now,
          spec: { ...spec, versions: [v1, { ...v1, name: 'v2', storage: false }] },
        } as unknown as KubeObject);
      });
    await untilGone(f0.provider, v2, at('versioned'), 120_000).catch(() =>
      untilGone(f0.provider, widgets, at('versioned')),
    );
    await untilGone(f0.consumer, widgets, at('versioned'), 120_000);
  });

  test('S37 S38 a kcp-like provider is known by its LogicalCluster', async () => {
    const logical = { ...resources.logicalClusters };
    await installCrd(f0.provider, crdFor(logical, { exported: false }));
    await f0.provider.make(logical, { name: 'cluster' }, { spec: {} });
    const uid = (await f0.provider.get(logical, { name: 'cluster' })).metadata.uid;
    // Which API tells the identity is remembered for a minute, and looked at by the 30-second refresh.
    await until(
      'the old Connection notices',
      async () =>
        conditionOf(await f0.consumer.get(resources.connections, { name: 'demo-provider' }), 'Ready')?.reason ===
        'ClusterIdentityChanged',
      { timeoutMs: 150_000 },
    );
    await makeConnection(f0.consumer, { name: 'kcp-provider' });
    const connection = await untilReady(f0.consumer, resources.connections, { name: 'kcp-provider' });
    expect((connection.status as { remoteClusterUID?: string }).remoteClusterUID).toBe(uid);
    expect(specOf(connection)['autoBind']).toBe(false);
  });
});
