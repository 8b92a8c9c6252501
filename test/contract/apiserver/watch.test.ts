import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, until } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

onEveryServer('watch', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const now = async (): Promise<string> =>
    (await server().api.get(widgetPath(ns), { query: { limit: '1' } })).body.metadata.resourceVersion;
  const add = (name: string, labels: Record<string, string> = {}) =>
    server().api.post(widgetPath(ns), widget(name, { size: 'small' }, { labels }));
  const change = (name: string, body: object) => server().api.patch(widgetPath(ns, name), 'merge', body);

  it('tells what is added, modified and deleted after a resourceVersion, in order', async () => {
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    const added = await add('life');
    const modified = await change('life', { spec: { size: 'large' } });
    await server().api.delete(widgetPath(ns, 'life'));
    const events = await watch.take(3);
    watch.close();
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    expect(events[0]?.object).toEqual(added.body);
    expect(events[1]?.object).toEqual(modified.body);
    expect(events[2]?.object.spec['size']).toBe('large');
    expect(BigInt(events[2]?.object.metadata.resourceVersion ?? '0')).toBeGreaterThan(
      BigInt(modified.body.metadata.resourceVersion),
    );
  });

  it('replays the changes since an older resourceVersion', async () => {
    const from = await now();
    await add('replayed');
    await change('replayed', { spec: { size: 'large' } });
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: from });
    const events = await watch.take(2);
    watch.close();
    expect(events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
      ['ADDED', 'replayed'],
      ['MODIFIED', 'replayed'],
    ]);
  });

  it.each(['', '0'])('starts with what is there when the resourceVersion is "%s"', async (resourceVersion) => {
    const space = await newNamespace(server());
    await server().api.post(widgetPath(space), widget('here'));
    const watch = await server().api.watch(widgetPath(space), resourceVersion ? { resourceVersion } : {});
    const [event] = await watch.take(1);
    watch.close();
    expect([event?.type, event?.object.metadata.name]).toEqual(['ADDED', 'here']);
  });

  it('sees one namespace only', async () => {
    const other = await newNamespace(server());
    const watch = await server().api.watch(widgetPath(other), { resourceVersion: await now() });
    await add('outside');
    await server().api.post(widgetPath(other), widget('inside'));
    const [event] = await watch.take(1);
    watch.close();
    expect(event?.object.metadata.name).toBe('inside');
  });

  it('sees all namespaces', async () => {
    const other = await newNamespace(server());
    const watch = await server().api.watch('/apis/example.org/v1/widgets', { resourceVersion: await now() });
    await add('first-of-two');
    await server().api.post(widgetPath(other), widget('second-of-two'));
    const events = await watch.take(2);
    watch.close();
    expect(events.map(({ object }) => object.metadata.name)).toEqual(['first-of-two', 'second-of-two']);
  });

  it('turns entering and leaving a selection into ADDED and DELETED', async () => {
    await add('picky');
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now(), labelSelector: 'pick=me' });
    await change('picky', { metadata: { labels: { pick: 'me' } } });
    await change('picky', { spec: { size: 'large' } });
    const left = await change('picky', { metadata: { labels: { pick: 'not' } } });
    await change('picky', { spec: { size: 'small' } });
    await change('picky', { metadata: { labels: { pick: 'me' } } });
    const events = await watch.take(4);
    watch.close();
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED', 'ADDED']);
    // What left is shown as it last was selected, at the version of the change.
    expect(events[2]?.object.metadata.labels).toEqual({ pick: 'me' });
    expect(events[2]?.object.metadata.resourceVersion).toBe(left.body.metadata.resourceVersion);
  });

  it('watches one object by its name', async () => {
    const watch = await server().api.watch(widgetPath(ns), {
      resourceVersion: await now(),
      fieldSelector: 'metadata.name=wanted',
    });
    await add('unwanted');
    await add('wanted');
    const [event] = await watch.take(1);
    watch.close();
    expect(event?.object.metadata.name).toBe('wanted');
  });

  it('sends bookmarks to who takes them, at the latest when the time is up', async () => {
    const from = await now();
    const watch = await server().api.watch(widgetPath(ns), {
      resourceVersion: from,
      allowWatchBookmarks: 'true',
      timeoutSeconds: '3',
      labelSelector: 'no=match',
    });
    await add('marked');
    const event = await watch.next();
    watch.close();
    expect(event?.type).toBe('BOOKMARK');
    expect(event?.object).toMatchObject({ apiVersion: 'example.org/v1', kind: 'Widget' });
    expect(BigInt(event?.object.metadata.resourceVersion ?? '0')).toBeGreaterThanOrEqual(BigInt(from));
  });

  it('ends when timeoutSeconds are over', async () => {
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now(), timeoutSeconds: '1' });
    expect(await watch.next()).toBeUndefined();
  });

  it('answers a resourceVersion that is too old with an ERROR event of code 410 in a 200 stream', async () => {
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: '1' });
    const event = await watch.next();
    expect(event?.type).toBe('ERROR');
    expect(event?.object).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'Expired',
      code: 410,
    });
    expect(event?.object.message).toMatch(/^too old resource version: 1 \(\d+\)$/);
    expect(await watch.next()).toBeUndefined();
  });

  it('refuses a resourceVersion that is no number', async () => {
    await expect(server().api.watch(widgetPath(ns), { resourceVersion: 'x' })).rejects.toThrow(/^400|^410|Invalid/);
  });

  it('streams metadata only', async () => {
    const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    const watch = await server().api.watch(
      widgetPath(ns),
      { resourceVersion: await now(), allowWatchBookmarks: 'true' },
      { accept },
    );
    await add('slim', { a: 'b' });
    const event = await watch.until(({ type }) => type === 'ADDED');
    watch.close();
    expect(event.object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'slim', labels: { a: 'b' } },
    });
    expect(event.object['spec']).toBeUndefined();
  });

  it('shows bookmarks as metadata only, too', async () => {
    const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    const query = {
      resourceVersion: await now(),
      allowWatchBookmarks: 'true',
      timeoutSeconds: '3',
      labelSelector: 'no=match',
    };
    const watch = await server().api.watch(widgetPath(ns), query, { accept });
    await add('marked-slim');
    const event = await watch.until(({ type }) => type === 'BOOKMARK');
    watch.close();
    expect(event.object.kind).toBe('PartialObjectMetadata');
    expect(event.object.metadata.resourceVersion).toMatch(/^\d+$/);
  });

  it('streams Tables, with columns in the first one only', async () => {
    const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1,application/json';
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() }, { accept });
    await add('row-1');
    await add('row-2');
    const [first, second] = await watch.take(2);
    watch.close();
    expect(first?.object).toMatchObject({ kind: 'Table', rows: [{ cells: ['row-1', 'small'] }] });
    expect(first?.object['columnDefinitions']).toHaveLength(2);
    expect(second?.object['columnDefinitions'] ?? []).toHaveLength(0);
  });

  it('carries every digit of long integers', async () => {
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    await server().api.post(
      widgetPath(ns),
      '{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"long"},"spec":{"note":"a","free":{"text":"\u2028"}}}',
    );
    const [event] = await watch.take(1);
    watch.close();
    expect(event?.object.spec['free']).toEqual({ text: '\u2028' });
  });

  it('sees what status updates change', async () => {
    await add('statused');
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    await server().api.patch(`${widgetPath(ns, 'statused')}/status`, 'merge', { status: { phase: 'Running' } });
    const [event] = await watch.take(1);
    watch.close();
    expect(event).toMatchObject({ type: 'MODIFIED', object: { status: { phase: 'Running' } } });
  });

  it('sends nothing for a write that changes nothing', async () => {
    await add('same');
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    await change('same', { spec: { size: 'small' } });
    await add('after-same');
    const [event] = await watch.take(1);
    watch.close();
    expect(event?.object.metadata.name).toBe('after-same');
  });

  it('shows a deletion that waits for a finalizer as MODIFIED first', async () => {
    await server().api.post(widgetPath(ns), widget('held', {}, { finalizers: ['example.org/hold'] }));
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    await server().api.delete(widgetPath(ns, 'held'));
    await change('held', { metadata: { finalizers: null } });
    const events = await watch.take(2);
    watch.close();
    expect(events.map(({ type }) => type)).toEqual(['MODIFIED', 'DELETED']);
    expect(events[0]?.object.metadata.deletionTimestamp).toBeTruthy();
  });

  it.skipIf(kind.minor < 34)('streams the initial state and says where it ends (since 1.34)', async () => {
    const space = await newNamespace(server());
    await server().api.post(widgetPath(space), widget('initial'));
    const query = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };
    const watch = await server().api.watch(widgetPath(space), query);
    const [added, end] = await watch.take(2);
    watch.close();
    expect([added?.type, added?.object.metadata.name]).toEqual(['ADDED', 'initial']);
    expect(end?.type).toBe('BOOKMARK');
    expect(end?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
  });

  it('ends the watches of a CRD that is deleted', async () => {
    await installCrd(server(), widgetCrd({ plural: 'passings', kind: 'Passing' }));
    const watch = await server().api.watch('/apis/example.org/v1/passings', {});
    await server().api.delete('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/passings.example.org');
    await until(async () => (await watch.next()) === undefined);
  });

  it.runIf(kind.embedded)('ends watches when a test asks for it (embedded only)', async () => {
    const watch = await server().api.watch(widgetPath(ns), { resourceVersion: await now() });
    server().embedded?.stopWatches();
    expect(await watch.next()).toBeUndefined();
  });

  it.runIf(kind.embedded)(
    'answers old resource versions with 410 after a compaction that a test asks for (embedded only)',
    async () => {
      const from = await now();
      await add('compacted');
      await server().compact();
      const watch = await server().api.watch(widgetPath(ns), { resourceVersion: from });
      expect((await watch.next())?.object.code).toBe(410);
    },
  );
});
