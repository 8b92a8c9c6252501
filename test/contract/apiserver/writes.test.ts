import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';
import type { Body, Reply } from '../../support/apiserver/api.ts';
import { CRDS_PATH, widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const leases = pathOf('coordination.k8s.io', 'v1', 'leases');
const secrets = pathOf('', 'v1', 'secrets');
const MANAGER = 'kbind-konnector';
const CREATE = { fieldManager: MANAGER, fieldValidation: 'Strict' };
const HOLD = 'core.kbind.io/syncer';

/** design.md's table of writes, row by row, each with its guard failing. */
onEveryServer('writes of the product', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const made = async (metadata: object = {}): Promise<Body> =>
    (
      await server().api.post(widgetPath(ns), widget(unique('w'), { size: 'small', replicas: 1 }, metadata), {
        query: CREATE,
      })
    ).body;
  const pathTo = (object: Body, subresource = ''): string => `${widgetPath(ns, object.metadata.name)}${subresource}`;
  const touch = (object: Body): Promise<Reply> =>
    server().api.patch(pathTo(object), 'merge', { metadata: { annotations: { touched: unique('t') } } });
  const replaced = async (object: Body): Promise<Body> => {
    await server().api.delete(pathTo(object));
    return (await server().api.post(widgetPath(ns), widget(object.metadata.name), { query: CREATE })).body;
  };
  const current = async (object: Body): Promise<Body> => (await server().api.get(pathTo(object))).body;
  const forced = (
    object: Body,
    spec: object,
    { uid, resourceVersion }: { uid: string; resourceVersion: string },
  ): Promise<Reply> =>
    server().api.apply(pathTo(object), widget(object.metadata.name, spec, { uid, resourceVersion }), MANAGER, {
      force: 'true',
    });

  it('a new copy: POST meets an object of that name', async () => {
    const object = await made();
    const { code, body } = await server().api.post(widgetPath(ns), widget(object.metadata.name), { query: CREATE });
    expect([code, body.reason]).toEqual([409, 'AlreadyExists']);
    expect((await current(object)).metadata.uid).toBe(object.metadata.uid);
  });

  it('a new copy: the namespace is missing, is made, and then it works', async () => {
    const space = unique('missing');
    const first = await server().api.post(widgetPath(space), widget('copy'), { query: CREATE });
    expect([first.code, first.body.reason, first.body.details]).toEqual([
      404,
      'NotFound',
      { name: space, kind: 'namespaces' },
    ]);
    const namespace = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: space, labels: { 'core.kbind.io/managed': 'true' } },
    };
    expect((await server().api.post('/api/v1/namespaces', namespace)).code).toBe(201);
    expect((await server().api.post(widgetPath(space), widget('copy'), { query: CREATE })).code).toBe(201);
  });

  it.skipIf(kind.minor < 27)(
    'a new copy: a field that the schema does not know is refused, not dropped (since 1.27)',
    async () => {
      const { code, body } = await server().api.post(widgetPath(ns), widget(unique('w'), { unknown: 1 }), {
        query: CREATE,
      });
      expect([code, body.reason]).toEqual([400, 'BadRequest']);
      expect(body.message).toContain('unknown field "spec.unknown"');
    },
  );

  it('taking a copy back: DELETE by uid and resourceVersion meets a changed object', async () => {
    const object = await made();
    await touch(object);
    const { uid, resourceVersion } = object.metadata;
    const { code, body } = await server().api.delete(pathTo(object), { preconditions: { uid, resourceVersion } });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect((await current(object)).metadata.deletionTimestamp).toBeUndefined();
  });

  it('taking a copy back: DELETE by uid and resourceVersion meets another object of that name', async () => {
    const object = await made();
    await replaced(object);
    const { uid, resourceVersion } = object.metadata;
    expect((await server().api.delete(pathTo(object), { preconditions: { uid, resourceVersion } })).code).toBe(409);
    expect((await server().api.delete(pathTo(object), { preconditions: { uid } })).code).toBe(409);
    expect((await server().api.get(pathTo(object))).code).toBe(200);
  });

  it('an apply: the object was changed', async () => {
    const object = await made();
    await touch(object);
    expect((await forced(object, { size: 'large' }, object.metadata)).code).toBe(409);
    expect((await current(object)).spec['size']).toBe('small');
  });

  it('an apply: the object was replaced', async () => {
    const object = await made();
    const other = await replaced(object);
    expect((await forced(object, { size: 'large' }, object.metadata)).code).toBe(409);
    expect((await current(object)).metadata.resourceVersion).toBe(other.metadata.resourceVersion);
  });

  it('an apply: the object is gone, and is not made anew', async () => {
    const object = await made();
    await server().api.delete(pathTo(object));
    const { code } = await forced(object, { size: 'large' }, object.metadata);
    expect([404, 409]).toContain(code);
    expect((await server().api.get(pathTo(object))).code).toBe(404);
  });

  it('an apply: what the schema refuses is the object’s own refusal, 422', async () => {
    const object = await made();
    expect((await forced(object, { size: 'huge' }, object.metadata)).code).toBe(422);
  });

  it('an apply of a copy that is being deleted is possible, so that must be looked at before', async () => {
    const object = await made({ finalizers: [HOLD] });
    const deleting = (await server().api.delete(pathTo(object))).body;
    const { code, body } = await forced(object, { size: 'large' }, deleting.metadata);
    expect(code).toBe(200);
    expect(body.metadata.deletionTimestamp).toBe(deleting.metadata.deletionTimestamp);
  });

  it('the first apply after a POST: turning the entry of managedFields is refused once the object changed', async () => {
    const object = await made();
    await touch(object);
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
      {
        op: 'replace',
        path: '/metadata/managedFields',
        value: (object.metadata.managedFields ?? []).map((entry) => ({ ...entry, operation: 'Apply' })),
      },
    ];
    const { code, body } = await server().api.patch(pathTo(object), 'json', steps, {
      query: { fieldManager: MANAGER },
    });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect((await current(object)).metadata.managedFields?.every(({ operation }) => operation === 'Update')).toBe(true);
  });

  it('the first apply after a POST: without that step, fields that leave stay on the copy', async () => {
    const object = await made();
    const kept = await forced(object, { size: 'small' }, object.metadata);
    expect(kept.body.spec['replicas']).toBe(1);
  });

  it('the first apply after a POST: with that step, they go', async () => {
    const object = await made();
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
      {
        op: 'replace',
        path: '/metadata/managedFields',
        value: (object.metadata.managedFields ?? []).map((entry) => ({ ...entry, operation: 'Apply' })),
      },
    ];
    const turned = await server().api.patch(pathTo(object), 'json', steps, { query: { fieldManager: MANAGER } });
    expect(turned.code).toBe(200);
    const less = await forced(object, { size: 'small' }, turned.body.metadata);
    expect(less.body.spec['replicas']).toBeUndefined();
  });

  it('the status of a user’s instance: a JSON patch meets another uid', async () => {
    const object = await made();
    const other = await replaced(object);
    const steps = [
      { op: 'test', path: '/metadata/uid', value: object.metadata.uid },
      { op: 'add', path: '/status', value: { phase: 'Running' } },
    ];
    const { code, body } = await server().api.patch(pathTo(object, '/status'), 'json', steps);
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(await current(object)).toEqual(other);
  });

  it('the status of a user’s instance: a JSON patch replaces it whole, whatever the resourceVersion', async () => {
    const object = await made();
    await touch(object);
    const set = (status: object): Promise<Reply> =>
      server().api.patch(pathTo(object, '/status'), 'json', [
        { op: 'test', path: '/metadata/uid', value: object.metadata.uid },
        { op: 'add', path: '/status', value: status },
      ]);
    await set({ a: 1, gone: 1 });
    expect((await set({ a: 2, none: null })).body['status']).toEqual({ a: 2, none: null });
    expect((await current(object)).spec).toEqual(object.spec);
  });

  it('a finalizer, annotation or label: a JSON patch meets a changed object', async () => {
    const object = await made();
    await touch(object);
    const steps = [
      { op: 'test', path: '/metadata/uid', value: object.metadata.uid },
      { op: 'test', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
      { op: 'add', path: '/metadata/finalizers', value: [HOLD] },
    ];
    expect((await server().api.patch(pathTo(object), 'json', steps)).code).toBe(422);
    expect((await current(object)).metadata.finalizers).toBeUndefined();
  });

  it('a finalizer, annotation or label: a JSON patch under what was read works', async () => {
    const object = await made();
    const steps = [
      { op: 'test', path: '/metadata/uid', value: object.metadata.uid },
      { op: 'test', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
      { op: 'add', path: '/metadata/finalizers', value: [HOLD] },
    ];
    const { code, body } = await server().api.patch(pathTo(object), 'json', steps);
    expect([code, body.metadata.finalizers]).toEqual([200, [HOLD]]);
  });

  it('a consumer CRD: an update meets a changed one', async () => {
    const plural = 'guards';
    const crd = await installCrd(server(), widgetCrd({ plural, kind: 'Guard' }));
    await server().api.patch(`${CRDS_PATH}/${crd.metadata.name}`, 'merge', { metadata: { labels: { a: 'b' } } });
    const { code, body } = await server().api.put(`${CRDS_PATH}/${crd.metadata.name}`, crd);
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    const twice = await server().api.post(CRDS_PATH, widgetCrd({ plural, kind: 'Guard' }));
    expect([twice.code, twice.body.reason]).toEqual([409, 'AlreadyExists']);
  });

  it('a consumer CRD: a deletion is stopped by what was written meanwhile', async () => {
    const crd = await installCrd(server(), widgetCrd({ plural: 'newcomers', kind: 'Newcomer' }));
    await server().api.patch(`${CRDS_PATH}/${crd.metadata.name}`, 'merge', {
      metadata: { annotations: { 'core.kbind.io/bound-by': 'x' } },
    });
    const { uid, resourceVersion } = crd.metadata;
    expect(
      (await server().api.delete(`${CRDS_PATH}/${crd.metadata.name}`, { preconditions: { uid, resourceVersion } }))
        .code,
    ).toBe(409);
  });

  it('a Lease: an update meets a changed one', async () => {
    const lease = (
      await server().api.post(leases(ns), { metadata: { name: unique('lease') }, spec: { holderIdentity: 'a' } })
    ).body;
    const path = leases(ns, lease.metadata.name);
    await server().api.put(path, { ...lease, spec: { holderIdentity: 'b' } });
    expect((await server().api.put(path, { ...lease, spec: { holderIdentity: 'c' } })).code).toBe(409);
  });

  it('a related copy: an apply of a Secret meets a changed one', async () => {
    const made = (
      await server().api.post(secrets(ns), { metadata: { name: unique('s') }, data: { a: 'YQ==' } }, { query: CREATE })
    ).body;
    const { name, uid, resourceVersion } = made.metadata;
    await server().api.patch(secrets(ns, name), 'merge', { metadata: { labels: { a: 'b' } } });
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, uid, resourceVersion }, data: { a: 'Yg==' } };
    const { code } = await server().api.apply(secrets(ns, name), body, 'kbind-konnector-related', { force: 'true' });
    expect(code).toBe(409);
  });

  it('a dry run of the apply shows what admission would store, and stores nothing', async () => {
    const object = await made();
    const body = widget(object.metadata.name, { size: 'large' });
    const dry = await server().api.apply(pathTo(object), body, MANAGER, { force: 'true', dryRun: 'All' });
    expect(dry.body.spec['size']).toBe('large');
    expect(await current(object)).toEqual(object);
  });

  it('a request carries a timeout', async () => {
    const { code } = await server().api.post(widgetPath(ns), widget(unique('w')), {
      query: { ...CREATE, timeout: '3s' },
    });
    expect(code).toBe(201);
  });

  it('tells the time in every answer', async () => {
    const { headers } = await server().api.get(widgetPath(ns));
    expect(Number.isNaN(Date.parse(String(headers['date'])))).toBe(false);
  });
});
