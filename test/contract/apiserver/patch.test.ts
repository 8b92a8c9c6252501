import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';
import type { Body } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const configMaps = pathOf('', 'v1', 'configmaps');

onEveryServer('patch', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const made = async (spec: object = { size: 'small' }, metadata: object = {}): Promise<Body> =>
    (await server().api.post(widgetPath(ns), widget(unique('w'), spec, metadata))).body;
  const pathTo = (object: Body, subresource = ''): string => `${widgetPath(ns, object.metadata.name)}${subresource}`;

  it('merges a merge patch: sets, removes by null, replaces lists', async () => {
    const object = await made({ size: 'small', replicas: 2, steps: ['a', 'b'], granular: { a: '1' } });
    const { code, body } = await server().api.patch(pathTo(object), 'merge', {
      spec: { replicas: null, steps: ['c'], granular: { b: '2' } },
    });
    expect(code).toBe(200);
    expect(body.spec).toEqual({ size: 'small', color: 'blue', steps: ['c'], granular: { a: '1', b: '2' } });
    expect(body.metadata.generation).toBe(2);
  });

  it('brings a removed field with a default back', async () => {
    const object = await made({ color: 'red' });
    const { body } = await server().api.patch(pathTo(object), 'merge', { spec: { color: null } });
    expect(body.spec['color']).toBe('blue');
  });

  it('keeps the digits of what a merge patch does not touch', async () => {
    const name = unique('w');
    await server().api.post(
      widgetPath(ns),
      `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"${name}"},"spec":{"big":9007199254740993}}`,
    );
    const reply = await server().api.patch(widgetPath(ns, name), 'merge', { metadata: { labels: { a: 'b' } } });
    expect(reply.text).toContain('9007199254740993');
    const json = await server().api.patch(
      widgetPath(ns, name),
      'json',
      '[{"op":"add","path":"/spec/free","value":{"n":9007199254740995}}]',
    );
    expect(json.text).toContain('9007199254740993');
    expect(json.text).toContain('9007199254740995');
  });

  it('ignores a wrong uid in a merge patch of the status', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object, '/status'), 'merge', {
      metadata: { uid: 'other' },
      status: { a: 1 },
    });
    expect(code).toBe(200);
    expect(body.metadata.uid).toBe(object.metadata.uid);
  });

  it('checks a resourceVersion in a merge patch', async () => {
    const object = await made();
    await server().api.patch(pathTo(object), 'merge', { spec: { size: 'large' } });
    const { code, body } = await server().api.patch(pathTo(object), 'merge', {
      metadata: { resourceVersion: object.metadata.resourceVersion },
      spec: { size: 'xlarge' },
    });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
  });

  it('applies a JSON patch: add, replace, remove, move, copy, test', async () => {
    const object = await made({ size: 'small', steps: ['a', 'c'], replicas: 1 });
    const { code, body } = await server().api.patch(pathTo(object), 'json', [
      { op: 'test', path: '/spec/size', value: 'small' },
      { op: 'replace', path: '/spec/size', value: 'large' },
      { op: 'add', path: '/spec/steps/1', value: 'b' },
      { op: 'add', path: '/spec/steps/-', value: 'd' },
      { op: 'remove', path: '/spec/replicas' },
      { op: 'copy', from: '/spec/size', path: '/spec/note' },
      { op: 'add', path: '/metadata/annotations', value: {} },
      { op: 'add', path: '/metadata/annotations/example.org~1a', value: 'x' },
    ]);
    expect(code).toBe(200);
    expect(body.spec).toEqual({ size: 'large', color: 'blue', steps: ['a', 'b', 'c', 'd'], note: 'large' });
    expect(body.metadata.annotations).toEqual({ 'example.org/a': 'x' });
  });

  it.each([
    ['a test that fails', { op: 'test', path: '/spec/size', value: 'large' }],
    ['a test of a uid', { op: 'test', path: '/metadata/uid', value: 'other' }],
    ['a test of a resourceVersion', { op: 'test', path: '/metadata/resourceVersion', value: '1' }],
    ['removing what is not there', { op: 'remove', path: '/spec/replicas' }],
    ['adding below what is not there', { op: 'add', path: '/spec/free/a/b', value: 1 }],
    ['replacing an item that is not there', { op: 'replace', path: '/spec/steps/7', value: 'a' }],
  ])('refuses a JSON patch with %s as 422 Invalid', async (_title, step) => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'json', [
      step,
      { op: 'add', path: '/metadata/labels', value: { patched: 'yes' } },
    ]);
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toBe('the server rejected our request due to an error in our request');
    expect((await server().api.get(pathTo(object))).body).toEqual(object);
  });

  it('adds what a JSON patch replaces and is not there', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'json', [
      { op: 'replace', path: '/spec/replicas', value: 1 },
    ]);
    expect([code, body.spec['replicas']]).toEqual([200, 1]);
  });

  it('takes a missing path for null in a test', async () => {
    const object = await made();
    const { code } = await server().api.patch(pathTo(object), 'json', [
      { op: 'test', path: '/spec/nowhere', value: null },
    ]);
    expect(code).toBe(200);
  });

  it('sets the whole status by JSON patch with add, guarded by the uid', async () => {
    const object = await made();
    const set = (uid: string, status: object) =>
      server().api.patch(pathTo(object, '/status'), 'json', [
        { op: 'test', path: '/metadata/uid', value: uid },
        { op: 'add', path: '/status', value: status },
      ]);
    expect((await set(object.metadata.uid, { old: 1, gone: true })).code).toBe(200);
    const { body } = await set(object.metadata.uid, { old: 2, nothing: null });
    expect(body['status']).toEqual({ old: 2, nothing: null });
    expect((await set('other', { old: 3 })).code).toBe(422);
  });

  it('changes no spec through the status subresource', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object, '/status'), 'merge', {
      spec: { size: 'large' },
      status: { a: 1 },
    });
    expect([code, body.spec['size'], body['status']]).toEqual([200, 'small', { a: 1 }]);
  });

  it('answers 404 for an object that is not there', async () => {
    const { code, body } = await server().api.patch(widgetPath(ns, 'none'), 'merge', {});
    expect([code, body.reason]).toEqual([404, 'NotFound']);
  });

  it('refuses to rename', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'merge', { metadata: { name: 'other' } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toBe(
      `the name of the object (other) does not match the name on the URL (${object.metadata.name})`,
    );
  });

  it('refuses a malformed JSON patch', async () => {
    const object = await made();
    for (const body of ['{"op":"add"}', '[', 'null and more']) {
      const reply = await server().api.patch(pathTo(object), 'json', body);
      expect([reply.code, reply.body.reason]).toEqual([400, 'BadRequest']);
    }
  });

  it('refuses a malformed merge patch', async () => {
    const object = await made();
    for (const body of ['[1]', '{', '"text"']) {
      const reply = await server().api.patch(pathTo(object), 'merge', body);
      // 1.20 words some of these as an internal error or as the object's fault.
      const codes = kind.minor < 22 ? [400, 422, 500] : [400];
      expect(codes).toContain(reply.code);
      expect(reply.body.status).toBe('Failure');
    }
  });

  it('refuses a strategic merge patch of a custom resource with 415', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'strategic', { spec: { size: 'large' } });
    expect([code, body.reason]).toEqual([415, 'UnsupportedMediaType']);
    expect(body.message).toContain(
      'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    );
  });

  it('refuses any other content type with 415', async () => {
    const object = await made();
    const reply = await server().api.send('PATCH', pathTo(object), '{}', {
      headers: { 'content-type': 'application/json' },
    });
    expect([reply.code, reply.body.reason]).toEqual([415, 'UnsupportedMediaType']);
  });

  it('merges a strategic merge patch of a built-in kind by its keys', async () => {
    const name = unique('cm');
    const owners = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'uid-a' }];
    await server().api.post(configMaps(ns), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, finalizers: ['example.org/a'], labels: { a: '1', b: '2' } },
      data: { x: '1', y: '2' },
    });
    const { code, body } = await server().api.patch(configMaps(ns, name), 'strategic', {
      metadata: { finalizers: ['example.org/b'], labels: { b: null, c: '3' } },
      data: { x: null, z: '3' },
    });
    expect(code).toBe(200);
    expect(body['data']).toEqual({ y: '2', z: '3' });
    expect(body.metadata.labels).toEqual({ a: '1', c: '3' });
    expect([...(body.metadata.finalizers ?? [])].sort()).toEqual(['example.org/a', 'example.org/b']);
    const removed = await server().api.patch(configMaps(ns, name), 'strategic', {
      metadata: { '$deleteFromPrimitiveList/finalizers': ['example.org/a'] },
      data: { $patch: 'replace', only: '1' },
    });
    expect(removed.body.metadata.finalizers).toEqual(['example.org/b']);
    expect(removed.body['data']).toEqual({ only: '1' });
    expect(owners).toHaveLength(1);
  });

  it('refuses force for a patch that is no apply', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'merge', {}, { query: { force: 'true' } });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
  });

  it('validates what a patch makes', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(pathTo(object), 'merge', { spec: { size: 'huge' } });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.details?.causes?.[0]?.field).toBe('spec.size');
  });

  it.skipIf(kind.minor < 27)('refuses unknown fields under fieldValidation=Strict (since 1.27)', async () => {
    const object = await made();
    const { code, body } = await server().api.patch(
      pathTo(object),
      'merge',
      { spec: { unknown: 1 } },
      { query: { fieldValidation: 'Strict' } },
    );
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('strict decoding error: unknown field "spec.unknown"');
  });

  it('stores nothing in a dry run', async () => {
    const object = await made();
    const { body } = await server().api.patch(
      pathTo(object),
      'merge',
      { spec: { size: 'large' } },
      { query: { dryRun: 'All' } },
    );
    expect(body.spec['size']).toBe('large');
    expect((await server().api.get(pathTo(object))).body).toEqual(object);
  });

  it('turns an Update entry of managedFields into an Apply entry by JSON patch', async () => {
    const name = unique('w');
    const object = (
      await server().api.post(widgetPath(ns), widget(name, { size: 'small', replicas: 1 }), {
        query: { fieldManager: 'me' },
      })
    ).body;
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
      { op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Apply' },
    ];
    const turned = await server().api.patch(widgetPath(ns, name), 'json', steps, { query: { fieldManager: 'me' } });
    expect(turned.code).toBe(200);
    expect(turned.body.metadata.managedFields).toMatchObject([{ manager: 'me', operation: 'Apply' }]);
    const applied = await server().api.apply(widgetPath(ns, name), widget(name, { size: 'small' }), 'me');
    expect(applied.body.spec).toEqual({ size: 'small', color: 'blue' });
  });

  it('ignores managedFields that make no sense', async () => {
    const object = await made();
    const { code } = await server().api.patch(pathTo(object), 'json', [
      { op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Guess' },
    ]);
    // 1.20 refuses them.
    expect(code).toBe(kind.minor < 22 ? 422 : 200);
    const { body: stored } = await server().api.get(pathTo(object));
    expect(stored.metadata.managedFields?.[0]?.operation).toBe('Update');
  });
});
