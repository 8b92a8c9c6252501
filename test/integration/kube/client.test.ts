import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenKubeClient } from '../../../lib/kube/client.ts';
import { discoverApis, servedVersions } from '../../../lib/kube/discovery.ts';
import { createEvents } from '../../../lib/kube/events.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { jsonEqual, parseJson, printJson } from '../../../lib/kube/json.ts';
import type { SentObject, WatchEvent } from '../../../lib/kube/types.ts';
import { instant, systemClock } from '../../../lib/model/clock.ts';
import { resources, type KubeObject, type ResourceRef } from '../../../lib/model/api.ts';
import { isError, type KbindError } from '../../../lib/model/errors.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { clusterKinds, type TestCluster } from '../../support/apiserver/kinds.ts';
import { clientOf, installApi, widgets } from '../../support/kube/clusters.ts';
import { until } from '../../support/kube/until.ts';

const { configmaps, namespaces } = resources;
const gadgets = { ...widgets, resource: 'gadgets', kind: 'Gadget' };

let names = 0;
const fresh = (): string => `n${(names += 1)}`;
const widget = (name: string, spec: unknown = {}): SentObject => ({
  apiVersion: 'example.org/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default' },
  spec,
});

const failure = async (promise: Promise<unknown>): Promise<KbindError> => {
  try {
    await promise;
  } catch (error) {
    return error as KbindError;
  }
  throw new Error('did not fail');
};
const classOf = async (promise: Promise<unknown>): Promise<string> => (await failure(promise)).errorClass;

/** Class of the failure, for what may still succeed: servers learn of deletions a moment later. */
const outcomeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'succeeded',
    (error: KbindError) => error.errorClass,
  );

