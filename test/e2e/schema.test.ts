import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import {
  conditionOf,
  crdFor,
  installCrd,
  makeBinding,
  makeConnection,
  PRODUCT_USER,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { staysTrue } from '../support/e2e/until.ts';
import { api } from '../support/e2e/objects.ts';

interface CrdSpec {
  conversion: { strategy: string; webhook?: unknown };
  versions: { name: string; served: boolean; storage: boolean; additionalPrinterColumns?: { name: string }[] }[];
}
const crdSpec = (crd: KubeObject): CrdSpec => crd.spec as unknown as CrdSpec;
const hashOf = (crd: KubeObject): string => crd.metadata.annotations?.['core.kbind.io/schema-hash'] ?? '';
const COLUMN = { name: 'colour', type: 'string', jsonPath: '.spec.colour' };

describe('schemas', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  });
  afterAll(() => f0.stop());

  const consumerCrd = (name: string): Promise<KubeObject> => f0.consumer.get(resources.crds, { name });
  async function addColumn(name: string): Promise<void> {
    const crd = await f0.provider.get(resources.crds, { name });
    const spec = crdSpec(crd);
    await f0.provider.replace(resources.crds, {
      ...crd,
      spec: { ...spec, versions: spec.versions.map((version) => ({ ...version, additionalPrinterColumns: [COLUMN] })) },
    } as unknown as KubeObject);
  }

  test('S22 Always follows a provider schema change, and the syncer is rebuilt', async () => {
    const before = await consumerCrd('widgets.example.org');
    const planOf = (crd: KubeObject): { generation?: number } =>
      JSON.parse(crd.metadata.annotations?.['core.kbind.io/watch-plan'] ?? '{}') as { generation?: number };
    await addColumn('widgets.example.org');
    const after = await untilObject(
      f0.consumer,
      resources.crds,
      { name: 'widgets.example.org' },
      (crd) => crdSpec(crd).versions[0]?.additionalPrinterColumns?.[0]?.name === 'colour',
    );
    expect(hashOf(after)).not.toBe(hashOf(before));
    await untilObject(
      f0.consumer,
      resources.crds,
      { name: 'widgets.example.org' },
      (crd) => planOf(crd).generation === crd.metadata.generation,
    );
    await untilObject(f0.consumer, resources.clusterBindings, { name: 'widgets' }, (binding) =>
      JSON.stringify(binding.status).includes(hashOf(after)),
    );
    await f0.consumer.make(widgets, { namespace: 'default', name: 'after-change' }, { spec: { colour: 'red' } });
    await untilObject(f0.provider, widgets, { namespace: 'default', name: 'after-change' });
  });

  test('Once does not follow', async () => {
    const once = api('onces', 'Once');
    await installCrd(f0.provider, crdFor(once));
    await makeConnection(f0.consumer, { name: 'once', schema: { updatePolicy: 'Once' } });
    await makeBinding(f0.consumer, { name: 'onces', connection: 'once', apis: ['onces.example.org'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'onces' });
    const before = await consumerCrd('onces.example.org');
    await addColumn('onces.example.org');
    await f0.consumer.merge(resources.clusterBindings, { name: 'onces' }, { metadata: { labels: { touched: 'yes' } } });
    await staysTrue(
      'the CRD stays as it was',
      4_000,
      async () => hashOf(await consumerCrd('onces.example.org')) === hashOf(before),
    );
  });

  test('None stamps only, and is never Ready over a missing CRD', async () => {
    const none = api('nones', 'None');
    await installCrd(f0.provider, crdFor(none));
    await makeConnection(f0.consumer, { name: 'none', schema: { pullPolicy: 'None' } });
    await makeBinding(f0.consumer, { name: 'nones', connection: 'none', apis: ['nones.example.org'] });
    const waiting = await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'nones' },
      (binding) => conditionOf(binding, 'Ready')?.message.includes('nones.example.org') === true,
    );
    expect(conditionOf(waiting, 'Ready')?.status).toBe('False');
    expect(await f0.consumer.find(resources.crds, { name: 'nones.example.org' })).toBeUndefined();
    await installCrd(
      f0.consumer,
      crdFor(none, { exported: false, columns: [{ name: 'own', type: 'string', jsonPath: '.spec.own' }] }),
    );
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'nones' });
    const stamped = await consumerCrd('nones.example.org');
    expect(stamped.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    expect(stamped.metadata.annotations?.['core.kbind.io/connection']).toBe('none');
    expect(crdSpec(stamped).versions[0]?.additionalPrinterColumns?.map(({ name }) => name)).toEqual(['own']);
    await f0.consumer.make(none, { namespace: 'default', name: 'n' }, { spec: { own: '1' } });
    await untilObject(f0.provider, none, { namespace: 'default', name: 'n' });
  });

  test('a single version is kept, the conversion webhook is stripped', async () => {
    const multi = api('multis', 'Multi');
    const crd = crdFor(multi);
    const spec = crd['spec'] as { versions: Record<string, unknown>[] };
    const [v1] = spec.versions;
    await installCrd(f0.provider, {
      ...crd,
      metadata: { ...crd.metadata, annotations: { 'argocd.argoproj.io/instance': 'tracked' } } as unknown as {
        name: string;
      },
      spec: {
        ...spec,
        versions: [{ ...v1, name: 'v1beta1', storage: false }, v1],
        conversion: {
          strategy: 'Webhook',
          webhook: {
            conversionReviewVersions: ['v1'],
            clientConfig: { service: { namespace: 'default', name: 'nowhere' } },
          },
        },
      },
    });
    await makeBinding(f0.consumer, { name: 'multis', apis: ['multis.example.org'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'multis' });
    const pulled = await consumerCrd('multis.example.org');
    expect(crdSpec(pulled).versions.map(({ name, served, storage }) => ({ name, served, storage }))).toEqual([
      { name: 'v1', served: true, storage: true },
    ]);
    expect(crdSpec(pulled).conversion).toEqual({ strategy: 'None' });
    expect(pulled.metadata.annotations?.['argocd.argoproj.io/instance']).toBeUndefined();
    await f0.consumer.make(multi, { namespace: 'default', name: 'm' }, { spec: { a: 1 } });
    await untilObject(f0.provider, multi, { namespace: 'default', name: 'm' });
    await f0.consumer.delete(resources.clusterBindings, { name: 'multis' });
    await untilGone(f0.consumer, resources.crds, { name: 'multis.example.org' });
  });

  test('case 20: no status subresource: the status travels through the main resource, and deletion still works', async () => {
    const plain = api('plains', 'Plain');
    await installCrd(f0.provider, crdFor(plain, { statusSubresource: false }));
    await makeBinding(f0.consumer, { name: 'plains', apis: ['plains.example.org'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'plains' });
    const key = { namespace: 'default', name: 'p' };
    await f0.consumer.make(plain, key, { spec: { a: 1 } });
    await untilObject(f0.provider, plain, key);
    await f0.provider.merge(plain, key, { status: { phase: 'Up' } });
    await untilObject(
      f0.consumer,
      plain,
      key,
      (object) => (object.status as { phase?: string } | undefined)?.phase === 'Up',
    );
    const source = await f0.consumer.get(plain, key);
    expect(source.spec).toEqual({ a: 1 });
    expect([source.metadata.labels, source.metadata.annotations]).toEqual([undefined, undefined]);
    const about = (await f0.consumer.requestsOf(PRODUCT_USER)).filter(({ resource }) => resource === 'plains');
    expect(about.filter(({ verb, status }) => verb !== 'get' && status === 404)).toEqual([]);
    await f0.consumer.delete(plain, key);
    await untilGone(f0.provider, plain, key);
    await untilGone(f0.consumer, plain, key);
  });

  // From here on other Connections pull whatever is exported.
  test('S24 All pulls every export without a binding', async () => {
    const doodads: ResourceRef = {
      group: 'doodad.io',
      version: 'v1',
      resource: 'doodads',
      kind: 'Doodad',
      namespaced: true,
    };
    await installCrd(f0.provider, crdFor(doodads));
    await makeConnection(f0.consumer, { name: 'all-provider', schema: { pullPolicy: 'All' } });
    const crd = await untilObject(f0.consumer, resources.crds, { name: 'doodads.doodad.io' });
    expect(crd.metadata.labels?.['core.kbind.io/managed']).toBe('true');
  });

  test('S23 autoBind keeps a ClusterBinding of its own', async () => {
    await makeConnection(f0.consumer, { name: 'auto-provider', autoBind: true });
    const binding = await untilObject(f0.consumer, resources.clusterBindings, { name: 'auto-provider' }, (object) =>
      JSON.stringify(object.spec).includes('widgets.example.org'),
    );
    expect(binding.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    expect(binding.metadata.ownerReferences?.length).toBeGreaterThan(0);
  });
});
