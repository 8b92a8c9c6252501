import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';
import type { Body } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const secrets = pathOf('', 'v1', 'secrets');

onEveryServer('update', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    await installCrd(server(), widgetCrd({ plural: 'plains', kind: 'Plain', status: false }));
    ns = await newNamespace(server());
  });

  const made = async (spec: object = { size: 'small' }, metadata: object = {}): Promise<Body> =>
    (await server().api.post(widgetPath(ns), widget(unique('w'), spec, metadata))).body;
  const pathTo = (object: Body, subresource = ''): string => `${widgetPath(ns, object.metadata.name)}${subresource}`;

  it('replaces an object and counts the generation', async () => {
    const object = await made();
    const { code, body } = await server().api.put(pathTo(object), { ...object, spec: { size: 'large' } });
    expect(code).toBe(200);
    expect(body.spec).toEqual({ size: 'large', color: 'blue' });
    expect(body.metadata.generation).toBe(2);
    expect(BigInt(body.metadata.resourceVersion)).toBeGreaterThan(BigInt(object.metadata.resourceVersion));
  });

  it('leaves the generation alone when only metadata changes', async () => {
    const object = await made();
    const { body } = await server().api.put(pathTo(object), {
      ...object,
      metadata: { ...object.metadata, labels: { a: 'b' } },
    });
    expect(body.metadata).toMatchObject({ generation: 1, labels: { a: 'b' } });
  });

  it('refuses an old resourceVersion with 409 Conflict', async () => {
    const object = await made();
    await server().api.put(pathTo(object), { ...object, spec: { size: 'large' } });
    const { code, body } = await server().api.put(pathTo(object), { ...object, spec: { size: 'xlarge' } });
    expect(code).toBe(409);
    expect(body).toMatchObject({
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on widgets.example.org "${object.metadata.name}": the object has been modified; please apply your changes to the latest version and try again`,
      details: { name: object.metadata.name, group: 'example.org', kind: 'widgets' },
    });
  });

  it('refuses a custom resource without resourceVersion', async () => {
    const object = await made();
    const { code, body } = await server().api.put(pathTo(object), widget(object.metadata.name, { size: 'large' }));
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('metadata.resourceVersion: Invalid value: ');
    expect(body.message).toContain('must be specified for an update');
  });

  it('replaces a Secret without resourceVersion', async () => {
    const name = unique('secret');
    await server().api.post(secrets(ns), { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { a: 'YQ==' } });
    const { code, body } = await server().api.put(secrets(ns, name), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      data: { b: 'Yg==' },
    });
    expect([code, body['data']]).toEqual([200, { b: 'Yg==' }]);
  });

  it('refuses another uid with 409 Conflict', async () => {
    const object = await made();
    const { code, body } = await server().api.put(pathTo(object), {
      ...object,
      metadata: { ...object.metadata, uid: 'other' },
    });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toContain(
      `Precondition failed: UID in precondition: other, UID in object meta: ${object.metadata.uid}`,
    );
  });

  it('answers 404 for an object that is not there', async () => {
    const { code, body } = await server().api.put(widgetPath(ns, 'none'), widget('none', {}, { resourceVersion: '1' }));
    expect([code, body.reason, body.details?.name]).toEqual([404, 'NotFound', 'none']);
  });

  it('refuses a name that differs from the URL', async () => {
    const object = await made();
    const { code, body } = await server().api.put(pathTo(object), {
      ...object,
      metadata: { ...object.metadata, name: 'other' },
    });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toBe(
      `the name of the object (other) does not match the name on the URL (${object.metadata.name})`,
    );
  });

  it('changes nothing, not even the resourceVersion, when nothing differs', async () => {
    const object = await made();
    const { body } = await server().api.put(pathTo(object), object);
    expect(body.metadata.resourceVersion).toBe(object.metadata.resourceVersion);
  });

  it('keeps creationTimestamp and deletionTimestamp whatever the client says', async () => {
    const object = await made();
    const { code, body } = await server().api.put(pathTo(object), {
      ...object,
      metadata: { ...object.metadata, creationTimestamp: '2001-01-01T00:00:00Z', generation: 99 },
    });
    expect(code).toBe(200);
    expect(body.metadata).toMatchObject({ creationTimestamp: object.metadata.creationTimestamp, generation: 1 });
  });

  it('ignores the status of the main resource where that is a subresource', async () => {
    const object = await made();
    await server().api.put(pathTo(object, '/status'), { ...object, status: { phase: 'Running' } });
    const current = (await server().api.get(pathTo(object))).body;
    const { body } = await server().api.put(pathTo(object), {
      ...current,
      spec: { size: 'large' },
      status: { phase: 'Faked' },
    });
    expect(body['status']).toEqual({ phase: 'Running' });
    expect(body.spec['size']).toBe('large');
  });

  it('changes nothing but the status through the status subresource', async () => {
    const object = await made({ size: 'small' }, { labels: { a: 'b' } });
    const wanted = {
      ...object,
      metadata: { ...object.metadata, labels: { a: 'c' }, finalizers: ['example.org/x'] },
      spec: { size: 'large' },
      status: { phase: 'Running' },
    };
    const { code, body } = await server().api.put(pathTo(object, '/status'), wanted);
    expect(code).toBe(200);
    expect(body).toMatchObject({
      spec: { size: 'small' },
      status: { phase: 'Running' },
      metadata: { generation: 1, labels: { a: 'b' } },
    });
    expect(body.metadata.finalizers).toBeUndefined();
  });

  it('reads the object at the status subresource', async () => {
    const object = await made();
    expect((await server().api.get(pathTo(object, '/status'))).body).toEqual(object);
  });

  it('refuses an old resourceVersion at the status subresource', async () => {
    const object = await made();
    await server().api.put(pathTo(object, '/status'), { ...object, status: { phase: 'A' } });
    const { code } = await server().api.put(pathTo(object, '/status'), { ...object, status: { phase: 'B' } });
    expect(code).toBe(409);
  });

  it('has no status subresource where the CRD has none, and writes status with the rest', async () => {
    const path = `/apis/example.org/v1/namespaces/${ns}/plains`;
    const { body } = await server().api.post(path, {
      apiVersion: 'example.org/v1',
      kind: 'Plain',
      metadata: { name: 'p' },
      status: { phase: 'New' },
    });
    expect(body['status']).toEqual({ phase: 'New' });
    expect((await server().api.get(`${path}/p/status`)).code).toBe(404);
    const next = await server().api.put(`${path}/p`, { ...body, status: { phase: 'Old' } });
    expect(next.body['status']).toEqual({ phase: 'Old' });
    expect(next.body.metadata.generation).toBe(2);
  });

  it('adds no finalizer to an object that is being deleted, and takes them away', async () => {
    const object = await made({}, { finalizers: ['example.org/a', 'example.org/b'] });
    const deleting = (await server().api.delete(pathTo(object))).body;
    const wanted = {
      ...deleting,
      metadata: { ...deleting.metadata, finalizers: ['example.org/a', 'example.org/b', 'example.org/c'] },
    };
    const refused = await server().api.put(pathTo(object), wanted);
    expect([refused.code, refused.body.reason]).toEqual([422, 'Invalid']);
    expect(refused.body.message).toContain('no new finalizers can be added if the object is being deleted');
    const one = await server().api.put(pathTo(object), {
      ...deleting,
      metadata: { ...deleting.metadata, finalizers: ['example.org/b'] },
    });
    expect(one.body.metadata.finalizers).toEqual(['example.org/b']);
    const none = await server().api.put(pathTo(object), {
      ...one.body,
      metadata: { ...one.body.metadata, finalizers: [] },
    });
    expect(none.code).toBe(200);
    expect((await server().api.get(pathTo(object))).code).toBe(404);
  });

  it('still changes the spec of an object that is being deleted', async () => {
    const object = await made({ size: 'small' }, { finalizers: ['example.org/a'] });
    const deleting = (await server().api.delete(pathTo(object))).body;
    const { code, body } = await server().api.put(pathTo(object), { ...deleting, spec: { size: 'large' } });
    expect([code, body.spec['size']]).toEqual([200, 'large']);
  });

  it('records both writers in managedFields', async () => {
    const name = unique('w');
    const object = (await server().api.post(widgetPath(ns), widget(name), { query: { fieldManager: 'maker' } })).body;
    const { body } = await server().api.put(
      widgetPath(ns, name),
      { ...object, spec: { ...object.spec, size: 'large', replicas: 1 } },
      { query: { fieldManager: 'changer' } },
    );
    const owners = Object.fromEntries(
      (body.metadata.managedFields ?? []).map(({ manager, fieldsV1 }) => [manager, fieldsV1]),
    );
    expect(owners).toEqual({
      maker: { 'f:spec': { '.': {}, 'f:color': {} } },
      changer: { 'f:spec': { 'f:size': {}, 'f:replicas': {} } },
    });
  });

  it('records a status writer with its subresource', async () => {
    const object = await made();
    const { body } = await server().api.put(
      pathTo(object, '/status'),
      { ...object, status: { phase: 'A' } },
      { query: { fieldManager: 'operator' } },
    );
    expect(body.metadata.managedFields?.find(({ manager }) => manager === 'operator')).toMatchObject({
      operation: 'Update',
      // 1.20 does not tell subresources apart.
      ...(kind.minor >= 22 && { subresource: 'status' }),
      fieldsV1: { 'f:status': { '.': {}, 'f:phase': {} } },
    });
  });

  it('keeps managedFields when a client sends none', async () => {
    const object = await made();
    const { managedFields, ...metadata } = object.metadata;
    const { body } = await server().api.put(pathTo(object), { ...object, metadata });
    expect(body.metadata.managedFields).toEqual(managedFields);
  });

  it('resets managedFields when a client sends one empty entry', async () => {
    const object = await made();
    const { body } = await server().api.put(pathTo(object), {
      ...object,
      metadata: { ...object.metadata, managedFields: [{}] },
    });
    expect(body.metadata.managedFields).toBeUndefined();
  });

  it('stores nothing in a dry run', async () => {
    const object = await made();
    const { body } = await server().api.put(
      pathTo(object),
      { ...object, spec: { size: 'large' } },
      { query: { dryRun: 'All' } },
    );
    expect(body.spec['size']).toBe('large');
    expect((await server().api.get(pathTo(object))).body).toEqual(object);
  });

  it('reads what the server would store in a dry run of the same object as no change', async () => {
    const object = await made();
    const { body } = await server().api.put(pathTo(object), object, { query: { dryRun: 'All' } });
    expect(body).toEqual(object);
  });
});
