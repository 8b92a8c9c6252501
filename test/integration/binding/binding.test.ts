import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import { watchPlanOf } from '../../../lib/model/watch-plan.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { API, Fixture, version, widgets, widgetsCrd } from './fixture.ts';
import { until } from '../../support/apiserver/hands.ts';

/** Bindings, schemas and unbinding against API servers; each test leaves nothing behind for the next. */
describe.each(clusterKinds())('bindings on two clusters: $name', (kind) => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await Fixture.start(kind);
    await fixture.provider.hands.create(resources.crds, widgetsCrd());
    await fixture.connect('demo');
  });
  afterAll(() => fixture.stop());

  const providerCopy = (name: string): Promise<KubeObject | undefined> =>
    fixture.provider.hands.find(widgets, { namespace: 'team-a', name });

  const crdIsGone = (): Promise<true> =>
    until('the consumer CRD is gone', async () => {
      await fixture.reconcileCrd();
      await fixture.runSweeps();
      return (await fixture.crd()) === undefined;
    });

  test('S3 the CRD is pulled and the binding Ready; a second look writes nothing', async () => {
    await fixture.bind('widgets');
    await fixture.untilReady('widgets');
    const crd = await fixture.crd();
    expect(crd?.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
    const hash = crd?.metadata.annotations?.['core.kbind.io/schema-hash'];
    expect(hash).toMatch(/^sha256:[0-9a-f]{16}$/);
    const status = (await fixture.bindingOf('widgets'))?.status;
    expect(status).toMatchObject({ boundAPIs: [{ name: API, crdHash: hash, conflictCount: 0 }] });
    expect(fixture.sweeps.splice(0).at(-1)).toMatchObject({ apis: [API] });

    fixture.writes.splice(0);
    expect(await fixture.reconcileBinding('widgets')).toMatchObject({ type: 'done' });
    expect(fixture.writes).toEqual([]);
  });

  test('the managed CRD gets its plan once, and a smaller one while the Connection is not Ready', async () => {
    await fixture.reconcileCrd();
    expect(watchPlanOf((await fixture.crd()) as KubeObject)).toMatchObject({ version: 'v1', provider: true });
    fixture.writes.splice(0);
    await fixture.reconcileCrd();
    expect(fixture.writes).toEqual([]);

    const connection = await fixture.consumer.hands.get(resources.connections, { name: 'demo' });
    await fixture.declareReady(connection, 'False');
    await fixture.reconcileCrd();
    expect(watchPlanOf((await fixture.crd()) as KubeObject)).toMatchObject({ epoch: '', provider: false });
    await fixture.reconcileBinding('widgets');
    expect(await fixture.ready('widgets')).toMatchObject({ status: 'False', reason: 'Pending' });

    await fixture.declareReady(connection, 'True');
    await fixture.reconcileCrd();
    await fixture.untilReady('widgets');
    expect(watchPlanOf((await fixture.crd()) as KubeObject)).toMatchObject({ provider: true });
  });

  test('S22 Always follows the provider, and the plan the CRD’s new generation', async () => {
    const before = watchPlanOf((await fixture.crd()) as KubeObject)?.generation ?? 0;
    const columns = [{ name: 'colour', type: 'string', jsonPath: '.spec.colour' }];
    await fixture.editProviderCrd({ versions: [version('v1', { storage: true, additionalPrinterColumns: columns })] });
    // A server that takes in a changed CRD answers 429 for a moment: the queue would bring the key back.
    await vi.waitFor(
      async () => {
        await fixture.reconcileBinding('widgets');
        await fixture.reconcileCrd();
        const crd = (await fixture.crd()) as KubeObject;
        expect(crd.spec).toMatchObject({ versions: [{ additionalPrinterColumns: columns }] });
        expect(watchPlanOf(crd)?.generation).toBe(before + 1);
        expect(await fixture.ready('widgets')).toMatchObject({ status: 'True' });
      },
      { timeout: 30_000, interval: 200 },
    );
  });

  test('L16 an update that the API server refuses leaves the old CRD, and the binding says why', async () => {
    const gadgets = 'gadgets.example.org';
    const names = { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' };
    await fixture.provider.hands.create(resources.crds, widgetsCrd({ names }, { name: gadgets }));
    await fixture.bind('gadgets', { apis: [gadgets] });
    await fixture.untilReady('gadgets');
    const before = await fixture.crd(gadgets);
    await fixture.editProviderCrd({ versions: [version('v1'), version('v2', { storage: true })] }, gadgets);
    await fixture.reconcileBinding('gadgets');
    const ready = await fixture.ready('gadgets');
    expect(ready).toMatchObject({ status: 'True' });
    expect(ready?.message).toMatch(/storedVersions/);
    await fixture.reconcileBinding('gadgets');
    expect(await fixture.crd(gadgets)).toEqual(before);
    await fixture.unbind('gadgets');
  });

  test('S15 unbinding takes copies, finalizers, instances and the CRD, no sooner than 8 s after', async () => {
    await fixture.untilReady('widgets');
    await fixture.createWidget({ namespace: 'team-a', name: 'unbind' });
    await fixture.reconcileInstance({ namespace: 'team-a', name: 'unbind' });
    expect(await providerCopy('unbind')).toBeDefined();
    await fixture.requestDeletion(resources.clusterBindings, { name: 'widgets' });
    const deleted = (await fixture.bindingOf('widgets'))?.metadata.deletionTimestamp ?? '';
    expect(await fixture.reconcileBinding('widgets')).toMatchObject({ type: 'wait' });
    expect(fixture.told).toEqual([]);
    await until('the first instance is told', async () => {
      await fixture.reconcileBinding('widgets');
      return fixture.told.length > 0;
    });
    expect(Date.now() - Date.parse(deleted)).toBeGreaterThanOrEqual(8000);
    expect((await fixture.ready('widgets'))?.message).toContain(`1 instance of ${API}`);
    await until('the binding is gone', async () => {
      await fixture.runTold();
      await fixture.reconcileBinding('widgets');
      return (await fixture.bindingOf('widgets')) === undefined;
    });
    expect(await providerCopy('unbind')).toBeUndefined();
    await crdIsGone();
    expect(
      fixture.events
        .splice(0)
        .map(({ message }) => message)
        .join(),
    ).toContain('1 Widget instance goes with it');
  });

  test('10 bound again, the CRD is back with what was added meanwhile', async () => {
    const columns = [{ name: 'colour', type: 'string', jsonPath: '.spec.colour' }];
    await fixture.editProviderCrd({
      versions: [version('v1', { storage: true, additionalPrinterColumns: columns })],
    });
    await fixture.bind('widgets');
    await fixture.untilReady('widgets');
    expect((await fixture.crd())?.spec).toMatchObject({ versions: [{ additionalPrinterColumns: columns }] });
    await fixture.createWidget({ namespace: 'team-a', name: 'again' });
    await fixture.reconcileInstance({ namespace: 'team-a', name: 'again' });
    expect(await providerCopy('again')).toBeDefined();
  });

  test('32a kubectl delete crd finishes, copies gone; the binding waits for it and installs it again', async () => {
    await fixture.reconcileCrd();
    await fixture.requestDeletion(resources.crds, { name: API });
    expect(await fixture.reconcileBinding('widgets')).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 60 });
    expect(await fixture.ready('widgets')).toMatchObject({ status: 'False', reason: 'Pending' });
    await crdIsGone();
    expect(await providerCopy('again')).toBeUndefined();
    await fixture.untilReady('widgets');
    await fixture.unbind('widgets');
    await crdIsGone();
  });

  test('S18 a namespaced Binding is Ready, keeps the CRD and its instances, and drains its namespace', async () => {
    await fixture.bind('widgets', { namespace: 'team-a' });
    await fixture.untilReady('widgets', 'team-a');
    await fixture.createWidget({ namespace: 'team-a', name: 'kept' });
    await fixture.reconcileInstance({ namespace: 'team-a', name: 'kept' });
    expect(await providerCopy('kept')).toBeDefined();
    await fixture.unbind('widgets', 'team-a');
    expect(await providerCopy('kept')).toBeUndefined();
    const instance = await fixture.consumer.hands.get(widgets, { namespace: 'team-a', name: 'kept' });
    expect(instance.metadata.finalizers ?? []).toEqual([]);
    expect(await fixture.crd()).toBeDefined();
  });

  test('an unbound API that another binding still lists is skipped', async () => {
    await fixture.bind('one');
    await fixture.bind('two');
    await fixture.untilReady('one');
    await fixture.untilReady('two');
    expect((await fixture.ready('two'))?.message).toContain('ClusterBinding one');
    await fixture.unbind('one');
    expect((await fixture.crd())?.metadata.deletionTimestamp).toBeUndefined();
    await fixture.unbind('two');
    await crdIsGone();
  });

  test('35 a conversion webhook stays behind, and the dropped version is named', async () => {
    const clientConfig = { url: 'https://webhook.example.org/convert' };
    const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } };
    const versions = [version('v1beta1'), version('v1', { storage: true })];
    await fixture.editProviderCrd({ versions, conversion });
    await fixture.bind('widgets');
    await fixture.untilReady('widgets');
    expect((await fixture.crd())?.spec).toMatchObject({ conversion: { strategy: 'None' } });
    expect((await fixture.ready('widgets'))?.message).toContain('left out: v1beta1');
    await fixture.unbind('widgets');
    await crdIsGone();
    await fixture.editProviderCrd({ versions: [version('v1', { storage: true })], conversion: { strategy: 'None' } });
  });

  describe('a consumer CRD that somebody else installed', () => {
    beforeAll(() => fixture.editProviderCrd({ versions: [version('v1', { storage: true })] }));

    const install = (spec: object = {}, metadata: object = {}): Promise<KubeObject> =>
      fixture.consumer.hands.create(resources.crds, widgetsCrd(spec, { labels: {}, ...metadata }));
    const other = {
      versions: [
        version('v1', {
          storage: true,
          additionalPrinterColumns: [{ name: 'x', type: 'string', jsonPath: '.spec.x' }],
        }),
      ],
    };

    test('with an equal spec is stamped', async () => {
      await install();
      await fixture.bind('widgets');
      await fixture.untilReady('widgets');
      const { labels, annotations } = (await fixture.crd())?.metadata ?? {};
      expect(labels).toEqual({ 'core.kbind.io/managed': 'true' });
      expect(annotations).toMatchObject({ 'core.kbind.io/connection': 'demo' });
      await fixture.unbind('widgets');
      await crdIsGone();
    });

    test('with another spec is a conflict under Fail, never touched, and kept by an unbinding', async () => {
      const before = await install(other);
      await fixture.bind('widgets');
      await until('the CRD is established', async () => {
        await fixture.reconcileBinding('widgets');
        return (await fixture.ready('widgets'))?.reason === 'ForeignObjectExists';
      });
      await fixture.unbind('widgets');
      const after = await fixture.crd();
      expect(after?.spec).toEqual(before.spec);
      expect(after?.metadata.labels).toBeUndefined();
      expect(fixture.events.splice(0).at(-1)).toMatchObject({ reason: 'APISkipped' });
    });

    test('with another spec is replaced and stamped under Adopt', async () => {
      await fixture.bind('widgets', { conflictPolicy: 'Adopt' });
      await fixture.untilReady('widgets');
      const crd = await fixture.crd();
      expect(crd?.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
      expect(JSON.stringify(crd?.spec)).not.toContain('additionalPrinterColumns');
      await fixture.unbind('widgets');
      await crdIsGone();
    });

    test('32b pullPolicy None stamps and leaves the spec; the last ClusterBinding deletes it after an Event with the count', async () => {
      await fixture.connect('none', { pullPolicy: 'None' });
      await fixture.bind('widgets', { connection: 'none' });
      await fixture.reconcileBinding('widgets');
      await fixture.reconcileBinding('widgets');
      expect((await fixture.ready('widgets'))?.message).toContain(`no CustomResourceDefinition ${API}`);
      const before = await install(other);
      await fixture.untilReady('widgets');
      const crd = await fixture.crd();
      expect(crd?.spec).toEqual(before.spec);
      expect(crd?.metadata.annotations).toMatchObject({ 'core.kbind.io/connection': 'none' });
      for (let i = 1; i <= 5; i += 1) await fixture.createWidget({ namespace: 'team-a', name: `own-${i}` });
      fixture.events.splice(0);
      await fixture.unbind('widgets');
      await crdIsGone();
      expect(fixture.events.splice(0).at(-1)?.message).toContain('5 Widget instances go with it');
    });

    test('L24 pinned to another Connection, it stays there', async () => {
      await fixture.bind('first');
      await fixture.untilReady('first');
      await fixture.connect('second');
      await fixture.bind('later', { connection: 'second' });
      await fixture.reconcileBinding('later');
      await fixture.reconcileBinding('later');
      const ready = await fixture.ready('later');
      expect(ready).toMatchObject({ status: 'False', reason: 'OwnedByAnother' });
      expect(ready?.message).toContain('Connection demo');
      await fixture.unbind('later');
      expect((await fixture.crd())?.metadata.deletionTimestamp).toBeUndefined();
      await fixture.unbind('first');
      await crdIsGone();
    });

    test('names that clash keep the binding from Ready, with the CRD’s own words', async () => {
      const spec = {
        names: { plural: 'gizmos', singular: 'gizmo', kind: 'Widget', listKind: 'WidgetList' },
        group: 'example.org',
      };
      await fixture.consumer.hands.create(resources.crds, widgetsCrd(spec, { name: 'gizmos.example.org', labels: {} }));
      await until('gizmos are served', () => fixture.consumer.hands.list({ ...widgets, resource: 'gizmos' }));
      await fixture.bind('widgets');
      const message = await until('the clash is told', async () => {
        await fixture.reconcileBinding('widgets');
        const ready = await fixture.ready('widgets');
        return ready?.message.includes('not accepted') === true ? ready.message : undefined;
      });
      expect(message).toContain('already in use');
      await fixture.unbind('widgets');
      await crdIsGone();
      await fixture.requestDeletion(resources.crds, { name: 'gizmos.example.org' });
    });
  });
});
