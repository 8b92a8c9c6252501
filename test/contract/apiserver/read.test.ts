import { beforeAll, expect, it } from 'vitest';
import {
  installCrd,
  newNamespace,
  onEveryServer,
  pathOf,
  until,
  type TestServer,
} from '../../support/apiserver/servers.ts';
import type { Body } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const ALL = '/apis/example.org/v1/widgets';
const secretPath = pathOf('', 'v1', 'secrets');

async function pages({ api }: TestServer, path: string, query: Record<string, string>): Promise<Body[]> {
  const found: Body[] = [];
  for (let token = ''; ;) {
    const { body } = await api.get(path, { query: { ...query, ...(token && { continue: token }) } });
    found.push(body);
    token = body.metadata.continue ?? '';
    if (!token) return found;
  }
}

const names = (list: Body): string[] => list.items.map(({ metadata }) => metadata.name);

onEveryServer('read and list', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const labels = { letter: name, ...('ace'.includes(name) && { odd: 'true' }) };
      await server().api.post(widgetPath(ns), widget(name, { size: 'small' }, { labels }));
    }
  });

  it('gets an object', async () => {
    const { code, body } = await server().api.get(widgetPath(ns, 'a'));
    expect(code).toBe(200);
    expect(body).toMatchObject({ kind: 'Widget', metadata: { name: 'a', namespace: ns }, spec: { size: 'small' } });
  });

  it('answers 404 with a Status that names the object', async () => {
    const { code, body } = await server().api.get(widgetPath(ns, 'none'));
    expect(code).toBe(404);
    expect(body).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      reason: 'NotFound',
      message: 'widgets.example.org "none" not found',
      details: { name: 'none', group: 'example.org', kind: 'widgets' },
      code: 404,
    });
  });

  it('answers 404 for a core object without a group', async () => {
    const { body } = await server().api.get(secretPath(ns, 'none'));
    expect(body).toMatchObject({ message: 'secrets "none" not found', details: { name: 'none', kind: 'secrets' } });
    expect(body.details?.group).toBeUndefined();
  });

  it('lists with a resourceVersion of the list', async () => {
    const { body } = await server().api.get(widgetPath(ns));
    expect(body).toMatchObject({ apiVersion: 'example.org/v1', kind: 'WidgetList' });
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(names(body)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('lists an empty collection with items', async () => {
    const { body } = await server().api.get(widgetPath('nowhere'));
    expect(body.items).toEqual([]);
  });

  it('lists over all namespaces', async () => {
    const { body } = await server().api.get(ALL);
    expect(names(body)).toEqual(expect.arrayContaining(['a', 'e']));
  });

  it('lists in byte order of namespace/name, so that a-b/x comes before a/x', async () => {
    for (const namespace of ['ord', 'ord-b', 'ord0']) {
      await server().api.post('/api/v1/namespaces', { metadata: { name: namespace } });
      for (const name of ['x', 'x-1', 'x.1'])
        await server().api.post(widgetPath(namespace), widget(name, {}, { labels: { order: 'yes' } }));
    }
    const keys = (list: Body): string[] => list.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    const expected = ['ord-b', 'ord', 'ord0'].flatMap((namespace) =>
      ['x', 'x-1', 'x.1'].map((name) => `${namespace}/${name}`),
    );
    const paged = await pages(server(), ALL, { limit: '2', labelSelector: 'order=yes' });
    expect(paged.flatMap(keys)).toEqual(expected);
    expect(keys((await server().api.get(ALL, { query: { labelSelector: 'order=yes' } })).body)).toEqual(expected);
  });

  it('pages with limit and continue, counting what remains', async () => {
    const found = await pages(server(), widgetPath(ns), { limit: '2' });
    expect(found.map(names)).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    expect(found.map((page) => page.metadata.remainingItemCount)).toEqual([3, 1, undefined]);
    expect(new Set(found.map((page) => page.metadata.resourceVersion)).size).toBe(1);
  });

  it('counts nothing that remains under a selector', async () => {
    const [first] = await pages(server(), widgetPath(ns), { limit: '1', labelSelector: 'odd=true' });
    expect(first?.metadata.continue).toBeTruthy();
    expect(first?.metadata.remainingItemCount).toBeUndefined();
  });

  it('shows later pages as of the first one', async () => {
    const space = await newNamespace(server());
    for (const name of ['a', 'b', 'c', 'd']) await server().api.post(widgetPath(space), widget(name));
    const first = (await server().api.get(widgetPath(space), { query: { limit: '2' } })).body;
    await server().api.delete(widgetPath(space, 'c'));
    await server().api.post(widgetPath(space), widget('cc'));
    await server().api.patch(widgetPath(space, 'd'), 'merge', { spec: { size: 'large' } });
    const rest = (
      await server().api.get(widgetPath(space), { query: { limit: '2', continue: first.metadata.continue ?? '' } })
    ).body;
    expect(names(rest)).toEqual(['c', 'd']);
    expect(rest.items[1]?.spec['size']).not.toBe('large');
  });

  it('answers a continue token from before a compaction with 410 and a token to go on', async () => {
    const first = (await server().api.get(widgetPath(ns), { query: { limit: '2' } })).body;
    await server().api.patch(widgetPath(ns, 'a'), 'merge', { metadata: { annotations: { at: 'compaction' } } });
    await server().compact();
    const query = { limit: '2', continue: first.metadata.continue ?? '' };
    // A current server keeps old pages in its cache until it notices the compaction, some seconds later.
    const body = await until(async () => {
      const reply = await server().api.get(widgetPath(ns), { query });
      return reply.code === 410 && reply.body;
    });
    expect(body.reason).toBe('Expired');
    expect(body.message).toContain('The provided continue parameter is too old to display a consistent list result');
    expect(body.metadata.continue).toBeTruthy();
    const onwards = await server().api.get(widgetPath(ns), {
      query: { limit: '9', continue: body.metadata.continue ?? '' },
    });
    expect(names(onwards.body)).toEqual(['c', 'd', 'e']);
  });

  it('refuses a continue token that it did not make', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { limit: '2', continue: 'nonsense!' } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain('continue key is not valid');
  });

  it('reads a list resourceVersion with limit=1', async () => {
    const { body } = await server().api.get(ALL, { query: { limit: '1' } });
    expect(body.items).toHaveLength(1);
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
  });

  it('lists with resourceVersion=0', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { resourceVersion: '0' } });
    expect(code).toBe(200);
    // 1.20 answers this in no order.
    expect(names(body).sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('lists not older than a resourceVersion', async () => {
    const made = await server().api.post(widgetPath(ns), widget('f', {}, { labels: { late: 'yes' } }));
    const query = {
      resourceVersion: made.body.metadata.resourceVersion,
      resourceVersionMatch: 'NotOlderThan',
      labelSelector: 'late=yes',
    };
    expect(names((await server().api.get(widgetPath(ns), { query })).body)).toEqual(['f']);
    await server().api.delete(widgetPath(ns, 'f'));
  });

  it('lists exactly at a resourceVersion', async () => {
    const space = await newNamespace(server());
    const made = await server().api.post(widgetPath(space), widget('one'));
    await server().api.post(widgetPath(space), widget('two'));
    const query = { resourceVersion: made.body.metadata.resourceVersion, resourceVersionMatch: 'Exact', limit: '500' };
    expect(names((await server().api.get(widgetPath(space), { query })).body)).toEqual(['one']);
  });

  it('refuses a resourceVersion from the future', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { resourceVersion: '99999999' } });
    expect([code, body.reason]).toEqual([504, 'Timeout']);
    expect(body.message).toContain('Too large resource version');
  });

  it('refuses resourceVersionMatch without a resourceVersion', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { resourceVersionMatch: 'Exact' } });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('resourceVersionMatch is forbidden unless resourceVersion is provided');
  });

  it.each([
    ['letter=a', ['a']],
    ['letter==b', ['b']],
    ['odd', ['a', 'c', 'e']],
    ['!odd', ['b', 'd']],
    ['letter!=a', ['b', 'c', 'd', 'e']],
    ['letter in (a, c, x)', ['a', 'c']],
    ['letter notin (a,c)', ['b', 'd', 'e']],
    ['odd=true,letter!=a', ['c', 'e']],
    ['missing!=x', ['a', 'b', 'c', 'd', 'e']],
  ])('selects by labels: %s', async (labelSelector, expected) => {
    expect(names((await server().api.get(widgetPath(ns), { query: { labelSelector } })).body)).toEqual(expected);
  });

  it.each(['a=b=c', 'x in (a', '-bad=x', 'a=b,'])('refuses the label selector %s', async (labelSelector) => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { labelSelector } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
  });

  it('selects by name and namespace', async () => {
    const select = async (fieldSelector: string) =>
      names((await server().api.get(ALL, { query: { fieldSelector, labelSelector: 'letter' } })).body);
    expect(await select('metadata.name=b')).toEqual(['b']);
    expect(await select(`metadata.namespace=${ns},metadata.name!=b`)).toEqual(['a', 'c', 'd', 'e']);
    expect(await select('metadata.namespace=nowhere')).toEqual([]);
  });

  it('refuses a field selector that the resource does not know', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { fieldSelector: 'spec.size=small' } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain('field label not supported: spec.size');
  });

  it('shows metadata only', async () => {
    const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    const { body, headers } = await server().api.get(widgetPath(ns, 'a'), { headers: { accept } });
    expect(headers['content-type']).toContain('application/json');
    expect(body).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a', labels: { letter: 'a' } },
    });
    expect(body['spec']).toBeUndefined();
  });

  it('shows pages of metadata only', async () => {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const { body } = await server().api.get(widgetPath(ns), { headers: { accept }, query: { limit: '2' } });
    expect(body).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' });
    expect(body.metadata.continue).toBeTruthy();
    expect(body.items[0]?.['spec']).toBeUndefined();
    expect(names(body)).toEqual(['a', 'b']);
  });

  it('shows a Table with the columns of the CRD', async () => {
    const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1,application/json';
    const { body } = await server().api.get(widgetPath(ns), { headers: { accept }, query: { limit: '1' } });
    expect(body).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      rows: [{ cells: ['a', 'small'], object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } }],
    });
    expect((body['columnDefinitions'] as { name: string }[]).map(({ name }) => name)).toEqual(['Name', 'Size']);
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
  });

  it('shows a Table of a built-in kind', async () => {
    const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1,application/json';
    const { body } = await server().api.get('/api/v1/namespaces/default', { headers: { accept } });
    expect((body['columnDefinitions'] as { name: string }[]).map(({ name }) => name)).toEqual([
      'Name',
      'Status',
      'Age',
    ]);
    expect(body['rows']).toMatchObject([{ cells: ['default', 'Active', expect.any(String)] }]);
  });

  it('falls back to plain JSON where it cannot show the first choice', async () => {
    const accept = 'application/json;as=Unknown;g=meta.k8s.io;v=v1, application/json';
    expect((await server().api.get(widgetPath(ns, 'a'), { headers: { accept } })).body.kind).toBe('Widget');
  });

  it.skipIf(kind.minor < 25)('refuses what it cannot show with 406', async () => {
    const { code, body } = await server().api.get(widgetPath(ns, 'a'), { headers: { accept: 'text/html' } });
    expect([code, body.reason]).toEqual([406, 'NotAcceptable']);
    expect(body.message).toMatch(/^only the following media types are accepted: application\/json/);
  });
});
