import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import type { Side, World } from '../../../lib/reconcile/world.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { crdManifest, Fixture, widgets } from './fixture.ts';
import { until } from '../../support/apiserver/hands.ts';

describe.each(clusterKinds())('$name', (kind) => {
  let f: Fixture;
  const gadgets = { ...widgets, group: 'gadget.io', resource: 'gadgets', kind: 'Gadget' };
  const GADGETS = 'gadgets.gadget.io';

  beforeAll(async () => {
    f = await Fixture.start(kind);
    const typed = {
      type: 'object',
      properties: {
        size: { type: 'string', enum: ['small', 'large'] },
        ports: { type: 'array', items: { type: 'string' } },
      },
    };
    await f.export(gadgets, crdManifest(gadgets, { statusSubresource: false, status: typed }));
    await f.bind('widgets', ['widgets.example.org']);
    await f.bind('gadgets', [GADGETS], 'Adopt');
  }, 120_000);
  afterAll(() => f.stop());

  const key = (name: string) => ({ namespace: 'default', name });
  const marks = (cluster: string, object: string) => ({
    annotations: { 'core.kbind.io/consumer-cluster-uid': cluster, 'core.kbind.io/consumer-object-uid': object },
  });

  /** The product's world with one side's client wrapped. */
  function wrapped(which: 'consumer' | 'provider', wrap: (client: KubeClient) => KubeClient): Partial<World> {
    const side = f.sides[which];
    const other: Side = {
      which,
      uid: side.uid,
      client: wrap(side.client),
      confirmIdentity: (maxAgeMs) => side.confirmIdentity(maxAgeMs),
    };
    if (which === 'consumer') return { consumer: other };
    return { providers: { open: () => Promise.resolve(other), probe: () => Promise.reject(new Error('unused')) } };
  }

  const plain = (client: KubeClient): KubeClient => interceptClient(client, (_call, send) => send());

  describe('conflicts', () => {
    test('ForeignObjectExists: marked, counted by label, told, left alone; clears when the blocker goes', async () => {
      const k = key('foreign');
      await f.create(f.provider, k, { spec: { size: 'THEIRS' } });
      await f.create(f.consumer, k, { spec: { size: 'OURS' } });
      expect(await f.reconcile(k)).toMatchObject({ type: 'wait', firstSeconds: 60, maxSeconds: 600 });
      const source = await f.consumer.hands.get(widgets, k);
      expect(source.metadata.annotations?.['core.kbind.io/conflict']).toBe('ForeignObjectExists');
      expect(source.metadata.labels?.['core.kbind.io/conflict']).toBe('true');
      expect(f.events.at(-1)).toMatchObject({ name: 'foreign', reason: 'ForeignObjectExists' });
      expect(await f.counted(() => f.reconcile(k))).toEqual({ reads: 2, writes: 0 });
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'THEIRS' });
      await f.remove(f.provider, k);
      expect(await f.reconcile(k)).toMatchObject({ type: 'done' });
      const cleared = (await f.consumer.hands.get(widgets, k)).metadata;
      expect([cleared.annotations, cleared.labels]).toEqual([undefined, undefined]);
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'OURS' });
    });

    test.each([
      ['both markers of another object', (): object => marks(f.consumer.uid, 'another')],
      ['both markers of another cluster', (): object => marks('another', 'another')],
      ['one marker of two', (): object => ({ annotations: { 'core.kbind.io/consumer-cluster-uid': f.consumer.uid } })],
    ])('OwnedByAnother under Adopt: %s', async (name, metadata) => {
      const k = key(name.replaceAll(' ', '-'));
      await f.create(f.provider, k, { metadata: metadata(), spec: { size: 'THEIRS' } }, gadgets);
      await f.create(f.consumer, k, { spec: { size: 'OURS' } }, gadgets);
      const before = await f.provider.hands.get(gadgets, k);
      expect(await f.reconcile(k, {}, GADGETS)).toMatchObject({ type: 'wait', reason: 'OwnedByAnother' });
      expect(f.events.at(-1)?.message).toContain('removes the annotations');
      expect(await f.provider.hands.get(gadgets, k)).toEqual(before);
      await f.remove(f.consumer, k, gadgets);
      expect(await f.reconcile(k, {}, GADGETS)).toMatchObject({ reason: 'finalizer released' });
      expect(await f.provider.hands.get(gadgets, k)).toEqual(before);
      expect(await f.consumer.hands.find(gadgets, k)).toBeUndefined();
    });

    test('Adopt takes a markerless object over, and its status comes through the main resource', async () => {
      const k = key('adopted');
      await f.create(f.provider, k, { spec: { size: 'THEIRS', kept: true }, status: { size: 'small' } }, gadgets);
      await f.create(f.consumer, k, { spec: { size: 'OURS' } }, gadgets);
      await f.reconcile(k, {}, GADGETS);
      expect((await f.provider.hands.get(gadgets, k)).spec).toEqual({ size: 'OURS', kept: true });
      expect((await f.consumer.hands.get(gadgets, k)).status).toEqual({ size: 'small' });
      expect(await f.counted(() => f.reconcile(k, {}, GADGETS))).toEqual({ reads: 2, writes: 0 });
    });

    test('two consumers that create the same name a hundred times: exactly one wins each', async () => {
      for (let i = 0; i < 100; i += 1) {
        const [a, b] = [`race-${i}`, `race-${i}`].map(key);
        await f.create(f.consumer, a ?? key(''), { spec: { by: 'first', i } });
        // The other consumer: another cluster UID over the same objects, so that both POST the same name.
        const other = 'another-cluster';
        const consumer: Side = { ...f.sides.consumer, uid: other, client: f.sides.consumer.client };
        const outcomes = await Promise.all([
          f.reconcile(a ?? key('')),
          f.reconcile(b ?? key(''), { cluster: other, consumer }),
        ]);
        const copy = await f.provider.hands.get(widgets, key(`race-${i}`));
        const owner = copy.metadata.annotations?.['core.kbind.io/consumer-cluster-uid'];
        expect(outcomes.map(({ reason }) => reason).sort()).toEqual(['OwnedByAnother', 'synced']);
        expect(owner).toBe(outcomes[0]?.reason === 'synced' ? f.consumer.uid : other);
      }
    }, 120_000);
  });

  describe('deletion', () => {
    test('waits for a finalizer on the provider, and does not apply to a copy that is going', async () => {
      const k = key('held');
      await f.create(f.consumer, k, { spec: { size: 'x' } });
      await f.reconcile(k);
      await f.set(f.provider, k, ['/metadata/finalizers', ['hold/me']]);
      await f.remove(f.provider, k);
      expect(await f.reconcile(k)).toMatchObject({ type: 'wait', firstSeconds: 2, maxSeconds: 60 });
      await f.remove(f.consumer, k);
      const waiting = await f.counted(() => f.reconcile(k));
      expect(waiting).toEqual({ reads: 2, writes: 0 });
      expect(await f.consumer.hands.find(widgets, k)).toBeDefined();
      await f.set(f.provider, k, ['/metadata/finalizers', undefined]);
      expect(await f.reconcile(k)).toMatchObject({ reason: 'finalizer released' });
      expect(await f.consumer.hands.find(widgets, k)).toBeUndefined();
    });

    test('Orphan needs no provider; an instance that was deleting before its first sync gets nothing', async () => {
      const k = key('orphan');
      const orphan = { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } };
      await f.create(f.consumer, k, { metadata: orphan, spec: { size: 'x' } });
      await f.reconcile(k);
      await f.remove(f.consumer, k);
      const dead: Partial<World> = {
        providers: {
          open: () => Promise.reject(new KbindError('unavailable', 'down')),
          probe: () => Promise.reject(new Error('unused')),
        },
      };
      expect(await f.reconcile(k, dead)).toMatchObject({ reason: 'finalizer released' });
      expect(await f.provider.hands.find(widgets, k)).toBeDefined();
      const late = key('late');
      await f.create(f.consumer, late, { metadata: { finalizers: ['hold/me'] }, spec: {} });
      await f.remove(f.consumer, late);
      expect(await f.reconcile(late, dead)).toMatchObject({ type: 'done' });
      expect((await f.consumer.hands.get(widgets, late)).metadata.finalizers).toEqual(['hold/me']);
      await f.set(f.consumer, late, ['/metadata/finalizers', undefined]);
    });

    test('a provider that answers 404 for another reason releases nothing', async () => {
      const k = key('plain404');
      await f.create(f.consumer, k, { spec: {} });
      await f.reconcile(k);
      await f.remove(f.consumer, k);
      const unserved = wrapped('provider', (client) => ({
        ...plain(client),
        find: () => Promise.reject(new KbindError('unserved', '404 page not found')),
      }));
      await expect(f.reconcile(k, unserved)).rejects.toMatchObject({ errorClass: 'unserved' });
      expect((await f.consumer.hands.get(widgets, k)).metadata.finalizers).toEqual(['core.kbind.io/syncer']);
      await f.reconcile(k);
      await f.reconcile(k);
      expect(await f.consumer.hands.find(widgets, k)).toBeUndefined();
    });

    test('an empty answer from another cluster releases nothing', async () => {
      const k = key('elsewhere');
      await f.create(f.consumer, k, { spec: {} });
      await f.reconcile(k);
      await f.remove(f.consumer, k);
      const elsewhere: Side = {
        which: 'provider',
        uid: f.provider.uid,
        client: { ...plain(f.sides.provider.client), find: () => Promise.resolve(undefined) },
        confirmIdentity: () => Promise.reject(new KbindError('identity', 'another cluster')),
      };
      const world = {
        providers: { open: () => Promise.resolve(elsewhere), probe: () => Promise.reject(new Error('no')) },
      };
      await expect(f.reconcile(k, world)).rejects.toMatchObject({ errorClass: 'identity' });
      expect((await f.consumer.hands.get(widgets, k)).metadata.finalizers).toEqual(['core.kbind.io/syncer']);
    });
  });

  describe('what happens between the read and the write', () => {
    const withdraw = async (k: { namespace: string; name: string }): Promise<void> => {
      await f.set(f.consumer, k, ['/metadata/finalizers', undefined]);
      await f.remove(f.consumer, k);
    };

    test.each([
      ['answered', false],
      ['not answered', true],
    ])('the consumer object goes while a create is under way that is %s: no copy is left', async (name, lost) => {
      const k = key(`window-${name.replaceAll(' ', '-')}`);
      await f.create(f.consumer, k, { spec: { size: 'x' } });
      const racing = wrapped('provider', (client) => ({
        ...plain(client),
        create: async (ref, object, options) => {
          const made = await client.create(ref, object, options);
          await withdraw(k);
          if (lost) throw new KbindError('unavailable', 'reset');
          return made;
        },
      }));
      expect(await f.reconcile(k, racing)).toMatchObject({ reason: 'consumer object does not exist' });
      expect(await f.provider.hands.find(widgets, k)).toBeUndefined();
    });

    test('the consumer object goes while it is adopted: only our markers are taken off again', async () => {
      const k = key('window-adopt');
      await f.create(f.provider, k, { metadata: { labels: { theirs: 'yes' } }, spec: { size: 'THEIRS' } }, gadgets);
      await f.create(f.consumer, k, { spec: { size: 'OURS' } }, gadgets);
      const racing = wrapped('provider', (client) => ({
        ...plain(client),
        apply: async (ref, object, read, options) => {
          const made = await client.apply(ref, object, read, options);
          await f.set(f.consumer, k, ['/metadata/finalizers', undefined], { ref: gadgets });
          await f.remove(f.consumer, k, gadgets);
          return made;
        },
      }));
      await f.reconcile(k, racing, GADGETS);
      const left: KubeObject = await f.provider.hands.get(gadgets, k);
      expect(left.metadata.labels).toEqual({ theirs: 'yes' });
      expect(Object.keys(left.metadata.annotations ?? {})).toEqual([]);
    });

    test('somebody replaces the copy between read and apply: theirs stays whole', async () => {
      const k = key('window-apply');
      await f.create(f.consumer, k, { spec: { size: 'x' } });
      await f.reconcile(k);
      await f.set(f.consumer, k, ['/spec/size', 'y']);
      const racing = wrapped('provider', (client) => ({
        ...plain(client),
        apply: async (ref, object, read, options) => {
          await f.remove(f.provider, k);
          await f.create(f.provider, k, { spec: { size: 'THEIRS' } });
          return client.apply(ref, object, read, options);
        },
        patch: (ref, target, change, options) => client.patch(ref, target, change, options),
      }));
      expect(await f.reconcile(k, racing)).toMatchObject({ reason: 'ForeignObjectExists' });
      expect((await f.provider.hands.get(widgets, k)).spec).toEqual({ size: 'THEIRS' });
    });
  });

  describe('refusals', () => {
    const failing = (verb: 'create' | 'apply', error: KbindError): Partial<World> =>
      wrapped('provider', (client) => ({ ...plain(client), [verb]: () => Promise.reject(error) }));

    test('Forbidden: a Warning Event, and again after 30 s', async () => {
      const k = key('forbidden');
      await f.create(f.consumer, k, { spec: {} });
      const outcome = await f.reconcile(k, failing('create', new KbindError('forbidden', 'no RBAC')));
      expect(outcome).toMatchObject({ type: 'wait', firstSeconds: 30, maxSeconds: 30 });
      expect(f.events.at(-1)).toMatchObject({ name: 'forbidden', reason: 'Forbidden' });
    });

    test('a terminating provider namespace is waited for, without an Event', async () => {
      const k = { namespace: 'ending', name: 'a' };
      await f.ensureNamespace('ending');
      await f.create(f.consumer, k, { spec: {} });
      await f.provider.hands.create(resources.namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'ending', finalizers: ['hold/me'] },
      });
      const { uid, resourceVersion } = (await f.provider.hands.get(resources.namespaces, { name: 'ending' })).metadata;
      await f.provider.hands.delete(resources.namespaces, { name: 'ending' }, { uid, resourceVersion });
      const events = f.events.length;
      expect(await f.reconcile(k)).toMatchObject({ type: 'wait', firstSeconds: 2 });
      expect(f.events).toHaveLength(events);
    });

    test('a status that this cluster refuses: an Event, and one dead letter', async () => {
      const k = key('bad-status');
      await f.create(f.consumer, k, { spec: {} }, gadgets);
      await f.reconcile(k, {}, GADGETS);
      const odd = wrapped('provider', (client) => ({
        ...plain(client),
        find: async (ref, target, options) => {
          const copy = await client.find(ref, target, options);
          return copy === undefined ? copy : { ...copy, status: { size: 'gigantic' } };
        },
      }));
      await expect(f.reconcile(k, odd, GADGETS)).rejects.toMatchObject({ errorClass: 'invalid' });
      expect(f.events.at(-1)).toMatchObject({ name: 'bad-status', reason: 'Invalid' });
    });

    test('a field that the provider does not know, and a value that it refuses: an Event with its words, class invalid', async () => {
      const strict = { ...widgets, group: 'strict.io', resource: 'stricts', kind: 'Strict' };
      const spec = { type: 'object', properties: { size: { type: 'string', enum: ['small', 'large'] } } };
      await f.export(strict, crdManifest(strict, { spec }));
      await f.bind('stricts', ['stricts.strict.io']);
      for (const [name, bad, field] of [
        ['unknown', { size: 'small', colour: 'red' }, 'colour'],
        ['refused', { size: 'medium' }, 'size'],
      ] as const) {
        const k = key(name);
        await f.create(f.consumer, k, { spec: { size: 'small' } }, strict);
        await f.reconcile(k, {}, 'stricts.strict.io');
        // The consumer's schema is laxer than the provider's: as after an update that the consumer did not follow.
        const lax = wrapped('consumer', (client) => ({
          ...plain(client),
          find: async (ref, target, options) => {
            const source = await client.find(ref, target, options);
            return source === undefined ? source : { ...source, spec: bad };
          },
        }));
        await expect(f.reconcile(k, lax, 'stricts.strict.io')).rejects.toMatchObject({ errorClass: 'invalid' });
        expect(f.events.at(-1)).toMatchObject({ name, reason: 'Invalid' });
        expect(f.events.at(-1)?.message).toContain(field);
        expect((await f.provider.hands.get(strict, k)).spec).toEqual({ size: 'small' });
      }
    });
  });

  describe('a deleting binding drains', () => {
    test('owned copies go, foreign ones and Orphans stay, finalizers are released, 8 s after the deletionTimestamp', async () => {
      const api = { ...widgets, group: 'drain.io', resource: 'drains', kind: 'Drain' };
      const API = 'drains.drain.io';
      await f.export(api, crdManifest(api));
      const binding = await f.bind('drains', [API]);
      const names = ['copied', 'orphaned'].map(key);
      for (const k of names) {
        const orphan = { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } };
        await f.create(f.consumer, k, { metadata: k.name === 'orphaned' ? orphan : {}, spec: {} }, api);
        await f.reconcile(k, {}, API);
      }
      await f.set(f.provider, key('copied'), ['/metadata/finalizers', ['hold/me']], { ref: api });
      const { uid } = binding.metadata;
      await f.consumer.hands.patch(
        resources.clusterBindings,
        { name: 'drains' },
        { read: { uid }, operations: [{ op: 'add', path: '/metadata/finalizers', value: ['core.kbind.io/cleanup'] }] },
      );
      await f.remove(f.consumer, { name: 'drains' }, resources.clusterBindings);
      expect(await f.reconcile(key('copied'), {}, API)).toMatchObject({ reason: 'no binding covers it' });
      await until('8 s have passed', async () => (await f.reconcile(key('copied'), {}, API)).reason === 'drained');
      expect(await f.reconcile(key('orphaned'), {}, API)).toMatchObject({ reason: 'drained' });
      for (const k of names) expect((await f.consumer.hands.get(api, k)).metadata.finalizers).toBeUndefined();
      expect((await f.provider.hands.get(api, key('copied'))).metadata.deletionTimestamp).toBeDefined();
      expect((await f.provider.hands.get(api, key('orphaned'))).metadata.deletionTimestamp).toBeUndefined();
      expect(await f.reconcile(key('copied'), {}, API)).toMatchObject({ reason: 'no binding covers it' });
    });
  });
});
