import { afterEach, beforeAll, expect, it } from 'vitest';
import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  Watch,
  type KubernetesObject,
} from '@kubernetes/client-node';
import { installCrd, newNamespace, onEveryServer, until } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

interface Widget extends KubernetesObject {
  spec?: { size?: string };
}

onEveryServer('@kubernetes/client-node', (server) => {
  let ns = '';
  let config: KubeConfig;
  const cleanups: (() => void | Promise<void>)[] = [];
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
    config = new KubeConfig();
    config.loadFromString(server().kubeconfig);
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  it('creates, reads, replaces, patches, lists and deletes through KubernetesObjectApi', async () => {
    const objects = KubernetesObjectApi.makeApiClient(config);
    const header = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'objects', namespace: ns } };
    const made = await objects.create({ ...header, data: { a: '1' } } as KubernetesObject);
    expect(made.metadata?.uid).toBeTruthy();
    const read = await objects.read<KubernetesObject & { data?: object }>(header);
    expect(read.data).toEqual({ a: '1' });
    await objects.replace({ ...read, data: { a: '2' } } as KubernetesObject);
    await objects.patch({ ...header, data: { b: '3' } } as KubernetesObject);
    const list = await objects.list<KubernetesObject & { data?: object }>('v1', 'ConfigMap', ns);
    expect(list.items.find((item) => item.metadata?.name === 'objects')?.data).toEqual({ a: '2', b: '3' });
    await objects.delete(header);
    await expect(objects.read(header)).rejects.toMatchObject({ code: 404 });
  });

  it('finds custom resources by discovery through KubernetesObjectApi', async () => {
    const objects = KubernetesObjectApi.makeApiClient(config);
    const body = { ...widget('found'), metadata: { name: 'found', namespace: ns } };
    await objects.create(body);
    const read = await objects.read<Widget & { metadata: { name: string; namespace: string } }>({
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      metadata: { name: 'found', namespace: ns },
    });
    expect(read.spec?.size).toBe('small');
  });

  it('reads core and custom objects through the typed clients', async () => {
    const namespace = await config.makeApiClient(CoreV1Api).readNamespace({ name: 'kube-system' });
    expect(namespace.metadata?.uid).toBeTruthy();
    const list = (await config
      .makeApiClient(CustomObjectsApi)
      .listNamespacedCustomObject({ group: 'example.org', version: 'v1', namespace: ns, plural: 'widgets' })) as {
      items: unknown[];
    };
    expect(Array.isArray(list.items)).toBe(true);
  });

  it('watches', async () => {
    const seen: string[] = [];
    const controller = await new Watch(config).watch(
      widgetPath(ns),
      { resourceVersion: '0' },
      (phase, object: Widget) => void seen.push(`${phase} ${object.metadata?.name}`),
      () => undefined,
    );
    cleanups.push(() => controller.abort());
    await server().api.post(widgetPath(ns), widget('watched'));
    await server().api.delete(widgetPath(ns, 'watched'));
    await until(async () => seen.includes('DELETED watched'));
    expect(seen).toContain('ADDED watched');
  });

  it('keeps an informer up to date', async () => {
    const client = config.makeApiClient(CustomObjectsApi);
    const list = async () =>
      (await client.listNamespacedCustomObject({
        group: 'example.org',
        version: 'v1',
        namespace: ns,
        plural: 'widgets',
      })) as { items: Widget[]; metadata: object; apiVersion: string; kind: string };
    const informer = makeInformer<Widget>(config, widgetPath(ns), list);
    const seen: string[] = [];
    for (const event of ['add', 'update', 'delete'] as const)
      informer.on(event, (object) => void seen.push(`${event} ${object.metadata?.name} ${object.spec?.size ?? ''}`));
    await server().api.post(widgetPath(ns), widget('before'));
    await informer.start();
    cleanups.push(() => informer.stop());
    await until(async () => seen.includes('add before small'));
    await server().api.post(widgetPath(ns), widget('after'));
    await server().api.patch(widgetPath(ns, 'after'), 'merge', { spec: { size: 'large' } });
    await server().api.delete(widgetPath(ns, 'after'));
    await until(async () => seen.includes('delete after large'));
    expect(seen).toEqual(expect.arrayContaining(['add after small', 'update after large']));
  });
});
