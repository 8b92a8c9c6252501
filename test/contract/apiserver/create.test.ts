import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

onEveryServer('create', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  it('answers 201 with what the server filled in', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('filled'));
    expect(code).toBe(201);
    expect(body).toMatchObject({
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      metadata: { name: 'filled', namespace: ns, generation: 1 },
    });
    expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  it('records the creator in managedFields', async () => {
    const { body } = await server().api.post(widgetPath(ns), widget('managed'), { query: { fieldManager: 'me' } });
    expect(body.metadata.managedFields).toEqual([
      {
        manager: 'me',
        operation: 'Update',
        apiVersion: 'example.org/v1',
        time: expect.any(String) as unknown,
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:spec': { '.': {}, 'f:color': {}, 'f:size': {} } },
      },
    ]);
  });

  it('names the manager after the user agent when none is given', async () => {
    const { body } = await server().api.post(widgetPath(ns), widget('agent'), {
      headers: { 'user-agent': 'my-tool/1.2 (linux)' },
    });
    expect(body.metadata.managedFields?.[0]?.manager).toBe('my-tool');
  });

  it('makes a name from generateName', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), {
      ...widget(''),
      metadata: { generateName: 'made-' },
    });
    expect(code).toBe(201);
    expect(body.metadata.name).toMatch(/^made-[a-z0-9]{5}$/);
  });

  it('refuses an object without any name', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), { ...widget(''), metadata: {} });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.details?.causes?.[0]).toMatchObject({
      field: 'metadata.name',
      reason: 'FieldValueRequired',
      message: 'Required value: name or generateName is required',
    });
  });

  it('refuses a name that is taken with 409 AlreadyExists', async () => {
    await server().api.post(widgetPath(ns), widget('taken'));
    const { code, body } = await server().api.post(widgetPath(ns), widget('taken'));
    expect(code).toBe(409);
    expect(body).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'AlreadyExists',
      message: 'widgets.example.org "taken" already exists',
      details: { name: 'taken', group: 'example.org', kind: 'widgets' },
      code: 409,
    });
  });

  it('refuses to create in a namespace that is not there', async () => {
    const { code, body } = await server().api.post(widgetPath('nowhere'), widget('lost'));
    expect(code).toBe(404);
    expect(body).toMatchObject({
      reason: 'NotFound',
      message: 'namespaces "nowhere" not found',
      details: { name: 'nowhere', kind: 'namespaces' },
    });
  });

  it('refuses a namespace in the body that contradicts the URL', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('elsewhere', {}, { namespace: 'default' }));
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  });

  it('refuses another version than that of the URL', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), {
      ...widget('version'),
      apiVersion: 'example.org/v2',
    });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain(
      'the API version in the data (example.org/v2) does not match the expected API version (example.org/v1)',
    );
  });

  it('refuses another kind than that of the URL', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), { ...widget('kind'), kind: 'Gadget' });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toBe('Gadget.example.org "kind" is invalid: kind: Invalid value: "Gadget": must be Widget');
    const secret = await server().api.post(`/api/v1/namespaces/${ns}/secrets`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x' },
    });
    expect([secret.code, secret.body.reason]).toEqual([400, 'BadRequest']);
  });

  it('refuses an object without kind', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), {
      apiVersion: 'example.org/v1',
      metadata: { name: 'x' },
    });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain("Object 'Kind' is missing");
  });

  it('refuses a resourceVersion', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('rv', {}, { resourceVersion: '5' }));
    expect(code).toBe(500);
    expect(body.message).toBe('resourceVersion should not be set on objects to be created');
  });

  it('ignores uid, generation and times that the client chose', async () => {
    const metadata = {
      uid: 'mine',
      generation: 7,
      creationTimestamp: '2001-01-01T00:00:00Z',
      deletionTimestamp: '2001-01-01T00:00:00Z',
    };
    const { body } = await server().api.post(widgetPath(ns), widget('chosen', {}, metadata));
    expect(body.metadata.uid).not.toBe('mine');
    expect(body.metadata.generation).toBe(1);
    expect(body.metadata.creationTimestamp).not.toContain('2001');
    expect(body.metadata.deletionTimestamp).toBeUndefined();
  });

  it('drops the status where that is a subresource', async () => {
    const { body } = await server().api.post(widgetPath(ns), { ...widget('status'), status: { phase: 'Running' } });
    expect(body['status']).toBeUndefined();
  });

  it('fills in defaults', async () => {
    const { body } = await server().api.post(widgetPath(ns), widget('defaults', { ports: [{ name: 'http' }] }));
    expect(body.spec).toEqual({ color: 'blue', ports: [{ name: 'http', protocol: 'TCP' }] });
  });

  it('prunes fields that the schema does not know', async () => {
    const { body } = await server().api.post(widgetPath(ns), {
      ...widget('pruned', { size: 'small', unknown: 1, granular: { c: 1 } }),
      extra: true,
    });
    expect(body.spec).toEqual({ size: 'small', color: 'blue', granular: {} });
    expect(body['extra']).toBeUndefined();
  });

  it.skipIf(kind.minor < 27)('warns about unknown fields by default (since 1.27)', async () => {
    const reply = await server().api.post(widgetPath(ns), widget('warned', { unknown: 1, granular: { c: 1 } }));
    expect(reply.code).toBe(201);
    expect([reply.headers['warning']].flat().join()).toContain('299 - "unknown field \\"spec.granular.c\\""');
    expect([reply.headers['warning']].flat().join()).toContain('299 - "unknown field \\"spec.unknown\\""');
  });

  it.skipIf(kind.minor < 27)('refuses unknown fields under fieldValidation=Strict (since 1.27)', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('strict', { unknown: 1 }), {
      query: { fieldValidation: 'Strict' },
    });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toBe(
      'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.unknown"',
    );
  });

  it.skipIf(kind.minor < 27)('says nothing of unknown fields under fieldValidation=Ignore (since 1.27)', async () => {
    const reply = await server().api.post(widgetPath(ns), widget('ignored', { unknown: 1 }), {
      query: { fieldValidation: 'Ignore' },
    });
    expect(reply.code).toBe(201);
    expect(reply.headers['warning']).toBeUndefined();
  });

  it('keeps what is free-form as it came, nulls and empty values included', async () => {
    const free = { nested: { list: [[1, 'a'], []], empty: {}, text: '', 'dotted.key/x': 1 }, nothing: null };
    const { body } = await server().api.post(widgetPath(ns), widget('free', { free }));
    expect(body.spec['free']).toEqual(free);
  });

  it('keeps every digit of 64-bit integers', async () => {
    const spec = '{"big":9223372036854775807,"free":{"low":-9223372036854775808,"odd":9007199254740993}}';
    const text = `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"digits"},"spec":${spec}}`;
    const reply = await server().api.post(widgetPath(ns), text);
    expect(reply.code).toBe(201);
    for (const digits of ['9223372036854775807', '-9223372036854775808', '9007199254740993'])
      expect(reply.text).toContain(`:${digits}`);
    const read = await server().api.get(widgetPath(ns, 'digits'));
    expect(read.text).toContain('"odd":9007199254740993');
  });

  it('prints a float as the server does', async () => {
    const text =
      '{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"float"},"spec":{"ratio":100.0,"free":{"small":0.1}}}';
    const reply = await server().api.post(widgetPath(ns), text);
    expect(reply.text).toContain('"ratio":100');
    expect(reply.text).not.toContain('100.0');
    expect(reply.text).toContain('"small":0.1');
  });

  it('keeps text of every script', async () => {
    const { body } = await server().api.post(
      widgetPath(ns),
      widget('text', { free: { text: 'ä € 😀 \u2028 "quoted" \\' } }),
    );
    expect(body.spec['free']).toEqual({ text: 'ä € 😀 \u2028 "quoted" \\' });
  });

  it('reads YAML', async () => {
    const yaml =
      'apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: yaml\nspec:\n  size: large\n  free: {on: 9007199254740993, text: "yes"}\n';
    const reply = await server().api.post(widgetPath(ns), yaml, { headers: { 'content-type': 'application/yaml' } });
    expect(reply.code).toBe(201);
    expect(reply.text).toContain('9007199254740993');
    expect(reply.body.spec['size']).toBe('large');
  });

  it('stores nothing in a dry run, and shows what it would', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('dry'), { query: { dryRun: 'All' } });
    expect(code).toBe(201);
    expect(body.spec['color']).toBe('blue');
    expect((await server().api.get(widgetPath(ns, 'dry'))).code).toBe(404);
  });

  it('validates in a dry run, too', async () => {
    await server().api.post(widgetPath(ns), widget('there'));
    expect((await server().api.post(widgetPath(ns), widget('there'), { query: { dryRun: 'All' } })).code).toBe(409);
    expect(
      (await server().api.post(widgetPath(ns), widget('bad', { size: 'huge' }), { query: { dryRun: 'All' } })).code,
    ).toBe(422);
  });

  it('refuses a dryRun that it does not know', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('dry2'), { query: { dryRun: 'Some' } });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
  });

  it('answers in YAML when asked', async () => {
    const reply = await server().api.post(widgetPath(ns), widget('as-yaml'), {
      headers: { accept: 'application/yaml' },
    });
    expect(reply.headers['content-type']).toContain('application/yaml');
    expect(reply.text).toContain('kind: Widget');
  });

  it('refuses to create at the path of an object', async () => {
    const { code, body } = await server().api.post(`/api/v1/namespaces/${ns}/secrets/x`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'x' },
    });
    expect([code, body.reason]).toEqual([405, 'MethodNotAllowed']);
    expect(body.message).toBe('the server does not allow this method on the requested resource');
  });
});
