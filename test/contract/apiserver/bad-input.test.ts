import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

onEveryServer('bad input', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const serves = async (): Promise<void> =>
    expect((await server().api.get('/api/v1/namespaces/default')).code).toBe(200);

  it.each([
    ['JSON that ends early', '{"apiVersion":', 'application/json'],
    ['no JSON at all', 'nonsense', 'application/json'],
    ['a JSON list', '[]', 'application/json'],
    [
      'JSON with more behind it',
      '{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"x"}} more',
      'application/json',
    ],
    ['an empty body', '', 'application/json'],
    ['malformed YAML', 'a: [', 'application/yaml'],
    ['YAML that is no object', '- a', 'application/yaml'],
  ])('refuses %s with 400', async (_title, body, type) => {
    const reply = await server().api.post(widgetPath(ns), body, { headers: { 'content-type': type } });
    expect([reply.code, reply.body.kind, reply.body.reason]).toEqual([400, 'Status', 'BadRequest']);
    await serves();
  });

  it('refuses an unknown content type with 415', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('a'), {
      headers: { 'content-type': 'text/plain' },
    });
    expect([code, body.kind, body.reason]).toEqual([415, 'Status', 'UnsupportedMediaType']);
    expect(body.message).toContain(
      'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml',
    );
    await serves();
  });

  it('refuses a body of more than 3 MiB with 413', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), 'x'.repeat(3 * 1024 * 1024 + 1));
    expect([code, body.reason, body.message]).toEqual([
      413,
      'RequestEntityTooLarge',
      'Request entity too large: limit is 3145728',
    ]);
    await serves();
  });

  it('refuses an object that the storage cannot hold with 500', async () => {
    const { code, body } = await server().api.post(
      widgetPath(ns),
      widget('large', { free: { text: 'x'.repeat(1_600_000) } }),
    );
    expect([code, body.message]).toEqual([500, 'etcdserver: request is too large']);
    expect((await server().api.get(widgetPath(ns, 'large'))).code).toBe(404);
    await serves();
  });

  it('answers the wrong group with 404', async () => {
    const { code } = await server().api.post('/apis/wrong.example/v1/namespaces/default/widgets', widget('a'));
    expect(code).toBe(404);
  });

  it('answers an unknown core resource with a Status', async () => {
    const { code, body } = await server().api.get('/api/v1/nothings');
    expect(code).toBe(404);
    expect(body).toMatchObject({
      kind: 'Status',
      reason: 'NotFound',
      message: 'the server could not find the requested resource',
      details: {},
    });
  });

  it('answers an unknown subresource with 404', async () => {
    await server().api.post(widgetPath(ns), widget('sub'));
    expect((await server().api.get(`${widgetPath(ns, 'sub')}/nothing`)).code).toBe(404);
  });

  it('refuses a method that makes no sense with 405', async () => {
    const { code, body } = await server().api.delete('/api/v1/namespaces');
    expect([code, body.reason]).toEqual([405, 'MethodNotAllowed']);
    expect((await server().api.put(`/api/v1/namespaces/${ns}/secrets`, {})).code).toBe(405);
  });

  it('refuses a field manager that is too long', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('fm'), {
      query: { fieldManager: 'x'.repeat(129) },
    });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
  });

  it('refuses a field manager with control characters', async () => {
    const { code } = await server().api.post(widgetPath(ns), widget('fm'), { query: { fieldManager: 'a\u0001b' } });
    expect(code).toBe(422);
  });

  it.skipIf(kind.minor < 27)('refuses a fieldValidation that it does not know (since 1.27)', async () => {
    const { code } = await server().api.post(widgetPath(ns), widget('fv'), { query: { fieldValidation: 'Maybe' } });
    expect(code).toBe(422);
  });

  it('refuses a limit that is no number', async () => {
    const { code, body } = await server().api.get(widgetPath(ns), { query: { limit: 'many' } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
  });

  it('treats __proto__ and constructor as plain keys', async () => {
    const text =
      '{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"proto"},"spec":{"free":{"__proto__":{"a":1},"constructor":"x"}}}';
    const reply = await server().api.post(widgetPath(ns), text);
    expect(reply.code).toBe(201);
    expect(reply.text).toContain('"__proto__":{"a":1}');
    const read = await server().api.patch(widgetPath(ns, 'proto'), 'merge', { metadata: { labels: { a: 'b' } } });
    expect(read.text).toContain('"__proto__":{"a":1}');
    expect(read.text).toContain('"constructor":"x"');
  });

  it('answers a HEAD request without a body', async () => {
    const reply = await server().api.send('HEAD', '/healthz', undefined, {});
    expect(reply.text).toBe('');
  });

  it('keeps one connection usable after a refusal', async () => {
    for (let i = 0; i < 5; i += 1) {
      expect((await server().api.post(widgetPath(ns), '{')).code).toBe(400);
      await serves();
    }
  });

  it.runIf(kind.embedded)('refuses what it does not support with 501, and never fakes it (embedded only)', async () => {
    for (const path of [
      '/api/v1/pods',
      '/apis/apps/v1/deployments',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    ]) {
      const { code, body } = await server().api.get(path);
      expect([code, body.kind, body.reason]).toEqual([501, 'Status', 'NotImplemented']);
      expect(body.message).toContain('the embedded API server does not support this');
    }
  });
});
