import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startLocalCell, type LocalCell } from '../../../lib/local/cell.ts';
import { databases } from '../../../lib/local/demo/sample-api.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { until } from '../../support/e2e/until.ts';
import { signedRequest, type RequestOptions } from '../../support/ingest/requests.ts';
import { bindAndOrder, changeAndDelete, startPlatform, type Platform } from '../../support/local/platform.ts';

/** A consumer without cloud credentials: its forwarder sends through the HTTP route of serverless.yml. */

const KEY = Buffer.from('key-of-the-shop-cluster-'.repeat(2));
const BLOG_KEY = Buffer.from('key-of-the-blog-cluster-'.repeat(2));
let platform: Platform;
let cell: LocalCell;
let shop: string;
let blog: string;

beforeEach(async () => {
  platform = await startPlatform();
  await writeFile(join(platform.folder.fleet, 'shop.hmac'), `${KEY.toString()}\n`, { mode: 0o600 });
  await writeFile(join(platform.folder.fleet, 'blog.hmac'), `${BLOG_KEY.toString()}\n`, { mode: 0o600 });
  cell = await startLocalCell({ fleetDir: platform.folder.fleet, allowLoopback: true });
  const [first, second] = platform.stage.consumers;
  [shop, blog] = await Promise.all([readClusterIdentity(first.client), readClusterIdentity(second.client)]);
});
afterEach(async () => {
  await cell.stop();
  await platform.stop();
});

async function post(options: Partial<RequestOptions> = {}): Promise<{ status: number; body: unknown }> {
  const { headers, body } = signedRequest({ cluster: shop, now: Date.now(), key: KEY, ...options });
  const response = await request(cell.ingestUrl ?? '', { method: 'POST', headers, body });
  return { status: response.statusCode, body: await response.body.json() };
}

it('syncs from beginning to end through the webhook, and delivers all before it stops', async () => {
  await bindAndOrder(platform.stage);
  await changeAndDelete(platform.stage);
  expect(platform.told).toHaveLength(7);
  expect(cell.counts()['ingest']).toMatchObject({ errors: 0 });
  expect(cell.counts()['ingest']?.invocations).toBeGreaterThan(10);
  expect(cell.bodies('deadLetters')).toEqual([]);
  expect(await cell.stop()).toEqual({ undelivered: 0 });
});

it('refuses what is not signed by the cluster that it is about, each with an error of its own', async () => {
  const refused = async (options: Partial<RequestOptions>): Promise<unknown> => {
    const { status, body } = await post(options);
    return [status, (body as { error: { code: string } }).error.code];
  };
  const about = (cluster: string) => ({ message: reconcileRequest(cluster, 'connection', { name: 'x' }), change: 'c' });
  expect(await refused({ key: Buffer.from('wrong-key-'.repeat(4)) })).toEqual([401, 'signature_mismatch']);
  expect(await refused({ key: BLOG_KEY })).toEqual([401, 'signature_mismatch']);
  expect(await refused({ now: Date.now() - 360_000 })).toEqual([401, 'timestamp_outside_window']);
  expect(await refused({ sentBody: '{"v":1,"items":[]}' })).toEqual([400, 'body_altered']);
  expect(await refused({ items: [about(blog)] })).toEqual([403, 'cluster_mismatch']);
  expect(await refused({ body: 'x'.repeat(300_000) })).toEqual([413, 'body_too_large']);
  expect(await post({ items: [about(shop)] })).toEqual({ status: 202, body: { accepted: 1, failed: [] } });
  const elsewhere = await request(`${cell.ingestUrl ?? ''}/more`, { method: 'POST' });
  expect([elsewhere.statusCode, await elsewhere.body.json()]).toEqual([404, { message: 'Not Found' }]);
});

it('a replay inside the window causes no write', async () => {
  await bindAndOrder(platform.stage);
  await cell.waitIdle();
  const [consumer] = platform.stage.consumers;
  const writes: unknown[] = [];
  for (const { embedded } of [consumer, platform.stage.provider]) {
    embedded.onRequest((seen) => {
      if (seen.method !== 'GET' && !seen.path.includes('/leases') && !seen.path.includes('/events')) writes.push(seen);
    });
  }
  const key = { namespace: 'shop', name: 'orders' };
  const message = reconcileRequest(shop, 'instance', key, { api: 'databases.demo.example.org' });
  const now = Date.now();
  const before = cell.counts()['instances']?.messages ?? 0;
  for (let again = 0; again < 3; again += 1) {
    expect(await post({ now, items: [{ message, change: 'replayed/1' }] })).toMatchObject({ status: 202 });
  }
  await until('the key was looked at once more', () => (cell.counts()['instances']?.messages ?? 0) > before);
  await cell.waitIdle();
  expect(writes).toEqual([]);
  expect(await consumer.client.get(databases, key)).toBeDefined();
});
