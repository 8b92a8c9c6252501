import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { clusterBindings, configmaps, namespaces, Pair, secrets } from './fixture.ts';
import { until } from '../../support/apiserver/hands.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const at = (name: string, namespace = 'default') => ({ namespace, name });
const widget = { labels: { app: 'widget' } };
const byLabel = { labelSelector: { matchLabels: { app: 'widget' } } };
const entry = (resource: string, direction: string, selector?: object) => ({
  resource,
  direction,
  ...(selector === undefined ? {} : { selector }),
});
const annotations = (object: KubeObject | undefined): Readonly<Record<string, string>> =>
  object?.metadata.annotations ?? {};

/** Copies by the controller alone, each test with a binding of its own that it takes away again. */
describe.each(clusterKinds())('related resources between two clusters: $name', (kind) => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await Pair.start(kind);
  }, 180_000);
  afterEach(() => {
    pair.before = () => Promise.resolve();
    pair.events.splice(0);
  });
  afterAll(() => pair.stop());

  test('S26, S28, S31, 38 copies carry our metadata and contents alone; a second pass writes nothing and lists only', async () => {
    const tracked = { ...widget, annotations: { 'argocd.argoproj.io/tracking-id': 'x' } };
    await pair.make('provider', secrets, at('tls'), {
      metadata: tracked,
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64('crt'), 'tls.key': base64('key') },
    });
    await pair.make('provider', configmaps, at('mixed'), {
      metadata: widget,
      data: { region: 'eu' },
      binaryData: { raw: 'AAH/' },
    });
    await pair.make('consumer', secrets, at('up', 'default'), { metadata: widget, data: { a: base64('b') } });
    const { metadata } = await pair.bind('s26', [
      entry('secrets', 'FromProvider', byLabel),
      entry('configmaps', 'FromProvider', byLabel),
      entry('secrets', 'FromConsumer', byLabel),
    ]);
    await pair.settle('s26');

    const tls = await pair.find('consumer', secrets, at('tls'));
    expect(tls).toMatchObject({
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64('crt'), 'tls.key': base64('key') },
    });
    expect(tls?.metadata.labels).toEqual({
      'core.kbind.io/managed': 'true',
      'core.kbind.io/consumer-cluster-uid': pair.uids.consumer,
    });
    expect(annotations(tls)).toEqual({
      'core.kbind.io/consumer-cluster-uid': pair.uids.consumer,
      'core.kbind.io/related-binding': metadata.uid,
    });
    expect(tls?.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['kbind-konnector-related']);
    expect(await pair.find('consumer', configmaps, at('mixed'))).toMatchObject({
      data: { region: 'eu' },
      binaryData: { raw: 'AAH/' },
    });
    expect(await pair.find('provider', secrets, at('up'))).toMatchObject({ data: { a: base64('b') } });
    expect((await pair.condition('s26', 'Ready'))?.status).toBe('True');

    const related = pair.requests.filter((line) => /secrets|configmaps/.test(line)).sort();
    expect(related).toEqual([
      'consumer list configmaps',
      'consumer list secrets',
      'consumer list secrets',
      'provider list configmaps',
      'provider list secrets',
      'provider list secrets',
      'provider listAllMetadata secrets',
    ]);

    await pair.unbind('s26');
    expect(await pair.find('consumer', secrets, at('tls'))).toBeUndefined();
    expect(await pair.find('consumer', configmaps, at('mixed'))).toBeUndefined();
    expect(await pair.find('provider', secrets, at('up'))).toBeUndefined();
    expect(await pair.find('provider', secrets, at('tls'))).toBeDefined();
    expect(pair.events.map(({ reason }) => reason)).toContain('RelatedCopiesDeleted');
    for (const name of ['tls']) await pair.remove('provider', secrets, at(name));
    await pair.remove('provider', configmaps, at('mixed'));
    await pair.remove('consumer', secrets, at('up'));
  });

  test('a changed source changes its copy, a removed key leaves it, also in the first edit; a hand on the copy is undone', async () => {
    await pair.make('provider', secrets, at('edit'), { data: { keep: base64('1'), drop: base64('2') } });
    await pair.bind('edit', [entry('secrets', 'FromProvider', { names: ['edit'] })]);
    await pair.settle('edit');
    await pair.patch('provider', secrets, at('edit'), [{ op: 'replace', path: '/data', value: { keep: base64('3') } }]);
    await pair.settle('edit');
    expect(await pair.find('consumer', secrets, at('edit'))).toMatchObject({ data: { keep: base64('3') } });
    expect((await pair.find('consumer', secrets, at('edit')))?.['data']).not.toHaveProperty('drop');

    await pair.patch('consumer', secrets, at('edit'), [
      { op: 'replace', path: '/data/keep', value: base64('hand') },
      { op: 'remove', path: '/metadata/labels' },
    ]);
    await pair.settle('edit');
    const mended = await pair.find('consumer', secrets, at('edit'));
    expect(mended).toMatchObject({ data: { keep: base64('3') } });
    expect(mended?.metadata.labels).toMatchObject({ 'core.kbind.io/managed': 'true' });
    await pair.unbind('edit');
    await pair.remove('provider', secrets, at('edit'));
  });

  test('S27, S29, S32, L3, L4 entries are a union; copies go when they stop matching and when their entry does', async () => {
    await pair.make('provider', configmaps, at('one'), { metadata: { labels: { set: 'one' } }, data: { a: '1' } });
    await pair.make('provider', configmaps, at('two'), { metadata: { labels: { set: 'two' } }, data: { a: '2' } });
    await pair.make('consumer', configmaps, at('three'), { data: { a: '3' } });
    const one = entry('configmaps', 'FromProvider', {
      labelSelector: { matchExpressions: [{ key: 'set', operator: 'In', values: ['one'] }] },
    });
    const two = entry('configmaps', 'FromProvider', {
      labelSelector: { matchLabels: { set: 'two' } },
      names: ['two', 'other'],
    });
    const up = entry('configmaps', 'FromConsumer', { names: ['three'] });
    await pair.bind('union', [one, two, up]);
    await pair.settle('union');
    for (const name of ['one', 'two']) expect(await pair.find('consumer', configmaps, at(name))).toBeDefined();
    expect(await pair.find('provider', configmaps, at('three'))).toBeDefined();

    await pair.patch('provider', configmaps, at('one'), [{ op: 'remove', path: '/metadata/labels' }]);
    await pair.settle('union');
    expect(await pair.find('consumer', configmaps, at('one'))).toBeUndefined();
    expect(await pair.find('consumer', configmaps, at('two'))).toBeDefined();

    await pair.edit('union', [two]);
    await pair.settle('union');
    expect(await pair.find('provider', configmaps, at('three'))).toBeUndefined();
    expect(await pair.find('consumer', configmaps, at('three'))).toBeDefined();
    await pair.edit('union', []);
    await pair.settle('union');
    expect(await pair.find('consumer', configmaps, at('two'))).toBeUndefined();
    const binding = await pair.hands.consumer.get(
      {
        group: 'core.kbind.io',
        version: 'v1alpha1',
        resource: 'clusterbindings',
        kind: 'ClusterBinding',
        namespaced: false,
      },
      { name: 'union' },
    );
    expect(annotations(binding)).not.toHaveProperty('core.kbind.io/related-routes');
    expect(pair.requests.filter((line) => line.includes('configmaps'))).toEqual([]);
    await pair.unbind('union');
    for (const name of ['one', 'two']) await pair.remove('provider', configmaps, at(name));
    await pair.remove('consumer', configmaps, at('three'));
  });

  test('S30, L5 a target that is not ours is left alone, shown in Conflicts and told; another binding’s copy is not ours either', async () => {
    await pair.make('consumer', configmaps, at('foreign'), { data: { region: 'FOREIGN' } });
    await pair.make('provider', configmaps, at('foreign'), { metadata: widget, data: { region: 'PROVIDER' } });
    await pair.make('provider', configmaps, at('shared'), { metadata: widget, data: { a: '1' } });
    await pair.bind('first', [entry('configmaps', 'FromProvider', { names: ['shared'] })]);
    await pair.settle('first');
    const before = await pair.find('consumer', configmaps, at('foreign'));
    await pair.bind('second', [entry('configmaps', 'FromProvider', byLabel)]);
    await pair.settle('second');
    expect(await pair.find('consumer', configmaps, at('foreign'))).toEqual(before);
    const conflicts = await pair.condition('second', 'Conflicts');
    expect(conflicts).toMatchObject({ status: 'True', reason: 'ForeignObjectExists' });
    expect(conflicts?.message).toContain('ConfigMap default/foreign of the consumer (ForeignObjectExists)');
    expect(conflicts?.message).toContain('ConfigMap default/shared of the consumer (OwnedByAnother)');
    expect((await pair.condition('second', 'Ready'))?.status).toBe('True');
    expect(pair.events.map(({ reason }) => reason)).toContain('RelatedConflict');

    await pair.unbind('first');
    await pair.remove('consumer', configmaps, at('foreign'));
    await pair.settle('second');
    expect(await pair.find('consumer', configmaps, at('foreign'))).toMatchObject({ data: { region: 'PROVIDER' } });
    expect(await pair.find('consumer', configmaps, at('shared'))).toBeDefined();
    expect((await pair.condition('second', 'Conflicts'))?.status).toBe('False');
    await pair.unbind('second');
    for (const name of ['foreign', 'shared']) await pair.remove('provider', configmaps, at(name));
  });

  test('38 an immutable copy and one of another type are replaced; token Secrets arrive as Opaque', async () => {
    await pair.make('provider', configmaps, at('fixed'), { metadata: widget, immutable: true, data: { a: '1' } });
    await pair.make('provider', secrets, at('typed'), {
      metadata: widget,
      type: 'example.org/a',
      data: { a: base64('1') },
    });
    await pair.make('provider', secrets, at('token'), {
      metadata: { ...widget, annotations: { 'kubernetes.io/service-account.name': 'default' } },
      type: 'kubernetes.io/service-account-token',
      data: { token: base64('t') },
    });
    await pair.bind('replace', [
      entry('configmaps', 'FromProvider', byLabel),
      entry('secrets', 'FromProvider', byLabel),
    ]);
    await pair.settle('replace');
    expect(await pair.find('consumer', configmaps, at('fixed'))).toMatchObject({ immutable: true, data: { a: '1' } });
    expect(await pair.find('consumer', secrets, at('token'))).toMatchObject({ type: 'Opaque' });

    await pair.remove('provider', configmaps, at('fixed'));
    await pair.make('provider', configmaps, at('fixed'), { metadata: widget, immutable: true, data: { a: '2' } });
    await pair.remove('provider', secrets, at('typed'));
    await pair.make('provider', secrets, at('typed'), {
      metadata: widget,
      type: 'example.org/b',
      data: { a: base64('1') },
    });
    await pair.settle('replace');
    expect(await pair.find('consumer', configmaps, at('fixed'))).toMatchObject({ immutable: true, data: { a: '2' } });
    expect(await pair.find('consumer', secrets, at('typed'))).toMatchObject({ type: 'example.org/b' });
    await pair.unbind('replace');
    await pair.remove('provider', configmaps, at('fixed'));
    for (const name of ['typed', 'token']) await pair.remove('provider', secrets, at(name));
  });

  test('both directions without selectors do not copy copies; a Binding stays in its namespace; L7 warns', async () => {
    await pair.make('provider', namespaces, { name: 'team-a' });
    await pair.make('consumer', namespaces, { name: 'team-a' });
    await pair.make('provider', secrets, at('down', 'team-a'), { data: { a: base64('1') } });
    await pair.make('consumer', secrets, at('up', 'team-a'), { data: { a: base64('2') } });
    await pair.make('provider', secrets, at('elsewhere'), { data: { a: base64('3') } });
    await pair.bind('all', [entry('secrets', 'FromProvider'), entry('secrets', 'FromConsumer')], 'team-a');
    await pair.settle('all', 'team-a');
    expect(await pair.find('consumer', secrets, at('down', 'team-a'))).toMatchObject({ data: { a: base64('1') } });
    expect(await pair.find('provider', secrets, at('up', 'team-a'))).toMatchObject({ data: { a: base64('2') } });
    expect(await pair.find('consumer', secrets, at('elsewhere'))).toBeUndefined();
    expect((await pair.condition('all', 'Conflicts', 'team-a'))?.status).toBe('False');
    expect((await pair.condition('all', 'Ready', 'team-a'))?.message).toContain(
      'relatedResources[0] (secrets FromProvider) has no selector',
    );
    await pair.unbind('all', 'team-a');
    await pair.remove('provider', secrets, at('down', 'team-a'));
    await pair.remove('consumer', secrets, at('up', 'team-a'));
    await pair.remove('provider', secrets, at('elsewhere'));
  });

  test('a missing namespace is made, with our label', async () => {
    await pair.make('provider', namespaces, { name: 'fresh' });
    await pair.make('provider', configmaps, at('c', 'fresh'), { metadata: widget, data: { a: '1' } });
    await pair.bind('fresh', [entry('configmaps', 'FromProvider', byLabel)]);
    await pair.settle('fresh');
    expect(await pair.find('consumer', configmaps, at('c', 'fresh'))).toBeDefined();
    expect((await pair.find('consumer', namespaces, { name: 'fresh' }))?.metadata.labels).toMatchObject({
      'core.kbind.io/managed': 'true',
    });
    await pair.unbind('fresh');
    await pair.remove('provider', configmaps, at('c', 'fresh'));
  });

  test('an invalid selector makes the binding unready, naming the entry, and deletes nothing of its kind', async () => {
    await pair.make('provider', configmaps, at('kept'), { metadata: widget, data: { a: '1' } });
    await pair.bind('invalid', [entry('configmaps', 'FromProvider', byLabel)]);
    await pair.settle('invalid');
    const broken = entry('configmaps', 'FromProvider', { labelSelector: { matchLabels: { 'no key!': 'x' } } });
    await pair.edit('invalid', [broken]);
    await pair.settle('invalid');
    const ready = await pair.condition('invalid', 'Ready');
    expect(ready).toMatchObject({ status: 'False', reason: 'Pending' });
    expect(ready?.message).toContain('relatedResources[0] (configmaps FromProvider): the labelSelector is invalid');
    expect(await pair.find('consumer', configmaps, at('kept'))).toBeDefined();
    await pair.unbind('invalid');
    expect(await pair.find('consumer', configmaps, at('kept'))).toBeUndefined();
    await pair.remove('provider', configmaps, at('kept'));
  });

  test('9 a list that does not end deletes nothing; one whose snapshot is gone starts over', async () => {
    await pair.make('provider', configmaps, at('paged'), { metadata: widget, data: { a: '1' } });
    await pair.bind('paged', [entry('configmaps', 'FromProvider', byLabel)]);
    await pair.settle('paged');
    await pair.remove('provider', configmaps, at('paged'));
    let answers = 0;
    pair.before = async (line) => {
      if (line !== 'provider list configmaps') return;
      answers += 1;
      if (answers <= 4) throw new KbindError('expired', 'the continue token is too old');
    };
    await expect(pair.reconcile('paged')).rejects.toThrow('too old');
    expect(await pair.find('consumer', configmaps, at('paged'))).toBeDefined();
    await pair.settle('paged');
    expect(await pair.find('consumer', configmaps, at('paged'))).toBeUndefined();
    await pair.unbind('paged');
  });

  test('a copy whose source or binding goes while it is made is undone', async () => {
    await pair.make('provider', secrets, at('brief'), { metadata: widget, data: { a: base64('1') } });
    await pair.bind('race', [entry('secrets', 'FromProvider', byLabel)]);
    await pair.reconcile('race');
    pair.before = async (line) => {
      if (line !== 'consumer create secrets default/brief') return;
      pair.before = () => Promise.resolve();
      await pair.remove('provider', secrets, at('brief'));
    };
    await until('the race was run', async () => {
      await pair.reconcile('race');
      return (await pair.find('provider', secrets, at('brief'))) === undefined;
    });
    expect(pair.requests).toContain('consumer delete secrets default/brief');
    expect(await pair.find('consumer', secrets, at('brief'))).toBeUndefined();

    await pair.make('provider', secrets, at('brief'), { metadata: widget, data: { a: base64('1') } });
    pair.before = async (line) => {
      if (line !== 'consumer create secrets default/brief') return;
      pair.before = () => Promise.resolve();
      await pair.edit('race', []);
    };
    pair.requests.splice(0);
    await pair.reconcile('race');
    expect(pair.requests).toContain('consumer delete secrets default/brief');
    expect(await pair.find('consumer', secrets, at('brief'))).toBeUndefined();
    await pair.unbind('race');
    await pair.remove('provider', secrets, at('brief'));
  });

  test('unbinding retries a provider that cannot be read, and the fifth time leaves its copies, said by name', async () => {
    await pair.make('consumer', configmaps, at('left'), { metadata: widget, data: { a: '1' } });
    await pair.bind('left', [entry('configmaps', 'FromConsumer', byLabel)]);
    await pair.settle('left');
    pair.before = async (line) => {
      if (line === 'provider list configmaps') throw new KbindError('unavailable', 'the provider is away');
    };
    await pair.remove('consumer', clusterBindings, { name: 'left' });
    await until('the grace is over', async () => {
      const failure = await pair.walk('left', 0).then(
        () => undefined,
        (error: unknown) => error,
      );
      return failure instanceof KbindError && failure.errorClass === 'unavailable';
    });
    expect(await pair.find('consumer', clusterBindings, { name: 'left' })).toBeDefined();
    await pair.walk('left', 4);
    expect(await pair.find('consumer', clusterBindings, { name: 'left' })).toBeUndefined();
    expect(pair.events.find(({ reason }) => reason === 'LeftBehind')?.message).toContain('Copies of configmaps');
    expect(await pair.find('provider', configmaps, at('left'))).toBeDefined();
    await pair.remove('provider', configmaps, at('left'));
    await pair.remove('consumer', configmaps, at('left'));
  });

  test('C7 what is forbidden is named with verb, resource and namespace, the rest goes on, and it heals with the grant', async () => {
    await pair.make('consumer', secrets, at('denied'), { metadata: widget, data: { a: base64('1') } });
    await pair.make('consumer', configmaps, at('allowed'), { metadata: widget, data: { a: '1' } });
    await pair.bind('denied', [
      entry('secrets', 'FromConsumer', byLabel),
      entry('configmaps', 'FromConsumer', byLabel),
    ]);
    const admin = pair.providerClient;
    const { permit } = await pair.limit();
    await until('the refusal is told', async () => {
      const outcome = await pair.reconcile('denied');
      return outcome.type === 'wait' && (await pair.condition('denied', 'PermissionDenied'))?.status === 'True';
    });
    const denied = await pair.condition('denied', 'PermissionDenied');
    expect(denied?.reason).toBe('Forbidden');
    expect(denied?.message).toContain('relatedResources[0] (secrets FromConsumer): the provider forbids');
    expect(denied?.message).toMatch(/create secrets? .*default/);
    expect((await pair.condition('denied', 'Ready'))?.status).toBe('True');
    expect(await pair.find('provider', configmaps, at('allowed'))).toBeDefined();
    await permit();
    await until('the grant is used', async () => {
      await pair.reconcile('denied');
      return (await pair.find('provider', secrets, at('denied'))) !== undefined;
    });
    await pair.settle('denied');
    expect((await pair.condition('denied', 'PermissionDenied'))?.status).toBe('False');
    await pair.unbind('denied');
    expect(await pair.find('provider', secrets, at('denied'))).toBeUndefined();
    await pair.providerClient.close();
    pair.providerClient = admin;
    await pair.remove('consumer', secrets, at('denied'));
    await pair.remove('consumer', configmaps, at('allowed'));
  });
});
