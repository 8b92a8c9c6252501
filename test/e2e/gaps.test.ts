import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import { TestCluster } from '../support/e2e/cluster.ts';
import {
  assets,
  conditionOf,
  crdFor,
  ensureNamespace,
  installCrd,
  isReady,
  makeBinding,
  makeConnection,
  makeKubeconfigSecret,
  PRODUCT_USER,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';
import { api, at } from '../support/e2e/objects.ts';

/** autoBind believes an empty list after a second one, 60 s later (spec §2.6). */
const ZERO_EXPORTS_MS = 150_000;

describe('what the reference leaves untested (scenarios 1.7 and 1.9)', () => {
  let f0: F0;
  let second: TestCluster;
  beforeAll(async () => {
    f0 = await startF0();
    second = await TestCluster.start('second-provider', assets().provider);
    const user = await second.real.addUser({ name: PRODUCT_USER, groups: ['system:masters'] });
    await makeKubeconfigSecret(f0.consumer, 'second-provider', user.kubeconfig);
  });
  afterAll(async () => {
    await f0.stop();
    await second.stop();
  });

  describe.concurrent('side by side', () => {
    test('autoBind follows what is exported: it grows, shrinks, and with nothing left goes, but only after a minute', async () => {
      const [alphas, betas] = [api('alphas', 'Alpha'), api('betas', 'Beta')];
      const key = { name: 'auto' };
      await installCrd(second, crdFor(alphas));
      await makeConnection(f0.consumer, { name: key.name, secret: 'second-provider', autoBind: true });
      const bound = (...apis: readonly ResourceRef[]): Promise<KubeObject> => {
        const names = apis.map(({ resource, group }) => `${resource}.${group}`);
        return until(
          `auto serves ${names.join(' and ')}`,
          async () => {
            const binding = await f0.consumer.find(resources.clusterBindings, key);
            const { boundAPIs } = (binding?.status ?? {}) as { boundAPIs?: readonly { name: string }[] };
            return (
              isReady(binding) &&
              isDeepStrictEqual(
                boundAPIs?.map(({ name }) => name),
                names,
              ) &&
              binding
            );
          },
          { timeoutMs: 90_000, seen: () => f0.consumer.find(resources.clusterBindings, key) },
        );
      };
      await bound(alphas);
      await installCrd(second, crdFor(betas));
      await bound(alphas, betas);
      const unexport = (ref: ResourceRef): Promise<unknown> =>
        second.merge(
          resources.crds,
          { name: `${ref.resource}.${ref.group}` },
          { metadata: { labels: { 'core.kbind.io/exported': null } } },
        );
      await unexport(betas);
      await bound(alphas);
      // What a list drops stays installed: only the binding that still lists an API takes its CRD along (spec §4).
      const dropped = { name: 'betas.example.org' };
      expect((await f0.consumer.get(resources.crds, dropped)).metadata.deletionTimestamp).toBeUndefined();
      await f0.consumer.kubectl('delete', 'crd', dropped.name, '--timeout=60s');
      await unexport(alphas);
      const since = await until(
        'the first empty list is noted',
        async () =>
          ((await f0.consumer.get(resources.connections, key)).status as { exportsEmptySince?: string })
            .exportsEmptySince,
        { timeoutMs: 90_000 },
      );
      await untilGone(f0.consumer, resources.clusterBindings, key, ZERO_EXPORTS_MS);
      expect(Date.now() - Date.parse(since)).toBeGreaterThan(60_000);
      await untilGone(f0.consumer, resources.crds, { name: 'alphas.example.org' });
    }, 400_000);

    test('S39 the typed sample through kubectl: wait for the Connection, the CRD and the binding; a pruned spec goes up, the status comes down', async () => {
      const databases = api('databases', 'Database');
      const text = { type: 'string' };
      await installCrd(
        f0.provider,
        crdFor(databases, {
          schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: text } },
              status: { type: 'object', properties: { phase: text } },
            },
          },
          columns: [
            { name: 'Size', type: 'string', jsonPath: '.spec.size' },
            { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
          ],
        }),
      );
      await makeConnection(f0.consumer, { name: 'typed' });
      await makeBinding(f0.consumer, { name: 'typed', connection: 'typed', apis: ['databases.example.org'] });
      const wait = (what: string, condition: string): Promise<string> =>
        f0.consumer.kubectl('wait', what, `--for=condition=${condition}`, '--timeout=60s');
      await wait('connection/typed', 'Ready');
      await wait('clusterbinding/typed', 'Synced=True');
      await wait('crd/databases.example.org', 'Established');
      await f0.consumer.make(databases, at('typed'), { spec: { size: 'large', unknown: 'pruned' } });
      const copy = await untilObject(f0.provider, databases, at('typed'));
      expect(copy.spec).toEqual({ size: 'large' });
      await f0.provider.kubectl(
        'patch',
        'databases/typed',
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":"Running"}}',
      );
      await f0.consumer.kubectl('wait', 'databases/typed', '--for=jsonpath={.status.phase}=Running', '--timeout=30s');
      expect(await f0.consumer.kubectl('get', 'databases')).toMatch(/SIZE\s+PHASE\s+typed\s+large\s+Running/);
    });

    test('two Connections to two providers: each API goes to its own; a second Connection of one API is told, and takes nothing', async () => {
      const [ours, theirs] = [api('firsthands', 'Firsthand'), api('secondhands', 'Secondhand')];
      await installCrd(f0.provider, crdFor(ours));
      await installCrd(second, crdFor(theirs, { exported: false }));
      await installCrd(second, crdFor(ours, { exported: false }));
      await makeConnection(f0.consumer, { name: 'one' });
      // Exports nothing by label until this test is over: the auto-binding beside it counts them.
      await makeConnection(f0.consumer, { name: 'two', secret: 'second-provider', schema: { source: 'OpenAPI' } });
      await makeBinding(f0.consumer, { name: 'one', connection: 'one', apis: ['firsthands.example.org'] });
      await makeBinding(f0.consumer, { name: 'two', connection: 'two', apis: ['secondhands.example.org'] });
      for (const name of ['one', 'two']) await untilReady(f0.consumer, resources.clusterBindings, { name });
      for (const [ref, home, other] of [
        [ours, f0.provider, second],
        [theirs, second, f0.provider],
      ] as const) {
        await f0.consumer.make(ref, at('routed'), { spec: { size: 's' } });
        await untilObject(home, ref, at('routed'));
        expect(await other.find(ref, at('routed')).catch(() => undefined)).toBeUndefined();
        await home.setStatus(ref, at('routed'), { phase: 'Up' });
        await untilObject(f0.consumer, ref, at('routed'), ({ status }) => status !== undefined);
      }
      await makeBinding(f0.consumer, { name: 'thief', connection: 'two', apis: ['firsthands.example.org'] });
      const told = await untilObject(
        f0.consumer,
        resources.clusterBindings,
        { name: 'thief' },
        (object) => conditionOf(object, 'Ready')?.message.includes('Connection one') === true,
      );
      expect(conditionOf(told, 'Ready')?.status).toBe('False');
      const crd = await f0.consumer.get(resources.crds, { name: 'firsthands.example.org' });
      expect(crd.metadata.annotations?.['core.kbind.io/connection']).toBe('one');
      expect(await second.find(ours, at('routed'))).toBeUndefined();
    });

    test('a ClusterBinding goes before a Binding of the same API, and the shadowed one says so', async () => {
      const shared = api('shareds', 'Shared');
      await installCrd(f0.provider, crdFor(shared));
      await makeConnection(f0.consumer, { name: 'shadow' });
      await makeBinding(f0.consumer, {
        name: 'shadowed',
        namespace: 'default',
        connection: 'shadow',
        apis: ['shareds.example.org'],
        conflictPolicy: 'Adopt',
      });
      await untilReady(f0.consumer, resources.bindings, at('shadowed'));
      await makeBinding(f0.consumer, { name: 'shadow', connection: 'shadow', apis: ['shareds.example.org'] });
      await untilReady(f0.consumer, resources.clusterBindings, { name: 'shadow' });
      await untilObject(
        f0.consumer,
        resources.bindings,
        at('shadowed'),
        (object) => conditionOf(object, 'Ready')?.message.includes('ClusterBinding shadow') === true,
      );
      await f0.provider.make(shared, at('taken'), { spec: { size: 'theirs' } });
      await f0.consumer.make(shared, at('taken'), { spec: { size: 'ours' } });
      // Fail, the ClusterBinding's policy, holds; the Binding's Adopt does not.
      await untilObject(
        f0.consumer,
        shared,
        at('taken'),
        ({ metadata }) => metadata.annotations?.['core.kbind.io/conflict'] === 'ForeignObjectExists',
      );
      await f0.provider.delete(shared, at('taken'));
      await untilObject(f0.provider, shared, at('taken'), ({ spec }) => (spec as { size: string }).size === 'ours');
    });
  });

  test('kubectl delete -f of everything at once ends with nothing of ours left on either side but namespaces and Leases', async () => {
    await f0.consumer.kubectl('delete', 'clusterbindings,connections', '--all', '--wait=false');
    await f0.consumer.kubectl('delete', 'bindings.core.kbind.io', '--all', '-A', '--wait=false');
    const manifest = (kind: string, name: string, fields: object, apiVersion = 'core.kbind.io/v1alpha1'): object => ({
      apiVersion,
      kind,
      metadata:
        kind === 'Secret' || kind === 'Widget' || kind === 'Binding' ? { name, namespace: 'default' } : { name },
      ...fields,
    });
    const secret = { data: { kubeconfig: Buffer.from(f0.providerKubeconfig).toString('base64') } };
    const spec = { connectionRef: { name: 'bundle' }, apis: [{ name: 'widgets.example.org' }] };
    const settings = [
      manifest('Secret', 'bundle', secret, 'v1'),
      manifest('Connection', 'bundle', {
        spec: { kubeconfigSecretRef: { namespace: 'default', name: 'bundle' }, schema: { source: 'CRD' } },
      }),
      manifest('ClusterBinding', 'bundle', {
        spec: {
          ...spec,
          relatedResources: [
            { group: '', resource: 'configmaps', direction: 'FromProvider', selector: { names: ['bundled'] } },
          ],
        },
      }),
      manifest('Binding', 'bundle', { spec }),
    ];
    const objects = Array.from({ length: 10 }, (_, index) =>
      manifest('Widget', `bundle-${index}`, { spec: { size: 's' } }, 'example.org/v1'),
    );
    const directory = await mkdtemp(join(tmpdir(), 'kbind-bundle-'));
    const file = async (name: string, items: readonly object[]): Promise<string> => {
      const path = join(directory, name);
      await writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      return path;
    };
    try {
      await ensureNamespace(f0.provider, 'bundled-only');
      await f0.provider.make(resources.configmaps, at('bundled'), { data: { region: 'eu' } });
      for (const order of [
        [...settings, ...objects],
        [...objects, ...settings.toReversed()],
      ]) {
        await f0.consumer.kubectl('create', '-f', await file('settings.json', settings));
        await untilReady(f0.consumer, resources.clusterBindings, { name: 'bundle' });
        await until('widgets are served', () => f0.consumer.list(widgets).then(() => true));
        await f0.consumer.kubectl('create', '-f', await file('objects.json', objects));
        await until('all copies are there', async () => (await f0.provider.list(widgets)).length === objects.length);
        await f0.consumer.kubectl('delete', '--wait=false', '--ignore-not-found', '-f', await file('all.json', order));
        await untilGone(f0.consumer, resources.connections, { name: 'bundle' }, 120_000);
        await untilGone(f0.consumer, resources.secrets, at('bundle'));
        await nothingLeft();
      }
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }, 400_000);

  /** Looks for marks of ours on both sides, in all that we ever write to. */
  async function nothingLeft(): Promise<void> {
    for (const ref of [resources.connections, resources.clusterBindings, resources.bindings]) {
      await until(`no ${ref.resource} are left`, async () => (await f0.consumer.list(ref)).length === 0, {
        timeoutMs: 120_000,
        seen: () => f0.consumer.list(ref),
      });
    }
    const managed = { labelSelector: 'core.kbind.io/managed=true' };
    for (const cluster of [f0.consumer, f0.provider]) {
      for (const ref of [resources.crds, resources.secrets, resources.configmaps])
        expect(await cluster.list(ref, managed)).toEqual([]);
      for (const { metadata } of await cluster.list(resources.secrets)) expect(metadata.finalizers ?? []).toEqual([]);
    }
    expect(await f0.provider.list(widgets)).toEqual([]);
    expect((await f0.provider.list(resources.configmaps)).map(({ metadata }) => metadata.name)).toContain('bundled');
  }
});
