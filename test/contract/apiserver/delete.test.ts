import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';
import type { Body } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const secrets = pathOf('', 'v1', 'secrets');
const HOLD = 'example.org/hold';

onEveryServer('delete', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const made = async (metadata: object = {}): Promise<Body> =>
    (await server().api.post(widgetPath(ns), widget(unique('w'), { size: 'small' }, metadata))).body;
  const pathTo = (object: Body): string => widgetPath(ns, object.metadata.name);
  const gone = async (object: Body): Promise<boolean> => (await server().api.get(pathTo(object))).code === 404;

  it('answers a Status that names what is gone', async () => {
    const object = await made();
    const { code, body } = await server().api.delete(pathTo(object));
    expect(code).toBe(200);
    expect(body).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Success',
      details: { name: object.metadata.name, group: 'example.org', kind: 'widgets', uid: object.metadata.uid },
    });
    expect(await gone(object)).toBe(true);
  });

  it('answers 404 for what is not there', async () => {
    const { code, body } = await server().api.delete(widgetPath(ns, 'none'));
    expect([code, body.reason, body.details?.name]).toEqual([404, 'NotFound', 'none']);
  });

  it('marks an object that finalizers hold, and answers it', async () => {
    const object = await made({ finalizers: [HOLD] });
    const { code, body } = await server().api.delete(pathTo(object));
    expect(code).toBe(200);
    expect(body).toMatchObject({
      kind: 'Widget',
      metadata: { deletionGracePeriodSeconds: 0, finalizers: [HOLD], generation: 2 },
    });
    expect(body.metadata.deletionTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  it('changes nothing when an object is deleted twice', async () => {
    const object = await made({ finalizers: [HOLD] });
    const first = (await server().api.delete(pathTo(object))).body;
    const second = (await server().api.delete(pathTo(object))).body;
    expect(second.metadata).toEqual(first.metadata);
  });

  it('lets an object go with its last finalizer', async () => {
    const object = await made({ finalizers: [HOLD] });
    await server().api.delete(pathTo(object));
    const released = await server().api.patch(pathTo(object), 'merge', { metadata: { finalizers: null } });
    expect([released.code, released.body.metadata.name]).toEqual([200, object.metadata.name]);
    expect(await gone(object)).toBe(true);
  });

  it('refuses a wrong uid with 409', async () => {
    const object = await made();
    const { code, body } = await server().api.delete(pathTo(object), { preconditions: { uid: 'other' } });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toContain(
      `the UID in the precondition (other) does not match the UID in record (${object.metadata.uid}). The object might have been deleted and then recreated`,
    );
    expect(await gone(object)).toBe(false);
  });

  it('refuses an old resourceVersion with 409', async () => {
    const object = await made();
    await server().api.patch(pathTo(object), 'merge', { spec: { size: 'large' } });
    const { code, body } = await server().api.delete(pathTo(object), {
      preconditions: { resourceVersion: object.metadata.resourceVersion },
    });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toContain(
      `the ResourceVersion in the precondition (${object.metadata.resourceVersion}) does not match the ResourceVersion in record`,
    );
    expect(await gone(object)).toBe(false);
  });

  it('deletes under right preconditions', async () => {
    const object = await made();
    const { uid, resourceVersion } = object.metadata;
    const { code } = await server().api.delete(pathTo(object), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid, resourceVersion },
    });
    expect(code).toBe(200);
    expect(await gone(object)).toBe(true);
  });

  it('checks preconditions of an object that finalizers hold, too', async () => {
    const object = await made({ finalizers: [HOLD] });
    const { code } = await server().api.delete(pathTo(object), { preconditions: { resourceVersion: '1' } });
    expect(code).toBe(409);
    expect((await server().api.get(pathTo(object))).body.metadata.deletionTimestamp).toBeUndefined();
  });

  it('deletes nothing in a dry run', async () => {
    const object = await made();
    expect((await server().api.delete(pathTo(object), undefined, { query: { dryRun: 'All' } })).code).toBe(200);
    expect((await server().api.delete(pathTo(object), { dryRun: ['All'] })).code).toBe(200);
    expect(await gone(object)).toBe(false);
  });

  it('refuses a propagation policy that it does not know', async () => {
    const object = await made();
    const { code, body } = await server().api.delete(pathTo(object), { propagationPolicy: 'Sideways' });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
  });

  it('refuses a body that is no DeleteOptions', async () => {
    const object = await made();
    const { code } = await server().api.delete(pathTo(object), '{');
    // 1.20 calls it an internal error.
    expect(code).toBe(kind.minor < 22 ? 500 : 400);
    expect(await gone(object)).toBe(false);
  });

  it('deletes a collection by selector and answers what it deleted', async () => {
    const names = [unique('w'), unique('w')];
    for (const name of names) await server().api.post(widgetPath(ns), widget(name, {}, { labels: { batch: 'one' } }));
    const kept = await made({ labels: { batch: 'two' } });
    const { code, body } = await server().api.delete(widgetPath(ns), undefined, {
      query: { labelSelector: 'batch=one' },
    });
    expect(code).toBe(200);
    expect(body.kind).toBe('WidgetList');
    expect(body.items.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(await gone(kept)).toBe(false);
    expect((await server().api.get(widgetPath(ns), { query: { labelSelector: 'batch=one' } })).body.items).toEqual([]);
  });

  it('deletes a Secret with a Status', async () => {
    const name = unique('secret');
    await server().api.post(secrets(ns), { metadata: { name } });
    const { body } = await server().api.delete(secrets(ns, name));
    expect(body).toMatchObject({ kind: 'Status', status: 'Success', details: { name, kind: 'secrets' } });
  });

  it('keeps default, kube-system and kube-public', async () => {
    for (const name of ['default', 'kube-system', 'kube-public']) {
      const { code, body } = await server().api.delete(`/api/v1/namespaces/${name}`);
      expect([code, body.reason, body.message]).toEqual([
        403,
        'Forbidden',
        `namespaces "${name}" is forbidden: this namespace may not be deleted`,
      ]);
    }
  });

  it('adds the orphan finalizer for propagationPolicy=Orphan where something waits', async () => {
    const object = await made({ finalizers: [HOLD] });
    const { body } = await server().api.delete(pathTo(object), { propagationPolicy: 'Orphan' });
    expect(body.metadata.finalizers).toContain('orphan');
  });

  it('adds the foregroundDeletion finalizer for propagationPolicy=Foreground', async () => {
    const object = await made({ finalizers: [HOLD] });
    const { body } = await server().api.delete(pathTo(object), { propagationPolicy: 'Foreground' });
    expect(body.metadata.finalizers).toContain('foregroundDeletion');
  });
});