describe.each(clusterKinds())('$name', (kind) => {
  let cluster: TestCluster;
  let client: OpenKubeClient;

  beforeAll(async () => {
    cluster = await kind.start('client');
    client = clientOf(cluster.kubeconfig);
    await installApi(client, widgets, false);
    await installApi(client, gadgets, true);
  }, 120_000);
  afterAll(async () => {
    await client.close();
    await cluster.stop();
  });

  const create = (spec: unknown = {}): Promise<KubeObject> => client.create(widgets, widget(fresh(), spec));
  /** Takes all finalizers off, however often somebody else writes in between. */
  const release = (ref: ResourceRef, { metadata }: KubeObject): Promise<void> =>
    until(async () => {
      const now = await client.find(ref, metadata);
      if (now?.metadata.finalizers === undefined) return true;
      const operations = [{ op: 'remove', path: '/metadata/finalizers' }] as const;
      const sent = client.patch(ref, metadata, { read: now.metadata, operations });
      return sent.then(
        () => true,
        (error: unknown) => !isError(error, 'conflict'),
      );
    });
  const isNew = (): boolean => !cluster.version.startsWith('v1.20');

  describe('guards that fail are read again', () => {
    const other = { uid: '00000000-0000-0000-0000-000000000000' };

    test('create: the name is taken', async () => {
      const { metadata } = await create();
      expect(await classOf(client.create(widgets, widget(metadata.name)))).toBe('conflict');
    });

    test('create: the namespace is missing, or being terminated', async () => {
      const name = fresh();
      const inside = { ...widget(fresh()), metadata: { name: fresh(), namespace: name } };
      expect(await classOf(client.create(widgets, inside))).toBe('namespace-missing');
      const namespace = await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      // Something that stays keeps the namespace from going at once.
      const stays = { name: 'stays', namespace: name, finalizers: ['example.org/stay'] };
      const held = await client.create(widgets, { ...widget('stays'), metadata: stays });
      await client.delete(namespaces, { name }, namespace.metadata);
      const another = () => client.create(widgets, { ...inside, metadata: { name: fresh(), namespace: name } });
      await until(async () => (await outcomeOf(another())) === 'namespace-terminating');
      await release(widgets, held);
    });

    test('apply: an old resourceVersion, another uid, both, an object that is gone or was made anew', async () => {
      const { metadata } = await create({ n: 1 });
      const now = await client.apply(widgets, widget(metadata.name, { n: 2 }), metadata);
      const apply = (read: { uid: string; resourceVersion: string }) =>
        classOf(client.apply(widgets, widget(metadata.name, { n: 3 }), read));
      expect(await apply(metadata)).toBe('conflict');
      expect(await apply({ ...now.metadata, ...other })).toBe('conflict');
      expect(await apply({ ...metadata, ...other })).toBe('conflict');
      await client.delete(widgets, now.metadata, now.metadata);
      expect(await apply(now.metadata)).toBe('conflict');
      await client.create(widgets, widget(metadata.name, { n: 4 }));
      expect(await apply(now.metadata)).toBe('conflict');
      expect(await client.get(widgets, metadata)).toMatchObject({ spec: { n: 4 } });
    });

    test('update: an old resourceVersion, another uid, an object that is gone', async () => {
      const before = await create({ n: 1 });
      const after = await client.update(widgets, { ...before, spec: { n: 2 } });
      expect(await classOf(client.update(widgets, before))).toBe('conflict');
      const stranger = { ...after, metadata: { ...after.metadata, ...other } };
      expect(await classOf(client.update(widgets, stranger))).toBe('conflict');
      await client.delete(widgets, after.metadata, after.metadata);
      expect(await classOf(client.update(widgets, after))).toBe('conflict');
    });

    test('patch: an old resourceVersion, another uid, an object that is gone', async () => {
      const { metadata } = await create({ n: 1 });
      const operations = [{ op: 'add', path: '/spec/n', value: 2 }] as const;
      const { metadata: now } = await client.patch(widgets, metadata, { read: metadata, operations });
      expect(await classOf(client.patch(widgets, metadata, { read: metadata, operations }))).toBe('conflict');
      expect(await classOf(client.patch(widgets, now, { read: { ...now, ...other }, operations }))).toBe('conflict');
      expect(await classOf(client.patch(widgets, now, { read: other, operations }))).toBe('conflict');
      await client.delete(widgets, now, now);
      expect(await classOf(client.patch(widgets, now, { read: now, operations }))).toBe('conflict');
    });

    test('status patch: by uid alone, also after somebody else wrote', async () => {
      const { metadata } = await client.create(gadgets, { ...widget(fresh()), kind: 'Gadget' });
      await client.patch(gadgets, metadata, { read: metadata, operations: [{ op: 'add', path: '/spec/n', value: 1 }] });
      const change = (uid: string) =>
        client.patch(gadgets, metadata, {
          read: { uid },
          operations: [{ op: 'add', path: '/status', value: { big: parseJson('9007199254740993'), none: null } }],
          subresource: 'status',
        });
      expect(printJson((await change(metadata.uid)).status)).toBe('{"big":9007199254740993,"none":null}');
      expect(await classOf(change(other.uid))).toBe('conflict');
    });

    test('status patch of an API without the subresource is not taken for absence', async () => {
      const { metadata } = await create();
      const change = { read: { uid: metadata.uid }, operations: [], subresource: 'status' } as const;
      expect(await classOf(client.patch(widgets, metadata, change))).toBe('unserved');
      expect(await classOf(client.patch(widgets, { ...metadata, name: 'gone' }, change))).toBe('conflict');
    });

    test('delete: a stale resourceVersion or another uid deletes nothing', async () => {
      const { metadata } = await create();
      const { metadata: now } = await client.apply(widgets, widget(metadata.name, { n: 1 }), metadata);
      expect(await classOf(client.delete(widgets, now, metadata))).toBe('conflict');
      expect(await classOf(client.delete(widgets, now, { ...now, ...other }))).toBe('conflict');
      await client.delete(widgets, now, now, { dryRun: true });
      expect(await client.get(widgets, now)).toMatchObject({ metadata: { uid: now.uid } });
      await client.delete(widgets, now, now);
      expect(await client.find(widgets, now)).toBeUndefined();
      expect(await classOf(client.delete(widgets, now, now))).toBe('absent');
    });

    test('delete of an object of the core group keeps its preconditions too', async () => {
      const name = fresh();
      const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { a: 'b' } };
      const { metadata } = await client.create(configmaps, map);
      const { metadata: now } = await client.apply(configmaps, { ...map, data: { a: 'c' } }, metadata);
      expect(await classOf(client.delete(configmaps, now, metadata))).toBe('conflict');
      await client.delete(configmaps, now, now);
    });
  });

  describe('an object that is refused for what it is', () => {
    test.each<[string, unknown]>([
      ['a number beyond its bound', { n: 9 }],
      ['a wrong type', { n: 'x' }],
      ['a set with one twice', { set: ['a', 'a'] }],
      ['2 MB', { text: 'x'.repeat(2_000_000) }],
      ['2.9 MB', { text: 'x'.repeat(2_900_000) }],
      ['3.5 MB', { text: 'x'.repeat(3_500_000) }],
    ])('%s is invalid, however it is written', async (_name, spec) => {
      expect(await classOf(create(spec))).toBe('invalid');
      const { metadata } = await create();
      expect(await classOf(client.apply(widgets, widget(metadata.name, spec), metadata))).toBe('invalid');
      const operations = [{ op: 'add', path: '/spec', value: spec }] as const;
      expect(await classOf(client.patch(widgets, metadata, { read: metadata, operations }))).toBe('invalid');
    });

    test('a field that the schema does not know: strict, and by apply always', async () => {
      const { metadata } = await create();
      const unknown = widget(metadata.name, { unknown: 1 });
      expect(await classOf(client.apply(widgets, unknown, metadata))).toBe('invalid');
      const created = await client.create(widgets, widget(fresh(), { unknown: 1 })).then(({ spec }) => spec);
      expect(created).toStrictEqual({});
      const strict = client.create(widgets, widget(fresh(), { unknown: 1 }), { strict: true }).then(
        () => 'pruned',
        (error: KbindError) => error.errorClass,
      );
      expect(await strict).toBe(isNew() ? 'invalid' : 'pruned');
    });

    test('no refusal shows the values of a Secret', async () => {
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: fresh(), namespace: 'default' },
        data: { password: 'aHVudGVyMg==' },
      };
      const { metadata } = await client.create(resources.secrets, secret);
      const operations = [{ op: 'add', path: '/metadata/finalizers', value: 7 }] as const;
      const error = await failure(client.patch(resources.secrets, metadata, { read: metadata, operations }));
      expect(error.errorClass).toBe('invalid');
      expect(`${error.message} ${JSON.stringify(error.details)}`).not.toContain('aHVudGVyMg');
    });
  });

  describe('absent, unserved, refused', () => {
    test.each([widgets, configmaps])('$resource: an object that is not there is absent', async (ref) => {
      expect(await classOf(client.get(ref, { namespace: 'default', name: 'gone' }))).toBe('absent');
      expect(await classOf(client.get(ref, { namespace: 'no-such', name: 'gone' }))).toBe('absent');
    });

    test('a version or group that is not served says so in plain text: unserved', async () => {
      const key = { namespace: 'default', name: 'gone' };
      for (const ref of [
        { ...widgets, version: 'v9' },
        { ...widgets, group: 'no.such' },
        { ...widgets, resource: 'no' },
      ]) {
        expect(await classOf(client.get(ref, key))).toBe('unserved');
        expect(await classOf(client.find(ref, key))).toBe('unserved');
        expect(await classOf(client.list(ref))).toBe('unserved');
        expect(await classOf(client.delete(ref, key, { uid: 'u', resourceVersion: '1' }))).toBe('unserved');
        expect(await classOf(client.apply(ref, widget('gone'), { uid: 'u', resourceVersion: '1' }))).toBe('unserved');
      }
    });

    test('somebody without permissions is forbidden, somebody without a credential unauthorized', async () => {
      const bob = clientOf((await cluster.addStranger(`bob-${fresh()}`)).kubeconfig);
      expect(await classOf(bob.get(widgets, { namespace: 'default', name: 'gone' }))).toBe('forbidden');
      expect(await classOf(bob.create(widgets, widget(fresh())))).toBe('forbidden');
      expect(await classOf(readClusterIdentity(bob))).toBe('forbidden');
      await bob.close();
      const credential = { clientCertificate: undefined, clientKey: undefined, token: 'wrong' };
      const anonymous = clientOf(cluster.kubeconfig, credential);
      expect(await classOf(anonymous.get(widgets, { namespace: 'default', name: 'gone' }))).toBe('unauthorized');
      await anonymous.close();
    });

    test('an API that goes away takes no new objects: unserved, not forbidden', async () => {
      const brief = { ...widgets, resource: 'briefs', kind: 'Brief' };
      await installApi(client, brief, false);
      const made = await client.create(brief, { ...widget(fresh()), kind: 'Brief' });
      const operations = [{ op: 'add', path: '/metadata/finalizers', value: ['example.org/stay'] }] as const;
      const held = await client.patch(brief, made.metadata, { read: made.metadata, operations });
      const crd = await client.get(resources.crds, { name: 'briefs.example.org' });
      await client.delete(resources.crds, crd.metadata, crd.metadata);
      await until(
        async () => (await outcomeOf(client.create(brief, { ...widget(fresh()), kind: 'Brief' }))) === 'unserved',
      );
      await release(brief, held);
    });
  });

  describe('values survive', () => {
    const spec = parseJson(
      `{"any":{"big":9007199254740993,"max":9223372036854775807,"neg":-9007199254740993,"d":0.1,"nil":null,"em":{},"li":[[],{}],
        "yaml":["yes","~","null","1e3","0x1f","2001-01-01","- a","a: b","# c","","<<"],"keys":{"<<":1,"y":2,"":3,"1":4,"null":5},
        "odd":"\\u0000\\u001b\\u007f\\u0085\\u009f\\u2028\\u2029\\ufeff\\ufffe\\uffff 😀 ü \\t\\r\\n \\\\ \\"","wide":"${'k'.repeat(200)}"}}`,
    ) as { any: Record<string, unknown> };

    test('POST and server-side apply store the same value, whatever is in it', async () => {
      const { metadata, spec: posted } = await create(spec);
      expect(jsonEqual(posted, spec)).toBe(true);
      const applied = await client.apply(widgets, widget(metadata.name, spec), metadata);
      expect(printJson(applied.spec)).toBe(printJson(posted));
      const read = await client.get(widgets, metadata);
      expect(printJson(read.spec)).toContain('"big":9007199254740993');
      expect(printJson(read.spec)).toContain('"max":9223372036854775807');
      const again = await client.apply(widgets, widget(metadata.name, read.spec), read.metadata);
      expect(printJson(again.spec)).toBe(printJson(read.spec));
    });

    test('keys too long for a YAML reader', async () => {
      const long = { any: { ['k'.repeat(5_000)]: { ['"\\ü'.repeat(600)]: 1 } } };
      const { metadata } = await create();
      const applied = await client.apply(widgets, widget(metadata.name, long), metadata);
      expect(applied.spec).toStrictEqual(long);
    });

    test('900 KB and a name of 253 characters', async () => {
      const name = `${'a'.repeat(240)}${fresh()}`.padEnd(253, 'z');
      const large = { any: { text: 'ü'.repeat(450_000) } };
      const { metadata } = await client.create(widgets, widget(name, large));
      const { spec: read } = await client.apply(widgets, widget(name, { ...large, n: 1 }), metadata);
      expect(read).toStrictEqual({ ...large, n: 1 });
      const { metadata: now } = await client.get(widgets, metadata);
      await client.delete(widgets, now, now);
    });
  });

  describe('lists and watches', () => {
    test('pages of metadata come in the order of bytes and add up', async () => {
      for (const name of ['a-b', 'a'])
        await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      for (const namespace of ['a-b', 'a']) {
        await client.create(widgets, { ...widget('x'), metadata: { name: 'x', namespace, labels: { set: 'order' } } });
      }
      const selection = { labelSelector: 'set=order' };
      const first = await client.listMetadata(widgets, { ...selection, limit: 1 });
      const second = await client.listMetadata(widgets, { ...selection, limit: 1, continue: first.continue });
      expect([...first.items, ...second.items].map(({ metadata }) => metadata.namespace)).toStrictEqual(['a-b', 'a']);
      expect(first.items[0]).toStrictEqual({
        apiVersion: 'example.org/v1',
        kind: 'Widget',
        metadata: expect.any(Object),
      });
      expect((await client.listAll(widgets, selection)).items).toHaveLength(2);
      expect((await client.listAllMetadata(namespaces)).items[0]).toStrictEqual({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: expect.any(Object),
      });
    });

    test.each([true, false])('a watch brings what happens after the list, metadata only: %s', async (metadataOnly) => {
      const { resourceVersion } = await client.list(widgets, { limit: 1 });
      const { metadata } = await create({ n: 1 });
      const now = (await client.apply(widgets, widget(metadata.name, { n: 2 }), metadata)).metadata;
      await client.delete(widgets, now, now);
      const events: WatchEvent[] = [];
      for await (const event of client.watch(widgets, { resourceVersion, metadataOnly })) {
        if (events.push(event) === 3) break;
      }
      expect(events).toMatchObject([
        { type: 'ADDED', object: { kind: 'Widget', metadata: { name: metadata.name } } },
        { type: 'MODIFIED' },
        { type: 'DELETED' },
      ]);
      expect(events.some((event) => 'object' in event && 'spec' in event.object)).toBe(!metadataOnly);
    });

    test('the server ends a watch when its time is up', async () => {
      const { resourceVersion } = await client.list(widgets, { limit: 1 });
      let opened = false;
      const options = { resourceVersion, metadataOnly: true, timeoutSeconds: 1, onOpen: () => void (opened = true) };
      const events: WatchEvent[] = [];
      for await (const event of client.watch(widgets, options)) events.push(event);
      expect(opened).toBe(true);
      expect(events.filter(({ type }) => type !== 'BOOKMARK')).toStrictEqual([]);
    });

    test('versions that are too old are expired, in a watch and in a list', async () => {
      const page = await client.list(widgets, { limit: 1 });
      await create();
      await create();
      await cluster.compact();
      const watch = async (): Promise<void> => {
        for await (const _event of client.watch(widgets, { resourceVersion: '1', metadataOnly: true })) continue;
      };
      expect(await classOf(watch())).toBe('expired');
      expect(
        await classOf(client.list(widgets, { resourceVersion: '2', resourceVersionMatch: 'Exact', limit: 1 })),
      ).toBe('expired');
      expect(await classOf(client.list(widgets, { limit: 1, continue: 'no token' }))).toBe('expired');
      // Newer servers still answer from their cache here; what is old enough for a 410 carries the token that goes on.
      const next = await client.list(widgets, { limit: 1, continue: page.continue }).catch((error: unknown) => error);
      expect(isError(next, 'expired') ? next.details.continueToken : 'served').toBeTruthy();
    });
  });

  test('identity is the UID of kube-system', async () => {
    const { metadata } = await client.get(namespaces, { name: 'kube-system' });
    expect(await readClusterIdentity(client)).toBe(metadata.uid);
    expect(client.serverDate()).toBeGreaterThan(Date.now() - 60_000);
  });

  test('identity is the UID of LogicalCluster/cluster where that API is served', async () => {
    const { logicalClusters } = resources;
    await installApi(client, logicalClusters, false);
    const kubeSystem = (await client.get(namespaces, { name: 'kube-system' })).metadata.uid;
    expect(await readClusterIdentity(client)).toBe(kubeSystem);
    const made = await client.create(logicalClusters, {
      apiVersion: 'core.kcp.io/v1alpha1',
      kind: 'LogicalCluster',
      metadata: { name: 'cluster' },
    });
    expect(await readClusterIdentity(client)).toBe(made.metadata.uid);
    await client.delete(logicalClusters, made.metadata, made.metadata);
    const crd = await client.get(resources.crds, { name: 'logicalclusters.core.kcp.io' });
    await client.delete(resources.crds, crd.metadata, crd.metadata);
  });

  test('discovery tells versions, scope, verbs and the status subresource', async () => {
    const { resources: found, failures } = await discoverApis(client, { wants: (group) => group === 'example.org' });
    expect(failures).toStrictEqual([]);
    expect(found.find(({ resource }) => resource === 'gadgets')).toMatchObject({
      kind: 'Gadget',
      namespaced: true,
      status: true,
    });
    expect(found.find(({ resource }) => resource === 'widgets')).toMatchObject({ version: 'v1', status: false });
    expect((await servedVersions(client, widgets)).map(({ version }) => version)).toStrictEqual(['v1']);
    expect(await servedVersions(client, { group: 'no.such', resource: 'x' })).toStrictEqual([]);
    expect((await servedVersions(client, configmaps)).map(({ kind }) => kind)).toStrictEqual(['ConfigMap']);
  });

  test('Events count up instead of multiplying', async () => {
    const object = await create();
    let nowMs = Date.now();
    const clock = { now: () => nowMs, monotonic: () => nowMs };
    const eventsOf = async (): Promise<readonly KubeObject[]> =>
      (await client.listAll(resources.events, { fieldSelector: `involvedObject.uid=${object.metadata.uid}` })).items;
    for (let turn = 0; turn < 3; turn += 1) {
      // Every container has its own memory: what was said before, the server knows.
      const events = createEvents(client, clock, 'kbind-konnector', silentLogger);
      await events.warn(object, 'Refused', 'said twice at once');
      await events.warn(object, 'Refused', 'said twice at once');
      nowMs += 601_000;
    }
    await createEvents(client, clock, 'kbind-konnector', silentLogger).normal(object, 'Refused', 'something else');
    const found = await eventsOf();
    expect(found).toHaveLength(2);
    expect(found.find(({ count }) => count === 3)).toMatchObject({
      type: 'Warning',
      reason: 'Refused',
      message: 'said twice at once',
      source: { component: 'kbind-konnector' },
      involvedObject: { kind: 'Widget', name: object.metadata.name },
    });
  });

  test('a write that rests on fresh reads is made', async () => {
    const belief = { sentAt: instant(systemClock) };
    const { metadata } = await client.create(widgets, widget(fresh(), { n: 1 }), { belief });
    const now = await client.apply(widgets, widget(metadata.name, { n: 2 }), metadata, { belief, strict: true });
    await client.delete(widgets, now.metadata, now.metadata, { belief });
    expect(await client.find(widgets, metadata)).toBeUndefined();
  });
});
