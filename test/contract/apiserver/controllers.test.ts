import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedKind } from '../../support/apiserver/kinds.ts';
import {
  installCrd,
  newNamespace,
  pathOf,
  startServer,
  unique,
  until,
  type TestServer,
} from '../../support/apiserver/servers.ts';
import type { Body } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const configMaps = pathOf('', 'v1', 'configmaps');

// A real kube-apiserver alone has no controller manager: there nobody collects garbage and no namespace ever ends.

describe(`what a controller manager does, on the embedded server only`, () => {
  let server: TestServer;
  let ns = '';
  beforeAll(async () => {
    server = await startServer(embeddedKind);
    await installCrd(server, widgetCrd());
    ns = await newNamespace(server);
  });
  afterAll(async () => {
    await server.api.close();
    await server.stop();
  });

  const owner = async (metadata: object = {}): Promise<Body> =>
    (await server.api.post(widgetPath(ns), widget(unique('owner'), {}, metadata))).body;
  const dependent = async (of: Body[], more: object = {}): Promise<string> => {
    const ownerReferences = of.map(({ metadata }) => ({
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      name: metadata.name,
      uid: metadata.uid,
      ...more,
    }));
    const { body } = await server.api.post(configMaps(ns), {
      metadata: { name: unique('dependent'), ownerReferences },
    });
    return configMaps(ns, body.metadata.name);
  };
  const gone = (path: string): Promise<boolean> => until(async () => (await server.api.get(path)).code === 404);

  it('collects dependents of an owner that is gone', async () => {
    const of = await owner();
    const path = await dependent([of]);
    await server.api.delete(widgetPath(ns, of.metadata.name));
    await gone(path);
  });

  it('keeps a dependent while one owner is left', async () => {
    const [one, two] = [await owner(), await owner()];
    const path = await dependent([one, two]);
    await server.api.delete(widgetPath(ns, one.metadata.name));
    const other = await dependent([one]);
    await gone(other);
    expect((await server.api.get(path)).code).toBe(200);
    await server.api.delete(widgetPath(ns, two.metadata.name));
    await gone(path);
  });

  it('collects an object whose owner was never there', async () => {
    const of = await owner();
    await server.api.delete(widgetPath(ns, of.metadata.name));
    await gone(await dependent([of]));
  });

  it('does not take an object of the same name for the owner', async () => {
    const of = await owner();
    await server.api.delete(widgetPath(ns, of.metadata.name));
    await server.api.post(widgetPath(ns), widget(of.metadata.name));
    await gone(await dependent([of]));
  });

  it('leaves dependents behind for propagationPolicy=Orphan', async () => {
    const of = await owner();
    const path = await dependent([of]);
    await server.api.delete(widgetPath(ns, of.metadata.name), { propagationPolicy: 'Orphan' });
    await gone(widgetPath(ns, of.metadata.name));
    const { body } = await server.api.get(path);
    expect(body.metadata.ownerReferences).toBeUndefined();
  });

  it('waits for dependents for propagationPolicy=Foreground', async () => {
    const of = await owner();
    const path = await dependent([of], { blockOwnerDeletion: true });
    await server.api.patch(path, 'merge', { metadata: { finalizers: ['example.org/hold'] } });
    await server.api.delete(widgetPath(ns, of.metadata.name), { propagationPolicy: 'Foreground' });
    await until(async () => (await server.api.get(path)).body.metadata.deletionTimestamp !== undefined);
    expect((await server.api.get(widgetPath(ns, of.metadata.name))).body.metadata.finalizers).toEqual([
      'foregroundDeletion',
    ]);
    await server.api.patch(path, 'merge', { metadata: { finalizers: null } });
    await gone(widgetPath(ns, of.metadata.name));
  });

  it('collects a chain', async () => {
    const of = await owner();
    const ownerReferences = [
      { apiVersion: 'example.org/v1', kind: 'Widget', name: of.metadata.name, uid: of.metadata.uid },
    ];
    const middle = await owner({ ownerReferences });
    const path = await dependent([middle]);
    await server.api.delete(widgetPath(ns, of.metadata.name));
    await gone(path);
  });

  it('empties a namespace and lets it go', async () => {
    const space = await newNamespace(server);
    await server.api.post(widgetPath(space), widget('a'));
    await server.api.post(configMaps(space), { metadata: { name: 'b' } });
    await server.api.delete(`/api/v1/namespaces/${space}`);
    await gone(`/api/v1/namespaces/${space}`);
    expect((await server.api.get(widgetPath(space, 'a'))).code).toBe(404);
    expect((await server.api.post('/api/v1/namespaces', { metadata: { name: space } })).code).toBe(201);
  });

  it('waits with a namespace for what finalizers hold', async () => {
    const space = await newNamespace(server);
    await server.api.post(widgetPath(space), widget('a', {}, { finalizers: ['example.org/hold'] }));
    await server.api.delete(`/api/v1/namespaces/${space}`);
    await until(
      async () => (await server.api.get(widgetPath(space, 'a'))).body.metadata.deletionTimestamp !== undefined,
    );
    expect((await server.api.get(`/api/v1/namespaces/${space}`)).body.status['phase']).toBe('Terminating');
    await server.api.patch(widgetPath(space, 'a'), 'merge', { metadata: { finalizers: null } });
    await gone(`/api/v1/namespaces/${space}`);
  });

  it('shows watches how a namespace ends', async () => {
    const space = await newNamespace(server);
    const watch = await server.api.watch('/api/v1/namespaces', {
      fieldSelector: `metadata.name=${space}`,
      resourceVersion: '0',
    });
    await server.api.delete(`/api/v1/namespaces/${space}`);
    const event = await watch.until(({ type }) => type === 'DELETED');
    watch.close();
    expect(event.object.metadata.name).toBe(space);
  });
});
