import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import {
  conditionOf,
  crdFor,
  ensureNamespace,
  gadgets,
  installCrd,
  isTrue,
  makeBinding,
  makeConnection,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { staysTrue, until } from '../support/e2e/until.ts';
import { annotationsOf, specOf, statusOf } from '../support/e2e/objects.ts';

describe('one API between two real clusters (scenarios S1–S11, S15)', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0();
  });
  afterAll(() => f0.stop());

  const widget = (name: string, namespace = 'default'): { name: string; namespace: string } => ({ name, namespace });

  test('S1 the Connection becomes Ready, with both identities and the export', async () => {
    await makeConnection(f0.consumer);
    const connection = await untilReady(f0.consumer, resources.connections, { name: 'demo-provider' });
    const status = statusOf(connection) as {
      localClusterUID?: string;
      remoteClusterUID?: string;
      exportedAPIs?: { name: string }[];
    };
    expect(status.localClusterUID).toBe(
      (await f0.consumer.get(resources.namespaces, { name: 'kube-system' })).metadata.uid,
    );
    expect(status.remoteClusterUID).toBe(
      (await f0.provider.get(resources.namespaces, { name: 'kube-system' })).metadata.uid,
    );
    expect(status.exportedAPIs?.map(({ name }) => name)).toContain('widgets.example.org');
  });

  test('case 2 (S2): the heartbeat Lease stands on the provider and is renewed, in MicroTime', async () => {
    const local = (
      statusOf(await f0.consumer.get(resources.connections, { name: 'demo-provider' })) as { localClusterUID: string }
    ).localClusterUID;
    const key = { namespace: 'kbind', name: `demo-provider-${local.slice(0, 10)}` };
    const first = await untilObject(f0.provider, resources.leases, key);
    expect(specOf(first)['holderIdentity']).toBe(local);
    expect(first.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    for (const time of ['renewTime', 'acquireTime']) expect(String(specOf(first)[time])).toMatch(/\.\d{6}Z$/);
    await untilObject(
      f0.provider,
      resources.leases,
      key,
      (lease) => String(specOf(lease)['renewTime']) > String(specOf(first)['renewTime']),
    );
  });

  test('S3 the binding becomes Ready and the CRD is pulled', async () => {
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    const crd = await f0.consumer.get(resources.crds, { name: 'widgets.example.org' });
    expect(crd.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    expect(crd.metadata.labels?.['core.kbind.io/exported']).toBeUndefined();
    expect(annotationsOf(crd)['core.kbind.io/connection']).toBe('demo-provider');
    const table = await f0.consumer.kubectl('get', 'connections,clusterbindings');
    expect(table).toMatch(/connection\.core\.kbind\.io\/demo-provider\s+True/);
    expect(table).toMatch(/clusterbinding\.core\.kbind\.io\/widgets\s+True/);
  });

  test('S4 a spec goes up, owned and marked; the consumer object carries the finalizer', async () => {
    await f0.consumer.make(widgets, widget('my-widget'), { spec: { size: 'large', drop: 'me' } });
    const copy = await untilObject(f0.provider, widgets, widget('my-widget'));
    const source = await f0.consumer.get(widgets, widget('my-widget'));
    expect(specOf(copy)).toEqual({ size: 'large', drop: 'me' });
    expect(copy.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    expect(annotationsOf(copy)['core.kbind.io/consumer-object-uid']).toBe(source.metadata.uid);
    expect(annotationsOf(copy)['core.kbind.io/consumer-cluster-uid']).toBe(
      (await f0.consumer.get(resources.namespaces, { name: 'kube-system' })).metadata.uid,
    );
    expect(source.metadata.finalizers).toContain('core.kbind.io/syncer');
  });

  test('a field that leaves the spec in the first edit after creation leaves the provider', async () => {
    await f0.consumer.merge(widgets, widget('my-widget'), { spec: { drop: null } });
    await untilObject(f0.provider, widgets, widget('my-widget'), (copy) => !('drop' in specOf(copy)));
  });

  test('S5 a status comes down, whole, within the event and not the refresh', async () => {
    await f0.provider.setStatus(widgets, widget('my-widget'), { phase: 'Running', nested: { empty: {} } });
    await until(
      'the status arrives',
      async () => statusOf(await f0.consumer.get(widgets, widget('my-widget')))['phase'] === 'Running',
      { timeoutMs: 10_000 },
    );
    expect(statusOf(await f0.consumer.get(widgets, widget('my-widget')))).toEqual({
      phase: 'Running',
      nested: { empty: {} },
    });
  });

  test('S6 a spec update arrives, and later removals too', async () => {
    await f0.consumer.merge(widgets, widget('my-widget'), { spec: { size: 'xlarge', extra: 1 } });
    await untilObject(
      f0.provider,
      widgets,
      widget('my-widget'),
      (copy) => specOf(copy)['size'] === 'xlarge' && specOf(copy)['extra'] === 1,
    );
    await f0.consumer.merge(widgets, widget('my-widget'), { spec: { extra: null } });
    await untilObject(f0.provider, widgets, widget('my-widget'), (copy) => !('extra' in specOf(copy)));
  });

  test('a change made by hand to a provider copy is repaired, and a copy deleted by hand comes back', async () => {
    await f0.provider.merge(widgets, widget('my-widget'), { spec: { size: 'tampered' } });
    await untilObject(f0.provider, widgets, widget('my-widget'), (copy) => specOf(copy)['size'] === 'xlarge');
    await f0.provider.merge(widgets, widget('my-widget'), { metadata: { labels: { 'core.kbind.io/managed': null } } });
    await untilObject(
      f0.provider,
      widgets,
      widget('my-widget'),
      (copy) => copy.metadata.labels?.['core.kbind.io/managed'] === 'true',
    );
    const before = (await f0.provider.get(widgets, widget('my-widget'))).metadata.uid;
    await f0.provider.delete(widgets, widget('my-widget'));
    await untilObject(
      f0.provider,
      widgets,
      widget('my-widget'),
      (copy) => copy.metadata.uid !== before && specOf(copy)['size'] === 'xlarge',
    );
  });

  test('a missing provider namespace is made, with the managed label', async () => {
    await ensureNamespace(f0.consumer, 'team-a');
    await f0.consumer.make(widgets, widget('first', 'team-a'), { spec: { size: 'small' } });
    await untilObject(f0.provider, widgets, widget('first', 'team-a'));
    expect(
      (await f0.provider.get(resources.namespaces, { name: 'team-a' })).metadata.labels?.['core.kbind.io/managed'],
    ).toBe('true');
  });

  test('S7 a conflict under Fail leaves the foreign object alone and is counted beside Ready=True', async () => {
    await f0.provider.make(widgets, widget('conflict-widget'), { spec: { size: 'PROVIDER-OWNED' } });
    const foreign = await f0.provider.get(widgets, widget('conflict-widget'));
    await f0.consumer.make(widgets, widget('conflict-widget'), { spec: { size: 'CONSUMER-WANTS' } });
    await untilObject(
      f0.consumer,
      widgets,
      widget('conflict-widget'),
      (source) => annotationsOf(source)['core.kbind.io/conflict'] === 'ForeignObjectExists',
    );
    await until(
      'the binding counts it',
      async () => {
        const binding = await f0.consumer.get(resources.clusterBindings, { name: 'widgets' });
        const bound = (statusOf(binding)['boundAPIs'] as { name: string; conflictCount: number }[])[0];
        return bound?.conflictCount === 1 && isTrue(binding, 'Conflicts') && isTrue(binding, 'Ready');
      },
      { timeoutMs: 60_000 },
    );
    expect((await f0.provider.get(widgets, widget('conflict-widget'))).metadata.resourceVersion).toBe(
      foreign.metadata.resourceVersion,
    );
    const events = await f0.consumer.list(resources.events, { namespace: 'default' });
    expect(events.some((event) => event['reason'] === 'ForeignObjectExists' && event['type'] === 'Warning')).toBe(true);
  });

  test('a conflict ends the moment its blocker goes', async () => {
    await f0.provider.make(widgets, widget('blocker'), { spec: { size: 'PROVIDER-OWNED' } });
    await f0.consumer.make(widgets, widget('blocker'), { spec: { size: 'mine' } });
    await untilObject(
      f0.consumer,
      widgets,
      widget('blocker'),
      (source) => annotationsOf(source)['core.kbind.io/conflict'] !== undefined,
    );
    await f0.provider.delete(widgets, widget('blocker'));
    await untilObject(f0.provider, widgets, widget('blocker'), (copy) => specOf(copy)['size'] === 'mine');
    await untilObject(
      f0.consumer,
      widgets,
      widget('blocker'),
      (source) =>
        annotationsOf(source)['core.kbind.io/conflict'] === undefined &&
        source.metadata.labels?.['core.kbind.io/conflict'] === undefined,
    );
  });

  test('one marker of two is OwnedByAnother', async () => {
    await f0.provider.make(widgets, widget('half'), {
      metadata: { annotations: { 'core.kbind.io/consumer-cluster-uid': 'somebody' } },
      spec: { size: 'theirs' },
    });
    await f0.consumer.make(widgets, widget('half'), { spec: { size: 'mine' } });
    await untilObject(
      f0.consumer,
      widgets,
      widget('half'),
      (source) => annotationsOf(source)['core.kbind.io/conflict'] === 'OwnedByAnother',
    );
    expect(specOf(await f0.provider.get(widgets, widget('half')))).toEqual({ size: 'theirs' });
  });

  test('S8 a deletion propagates: first the copy, then the object', async () => {
    await f0.consumer.delete(widgets, widget('my-widget'));
    await untilGone(f0.provider, widgets, widget('my-widget'));
    await untilGone(f0.consumer, widgets, widget('my-widget'));
  });

  test('S9 deleting a conflicting object leaves the foreign one', async () => {
    await f0.consumer.delete(widgets, widget('conflict-widget'));
    await untilGone(f0.consumer, widgets, widget('conflict-widget'));
    expect(specOf(await f0.provider.get(widgets, widget('conflict-widget')))).toEqual({ size: 'PROVIDER-OWNED' });
  });

  test('S21 Orphan: the object goes, the copy stays', async () => {
    await f0.consumer.make(widgets, widget('orphan-widget'), {
      metadata: { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } },
      spec: { size: 's' },
    });
    await untilObject(f0.provider, widgets, widget('orphan-widget'));
    await f0.consumer.delete(widgets, widget('orphan-widget'));
    await untilGone(f0.consumer, widgets, widget('orphan-widget'));
    await staysTrue(
      'the copy stays',
      3_000,
      async () => (await f0.provider.find(widgets, widget('orphan-widget'))) !== undefined,
    );
  });

  test('deletion waits for a provider finalizer', async () => {
    await f0.consumer.make(widgets, widget('held'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, widget('held'));
    await f0.provider.merge(widgets, widget('held'), { metadata: { finalizers: ['provider/hold'] } });
    await f0.consumer.delete(widgets, widget('held'));
    await untilObject(f0.provider, widgets, widget('held'), (copy) => copy.metadata.deletionTimestamp !== undefined);
    await staysTrue(
      'the consumer object waits',
      3_000,
      async () => (await f0.consumer.find(widgets, widget('held'))) !== undefined,
    );
    await f0.provider.merge(widgets, widget('held'), { metadata: { finalizers: null } });
    await untilGone(f0.consumer, widgets, widget('held'));
  });

  test('an object that is deleting before its first sync gets neither finalizer nor copy', async () => {
    await f0.consumer.make(widgets, widget('late'), { metadata: { finalizers: ['hold/me'] }, spec: { size: 's' } });
    await untilObject(f0.provider, widgets, widget('late'));
    await f0.consumer.delete(widgets, widget('late'));
    await untilGone(f0.provider, widgets, widget('late'));
    await untilObject(
      f0.consumer,
      widgets,
      widget('late'),
      (source) => source.metadata.finalizers?.includes('core.kbind.io/syncer') === false,
    );
    await f0.consumer.merge(widgets, widget('late'), { metadata: { finalizers: null } });
    await untilGone(f0.consumer, widgets, widget('late'));
  });

  test('S10 a newly exported API shows without any edit on the consumer', async () => {
    await installCrd(f0.provider, crdFor(gadgets));
    await untilObject(f0.consumer, resources.connections, { name: 'demo-provider' }, (connection) =>
      (statusOf(connection)['exportedAPIs'] as { name: string }[]).some(({ name }) => name === 'gadgets.gadget.io'),
    );
  });

  test('S11 Adopt takes a markerless object and never a marked one', async () => {
    await makeBinding(f0.consumer, { name: 'gadgets', apis: ['gadgets.gadget.io'], conflictPolicy: 'Adopt' });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'gadgets' });
    await f0.provider.make(gadgets, widget('shared-gadget'), { spec: { size: 'PROVIDER-OWNED', keep: true } });
    await f0.provider.make(gadgets, widget('theirs'), {
      metadata: {
        annotations: { 'core.kbind.io/consumer-cluster-uid': 'x', 'core.kbind.io/consumer-object-uid': 'y' },
      },
      spec: { size: 'theirs' },
    });
    await f0.consumer.make(gadgets, widget('shared-gadget'), { spec: { size: 'ADOPTED' } });
    await f0.consumer.make(gadgets, widget('theirs'), { spec: { size: 'ADOPTED' } });
    const copy = await untilObject(
      f0.provider,
      gadgets,
      widget('shared-gadget'),
      (object) => specOf(object)['size'] === 'ADOPTED',
    );
    expect(copy.metadata.labels?.['core.kbind.io/managed']).toBe('true');
    expect(annotationsOf(copy)['core.kbind.io/consumer-object-uid']).not.toBe('');
    await untilObject(
      f0.consumer,
      gadgets,
      widget('theirs'),
      (source) => annotationsOf(source)['core.kbind.io/conflict'] === 'OwnedByAnother',
    );
    expect(specOf(await f0.provider.get(gadgets, widget('theirs')))).toEqual({ size: 'theirs' });
  });

  test('a deletion runs when its binding is already gone, and S15 unbinding removes copies and CRD', async () => {
    await f0.consumer.make(widgets, widget('unbind-widget'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, widget('unbind-widget'));
    await f0.consumer.delete(resources.clusterBindings, { name: 'widgets' });
    await f0.consumer.delete(widgets, widget('unbind-widget'));
    await untilGone(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    await untilGone(f0.provider, widgets, widget('unbind-widget'));
    await untilGone(f0.consumer, resources.crds, { name: 'widgets.example.org' });
    expect(specOf(await f0.provider.get(widgets, widget('half')))).toEqual({ size: 'theirs' });
    expect(conditionOf(await f0.consumer.get(resources.clusterBindings, { name: 'gadgets' }), 'Ready')?.status).toBe(
      'True',
    );
  });
});
