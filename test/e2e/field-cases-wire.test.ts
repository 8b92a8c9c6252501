import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../lib/model/api.ts';
import {
  base64,
  crdFor,
  gadgets,
  installCrd,
  makeBinding,
  makeConnection,
  PRODUCT_USER,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { answerStatus, HttpProxy, type Rule } from '../support/e2e/http-proxy.ts';
import { until } from '../support/e2e/until.ts';
import { at } from '../support/e2e/objects.ts';

const secret = { namespace: 'kbind', name: 'demo-provider-kubeconfig' };
const isWatch = (url: string): boolean => url.includes('watch=');
const isOf = (url: string, resource: string): boolean => url.split('?')[0]?.endsWith(`/${resource}`) === true;

describe('field cases on the wire: both API servers behind a proxy that answers some requests itself', () => {
  let f0: F0;
  let consumerProxy: HttpProxy;
  let providerProxy: HttpProxy;
  const proxies = (): readonly HttpProxy[] => [consumerProxy, providerProxy];

  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    const user = await f0.consumer.real.addUser({ name: PRODUCT_USER, groups: ['system:masters'] });
    consumerProxy = await HttpProxy.start(user.kubeconfig);
    providerProxy = await HttpProxy.start(f0.providerKubeconfig);
    await writeFile(join(f0.fleetDir, 'consumer.kubeconfig'), consumerProxy.kubeconfig);
    await f0.consumer.merge(resources.secrets, secret, { data: { kubeconfig: base64(providerProxy.kubeconfig) } });
    await f0.restartCell();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  });
  afterEach(() => {
    for (const proxy of proxies()) proxy.rule = () => false;
  });
  afterAll(async () => {
    await f0.stop();
    await Promise.all(proxies().map((proxy) => proxy.stop()));
  });

  const versionsOf = (objects: readonly KubeObject[]): string[] =>
    objects.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
  const untilAllSynced = (count: number): Promise<boolean> =>
    until(`${count} copies are there`, async () => (await f0.provider.list(widgets)).length === count);
  /** Nothing waits in a queue and no watch event is on its way. */
  async function settled(): Promise<void> {
    await f0.cell.waitIdle();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await f0.cell.waitIdle();
  }

  test('case 5: every patch states its own media type, server-side apply its manager and force, and none gets 415', async () => {
    await f0.consumer.make(widgets, at('patched'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('patched'));
    await f0.consumer.merge(widgets, at('patched'), { spec: { size: 'm' } });
    await untilObject(f0.provider, widgets, at('patched'), ({ spec }) => (spec as { size: string }).size === 'm');
    await f0.provider.setStatus(widgets, at('patched'), { phase: 'Up' });
    await untilObject(f0.consumer, widgets, at('patched'), ({ status }) => status !== undefined);
    await f0.provider.make(widgets, at('blocked'), { spec: { size: 'theirs' } });
    await f0.consumer.make(widgets, at('blocked'), { spec: { size: 'mine' } });
    await untilObject(
      f0.consumer,
      widgets,
      at('blocked'),
      ({ metadata }) => metadata.annotations?.['core.kbind.io/conflict'] === 'ForeignObjectExists',
    );
    const all = proxies().flatMap(({ seen }) => seen);
    expect(all.filter(({ status }) => status === 415)).toEqual([]);
    const patches = all.filter(({ method }) => method === 'PATCH');
    const applies = patches.filter(({ headers }) =>
      headers['content-type']?.startsWith('application/apply-patch+yaml'),
    );
    expect(applies.length).toBeGreaterThan(0);
    for (const { url } of applies) {
      expect(url).toContain('fieldManager=kbind-konnector');
      expect(url).toContain('force=true');
    }
    const types = new Set(patches.map(({ headers }) => headers['content-type']));
    expect([...types].every((type) => /^application\/(apply-patch\+yaml|json-patch\+json)/.test(type ?? ''))).toBe(
      true,
    );
    expect(patches.some(({ url }) => url.includes('/status'))).toBe(true);
    for (const cluster of [f0.consumer, f0.provider]) await cluster.delete(widgets, at('blocked'));
    await untilGone(f0.consumer, widgets, at('blocked'));
  });

  test.each([
    [
      'an HTTP 410 when it connects',
      (response: Parameters<Rule>[1]) => answerStatus(response, 410, 'Expired', 'too old'),
    ],
    [
      'a bookmark and then an in-stream ERROR 410',
      (response: Parameters<Rule>[1]) => {
        const status = {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          code: 410,
          reason: 'Expired',
          message: 'too old',
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
        return true as const;
      },
    ],
  ])('case 6: a watch that gets %s starts over, and what changed in the gap is synced', async (what, answer) => {
    const name = what.includes('HTTP') ? 'gap-http' : 'gap-stream';
    await f0.consumer.make(widgets, at(name), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at(name));
    const refused = { consumer: 0, provider: 0 };
    for (const side of ['consumer', 'provider'] as const) {
      const proxy = side === 'consumer' ? consumerProxy : providerProxy;
      proxy.rule = ({ url }, response) => {
        if (!isWatch(url) || !isOf(url, 'widgets') || refused[side] >= 2) return false;
        refused[side] += 1;
        return answer(response);
      };
      proxy.dropConnections();
    }
    await f0.consumer.make(widgets, at(`${name}-new`), { spec: { size: 's' } });
    await f0.consumer.delete(widgets, at(name));
    await untilObject(f0.provider, widgets, at(`${name}-new`));
    await untilGone(f0.consumer, widgets, at(name));
    await f0.provider.setStatus(widgets, at(`${name}-new`), { phase: 'Up' });
    await untilObject(f0.consumer, widgets, at(`${name}-new`), ({ status }) => status !== undefined);
    expect(refused).toEqual({ consumer: 2, provider: 2 });
    // Started over, not over and over: the refused version is not asked for again.
    await settled();
    for (const proxy of proxies()) {
      const before = proxy.seen.length;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      expect(proxy.seen.slice(before).filter(({ url }) => isWatch(url) && isOf(url, 'widgets')).length).toBeLessThan(3);
    }
  });

  test('case 6: a bookmark only moves the version: it looks neither like an addition nor like a deletion', async () => {
    const before = [versionsOf(await f0.consumer.list(widgets)), versionsOf(await f0.provider.list(widgets))];
    let sent = 0;
    const fake = (seen: Parameters<Rule>[0], response: Parameters<Rule>[1]): boolean => {
      if (!isWatch(seen.url) || !isOf(seen.url, 'widgets') || sent >= 2) return false;
      sent += 1;
      const resourceVersion = new URL(`https://x${seen.url}`).searchParams.get('resourceVersion');
      const object = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { resourceVersion } };
      response.writeHead(200, { 'content-type': 'application/json' });
      for (let index = 0; index < 5; index += 1) response.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
      response.end();
      return true;
    };
    for (const proxy of proxies()) {
      proxy.rule = fake;
      proxy.dropConnections();
    }
    await until('bookmarks were sent', () => sent >= 2);
    await f0.consumer.make(widgets, at('after-bookmarks'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('after-bookmarks'));
    const without = (versions: string[]): string[] => versions.filter((version) => !version.startsWith('after-'));
    expect(without(versionsOf(await f0.consumer.list(widgets)))).toEqual(before[0]);
    expect(without(versionsOf(await f0.provider.list(widgets)))).toEqual(before[1]);
  });

  test('case 8: watches that are cut again and again over unchanged objects write nothing', async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        f0.consumer.make(widgets, at(`quiet-${index}`), { spec: { emptyList: [], emptyMap: {}, index } }),
      ),
    );
    for (let index = 0; index < 20; index += 1) await untilObject(f0.provider, widgets, at(`quiet-${index}`));
    await settled();
    const before = [versionsOf(await f0.consumer.list(widgets)), versionsOf(await f0.provider.list(widgets))];
    for (let round = 0; round < 3; round += 1) {
      const from = consumerProxy.seen.length;
      for (const proxy of proxies()) proxy.dropConnections();
      await until('the watch is back', () =>
        consumerProxy.seen
          .slice(from)
          .some(({ url, status }) => isWatch(url) && isOf(url, 'widgets') && status === 200),
      );
      await settled();
    }
    expect([versionsOf(await f0.consumer.list(widgets)), versionsOf(await f0.provider.list(widgets))]).toEqual(before);
  });

  test('case 9: 410 on the continue token of page 4: lists start over or go on, and a part never passes for the whole', async () => {
    await installCrd(f0.provider, crdFor(gadgets));
    await makeBinding(f0.consumer, { name: 'gadgets', apis: ['gadgets.gadget.io'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'gadgets' });
    const names = Array.from({ length: 80 }, (_, index) => `page-${String(index).padStart(3, '0')}`);
    await Promise.all(names.map((name) => f0.consumer.make(gadgets, at(name), { spec: { blob: 'x'.repeat(20_000) } })));
    await until('all copies are there', async () => (await f0.provider.list(gadgets)).length === names.length);
    await settled();
    let gaps = 0;
    let expired = 0;
    let pages = 0;
    const small = (seen: Parameters<Rule>[0], response: Parameters<Rule>[1]): boolean => {
      if (seen.method !== 'GET' || !isOf(seen.url, 'gadgets')) return false;
      // A gap makes a sweep.
      if (isWatch(seen.url)) {
        gaps += 1;
        return gaps <= 1 && answerStatus(response, 410, 'Expired', 'too old');
      }
      const url = new URL(`https://x${seen.url}`);
      if (url.searchParams.get('limit') === '1') return false;
      if (url.searchParams.has('continue')) pages += 1;
      // Every list of the first ones breaks on its fourth page.
      if (url.searchParams.has('continue') && expired < 4 && pages % 3 === 0) {
        expired += 1;
        return answerStatus(response, 410, 'Expired', 'The provided continue parameter is too old');
      }
      url.searchParams.set('limit', '15');
      seen.url = `${url.pathname}${url.search}`;
      return false;
    };
    for (const proxy of proxies()) proxy.rule = small;
    for (const proxy of proxies()) proxy.dropConnections();
    await until('lists of a sweep broke', () => expired >= 1);
    await settled();
    expect((await f0.provider.list(gadgets)).length).toBe(names.length);
    expect((await f0.consumer.list(gadgets)).every(({ metadata }) => metadata.deletionTimestamp === undefined)).toBe(
      true,
    );
    await f0.consumer.delete(resources.clusterBindings, { name: 'gadgets' });
    await untilGone(f0.consumer, resources.clusterBindings, { name: 'gadgets' }, 120_000);
    expect(await f0.provider.list(gadgets)).toEqual([]);
    // The API server takes the instances that nothing holds any more along by itself, then the CRD.
    await untilGone(f0.consumer, resources.crds, { name: 'gadgets.gadget.io' });
    expect(expired).toBe(4);
  });

  test('all objects are still there and in step after these', async () => {
    const sources = await f0.consumer.list(widgets);
    await untilAllSynced(sources.length);
  });
});
