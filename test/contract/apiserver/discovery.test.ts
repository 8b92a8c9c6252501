import { beforeAll, expect, it } from 'vitest';
import { installCrd, onEveryServer, until } from '../../support/apiserver/servers.ts';
import { CRDS_PATH, widgetCrd } from '../../support/apiserver/widgets.ts';

onEveryServer('discovery', (server, kind) => {
  beforeAll(async () => {
    await installCrd(server(), {
      ...widgetCrd(),
      spec: {
        ...widgetCrd().spec,
        names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
      },
    });
  });

  it('serves the versions of the core API', async () => {
    expect((await server().api.get('/api')).body).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
  });

  it('lists groups with their preferred version', async () => {
    const { body } = await server().api.get('/apis');
    expect(body.kind).toBe('APIGroupList');
    const groups = body['groups'] as { name: string; preferredVersion: unknown }[];
    expect(groups.find(({ name }) => name === 'example.org')).toMatchObject({
      versions: [{ groupVersion: 'example.org/v1', version: 'v1' }],
      preferredVersion: { groupVersion: 'example.org/v1', version: 'v1' },
    });
    expect(groups.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['apiextensions.k8s.io', 'coordination.k8s.io', 'authorization.k8s.io']),
    );
  });

  it('serves one group', async () => {
    expect((await server().api.get('/apis/example.org')).body).toMatchObject({
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'example.org',
    });
  });

  it('lists the resources of a group version, with short names, categories and subresources', async () => {
    const { body } = await server().api.get('/apis/example.org/v1');
    expect(body).toMatchObject({ kind: 'APIResourceList', groupVersion: 'example.org/v1' });
    const resources = body['resources'] as { name: string; verbs: string[] }[];
    const widgets = resources.find(({ name }) => name === 'widgets');
    expect(widgets).toMatchObject({
      singularName: 'widget',
      namespaced: true,
      kind: 'Widget',
      shortNames: ['wd'],
      categories: ['all'],
    });
    expect([...(widgets?.verbs ?? [])].sort()).toEqual([
      'create',
      'delete',
      'deletecollection',
      'get',
      'list',
      'patch',
      'update',
      'watch',
    ]);
    expect(resources.find(({ name }) => name === 'widgets/status')).toMatchObject({
      namespaced: true,
      kind: 'Widget',
      verbs: expect.arrayContaining(['get', 'patch', 'update']) as unknown,
    });
  });

  it('lists the core resources', async () => {
    const { body } = await server().api.get('/api/v1');
    const names = (body['resources'] as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'configmaps',
        'events',
        'namespaces',
        'namespaces/finalize',
        'namespaces/status',
        'secrets',
      ]),
    );
  });

  it('answers an unknown group version with 404', async () => {
    expect((await server().api.get('/apis/nowhere.example/v1')).code).toBe(404);
  });

  it('tells its version', async () => {
    const { body } = await server().api.get('/version');
    expect(body).toMatchObject({
      major: '1',
      minor: String(kind.minor),
      gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/) as unknown,
    });
  });

  it.each(['/healthz', '/livez', '/readyz'])('answers %s with ok', async (path) => {
    const reply = await server().api.get(path);
    expect([reply.code, reply.text]).toEqual([200, 'ok']);
  });

  it.skipIf(kind.minor < 22)('answers an unknown path in plain text (1.20 lists its paths)', async () => {
    const reply = await server().api.get('/nowhere');
    expect(reply.code).toBe(404);
    expect(reply.text.trim()).toBe('404 page not found');
    expect(reply.headers['content-type']).toContain('text/plain');
  });

  it('answers an unserved version of a served group in plain text', async () => {
    const reply = await server().api.get('/apis/example.org/v9/namespaces/default/widgets/x');
    expect(reply.code).toBe(404);
    expect(reply.text.trim()).toBe('404 page not found');
  });

  it.skipIf(kind.minor < 30)('serves aggregated discovery (since 1.30)', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
    const read = async () => (await server().api.get('/apis', { headers: { accept } })).body;
    const find = (body: Awaited<ReturnType<typeof read>>) =>
      body.items.find((item) => item.metadata.name === 'example.org');
    const group = await until(async () => find(await read()));
    expect((await read()).kind).toBe('APIGroupDiscoveryList');
    expect(group).toMatchObject({
      versions: [
        {
          version: 'v1',
          freshness: 'Current',
          resources: [
            {
              resource: 'widgets',
              responseKind: { group: 'example.org', version: 'v1', kind: 'Widget' },
              scope: 'Namespaced',
              singularResource: 'widget',
              shortNames: ['wd'],
              subresources: [{ subresource: 'status' }],
            },
          ],
        },
      ],
    });
  });

  it.skipIf(kind.minor < 27)('publishes the schema of a custom resource in OpenAPI v3 (since 1.27)', async () => {
    const index = await until(async () => {
      const { body } = await server().api.get('/openapi/v3');
      const paths = body['paths'] as Record<string, { serverRelativeURL: string }> | undefined;
      return paths?.['apis/example.org/v1'];
    });
    const { body } = await server().api.get(index.serverRelativeURL);
    const schemas = (body['components'] as { schemas: Record<string, unknown> }).schemas;
    expect(schemas['org.example.v1.Widget']).toMatchObject({
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { size: { type: 'string' } } },
        metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }] },
      },
      'x-kubernetes-group-version-kind': [{ group: 'example.org', kind: 'Widget', version: 'v1' }],
    });
    const paths = body['paths'] as Record<string, { patch?: { parameters: { name: string }[] } }>;
    const patch = paths['/apis/example.org/v1/namespaces/{namespace}/widgets/{name}']?.patch;
    expect(patch).toMatchObject({
      'x-kubernetes-group-version-kind': { group: 'example.org', kind: 'Widget', version: 'v1' },
    });
    expect(patch?.parameters.map(({ name }) => name)).toContain('fieldValidation');
  });

  it('publishes definitions in OpenAPI v2', async () => {
    const definition = await until(async () => {
      const { body } = await server().api.get('/openapi/v2', { headers: { accept: 'application/json' } });
      return (body['definitions'] as Record<string, unknown> | undefined)?.['org.example.v1.Widget'];
    });
    expect(definition).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: 'example.org', kind: 'Widget', version: 'v1' }],
    });
  });

  it('stops to serve a group with its last CRD', async () => {
    await installCrd(server(), widgetCrd({ group: 'gone.example', plural: 'things', kind: 'Thing' }));
    await server().api.delete(`${CRDS_PATH}/things.gone.example`);
    await until(async () => (await server().api.get('/apis/gone.example/v1/things')).code === 404);
    await until(async () => !(await server().api.get('/apis')).text.includes('gone.example'));
  });
});
