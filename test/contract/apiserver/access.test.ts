import { beforeAll, expect, it } from 'vitest';
import { Api } from '../../support/apiserver/api.ts';
import { installCrd, onEveryServer, unique, type TestServer } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

/** A user who may do nothing: nobody has granted anything, or everything is denied. */
async function powerless(server: TestServer): Promise<{ name: string; api: Api }> {
  const name = unique('user');
  const api = await server.addUser(name);
  server.embedded?.deny({ user: name });
  return { name, api };
}

onEveryServer('access', (server, kind) => {
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
  });

  it('refuses to read with a Status that names user, verb and resource', async () => {
    const { name, api } = await powerless(server());
    const { code, body } = await api.get(widgetPath('default', 'x'));
    expect(code).toBe(403);
    expect(body).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      reason: 'Forbidden',
      message: `widgets.example.org "x" is forbidden: User "${name}" cannot get resource "widgets" in API group "example.org" in the namespace "default"`,
      details: { name: 'x', group: 'example.org', kind: 'widgets' },
    });
  });

  it.each([
    [
      'list',
      (api: Api) => api.get(widgetPath('default')),
      'widgets.example.org is forbidden: User "U" cannot list resource "widgets" in API group "example.org" in the namespace "default"',
    ],
    [
      'list everywhere',
      (api: Api) => api.get('/apis/example.org/v1/widgets'),
      'widgets.example.org is forbidden: User "U" cannot list resource "widgets" in API group "example.org" at the cluster scope',
    ],
    [
      'create',
      (api: Api) => api.post(widgetPath('default'), widget('x')),
      'widgets.example.org is forbidden: User "U" cannot create resource "widgets" in API group "example.org" in the namespace "default"',
    ],
    [
      'patch',
      (api: Api) => api.patch(widgetPath('default', 'x'), 'merge', {}),
      'widgets.example.org "x" is forbidden: User "U" cannot patch resource "widgets" in API group "example.org" in the namespace "default"',
    ],
    [
      'update a status',
      (api: Api) => api.put(`${widgetPath('default', 'x')}/status`, {}),
      'widgets.example.org "x" is forbidden: User "U" cannot update resource "widgets/status" in API group "example.org" in the namespace "default"',
    ],
    [
      'delete',
      (api: Api) => api.delete(widgetPath('default', 'x')),
      'widgets.example.org "x" is forbidden: User "U" cannot delete resource "widgets" in API group "example.org" in the namespace "default"',
    ],
    [
      'read a core object',
      (api: Api) => api.get('/api/v1/namespaces/default/secrets/x'),
      'secrets "x" is forbidden: User "U" cannot get resource "secrets" in API group "" in the namespace "default"',
    ],
    [
      'create a namespace',
      (api: Api) => api.post('/api/v1/namespaces', {}),
      'namespaces is forbidden: User "U" cannot create resource "namespaces" in API group "" at the cluster scope',
    ],
    [
      'watch',
      (api: Api) => api.get(widgetPath('default'), { query: { watch: 'true' } }),
      'widgets.example.org is forbidden: User "U" cannot watch resource "widgets" in API group "example.org" in the namespace "default"',
    ],
  ])('refuses to %s in the same words', async (_title, act, message) => {
    const { name, api } = await powerless(server());
    const { code, body } = await act(api);
    expect([code, body.message]).toEqual([403, message.replace('"U"', `"${name}"`)]);
  });

  it('refuses unknown credentials with 401', async () => {
    const api = new Api(server().kubeconfig, true);
    const { code, body } = await api.get('/api/v1/namespaces', { headers: { authorization: 'Bearer nonsense' } });
    expect(code).toBe(401);
    expect(body).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      reason: 'Unauthorized',
      message: 'Unauthorized',
      code: 401,
    });
  });

  it('takes no credentials for system:anonymous, who may see health and version', async () => {
    const api = new Api(server().kubeconfig, true);
    expect((await api.get('/healthz')).code).toBe(200);
    expect((await api.get('/version')).code).toBe(200);
    const { code, body } = await api.get('/api/v1/namespaces');
    expect([code, body.message]).toEqual([
      403,
      'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster scope',
    ]);
  });

  it('answers a powerless user that nothing is allowed', async () => {
    const { api } = await powerless(server());
    // Everybody may ask this, also where nothing else is granted.
    const spec = { resourceAttributes: { verb: 'get', resource: 'secrets', namespace: 'default' } };
    const { code, body } = await api.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec,
    });
    expect([code, body.status['allowed']]).toEqual([201, false]);
  });

  it.skipIf(kind.minor < 28)('tells who asks (since 1.28)', async () => {
    const { name, api } = await powerless(server());
    const { code, body } = await api.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
    });
    expect(code).toBe(201);
    expect(body.status['userInfo']).toMatchObject({ username: name, groups: ['system:authenticated'] });
  });

  it.runIf(kind.embedded)(
    'denies by verb, group, resource and namespace, until told otherwise (embedded only)',
    async () => {
      const name = unique('user');
      const api = await server().addUser(name);
      const undo = server().embedded?.deny({
        user: name,
        verbs: ['list'],
        groups: ['example.org'],
        resources: ['widgets'],
        namespaces: ['default'],
      });
      expect((await api.get(widgetPath('default'))).code).toBe(403);
      expect((await api.get(widgetPath('kube-system'))).code).toBe(200);
      expect((await api.get('/api/v1/namespaces/default/secrets')).code).toBe(200);
      undo?.();
      expect((await api.get(widgetPath('default'))).code).toBe(200);
    },
  );

  it.runIf(kind.embedded)('knows users by certificate and by token, and forgets them (embedded only)', async () => {
    const cluster = server().embedded;
    for (const auth of ['token', 'certificate'] as const) {
      const name = unique('user');
      const user = await cluster?.addUser({ name, groups: ['team'], auth });
      const api = new Api(user?.kubeconfig ?? '');
      const { body } = await api.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
      expect(body.status['userInfo']).toEqual({ username: name, groups: ['team', 'system:authenticated'] });
      cluster?.removeUser(name);
      expect((await api.get('/api/v1/namespaces')).code).toBe(401);
    }
  });

  it.runIf(kind.embedded)('shows tests every request (embedded only)', async () => {
    const seen: string[] = [];
    const stop = server().embedded?.onRequest(
      ({ verb, plural, name, user }) => void seen.push(`${user} ${verb} ${plural} ${name}`),
    );
    await server().api.get(widgetPath('default', 'seen'));
    await server().api.patch(widgetPath('default', 'seen'), 'merge', {});
    stop?.();
    await server().api.get(widgetPath('default', 'unseen'));
    expect(seen).toEqual(['admin get widgets seen', 'admin patch widgets seen']);
  });
});
