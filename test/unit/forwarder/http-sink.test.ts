import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHttpSink } from '../../../lib/forwarder/http-sink.ts';
import type { Outgoing } from '../../../lib/forwarder/sink.ts';
import { parseIngestBody } from '../../../lib/queue/ingest-codec.ts';
import { bodyDigest, isSignedWith } from '../../../lib/queue/signed-request.ts';
import { instanceItem, KEY, OTHER_KEY } from '../../support/ingest/requests.ts';
import { json, ScriptedServer } from '../../support/kube/scripted-server.ts';
import { recordLog } from '../../support/queue/recorded.ts';

const CLUSTER = 'shop-uid';
const NOW = 1_800_000_000_123;
const clock = { now: () => NOW, monotonic: () => NOW };
const signal = new AbortController().signal;
const batch: readonly Outgoing[] = ['a', 'b', 'c'].map((name) => ({
  queue: 'instances',
  ...instanceItem(CLUSTER, name),
}));

let server: ScriptedServer;
let key: Uint8Array;
const log = recordLog();
const sink = () =>
  createHttpSink({
    url: `${server.origin}/v1/keys`,
    clusterUid: CLUSTER,
    key: () => Promise.resolve(key),
    clock,
    log,
    allowLoopback: true,
  });

beforeEach(async () => {
  server = await ScriptedServer.start();
  key = KEY;
});
afterEach(() => server.stop());

const send = () => sink().send(batch, { signal });
const refuses = (status: number, error: object) => server.answer(json(status, { error }));

describe('the signed HTTP sink', () => {
  it('sends items, signed with the key that is there at that time', async () => {
    server.answer(json(202, { accepted: 3, failed: [] }));
    expect(await send()).toEqual([]);
    key = OTHER_KEY;
    await send();
    for (const [index, used] of [KEY, OTHER_KEY].entries()) {
      const { headers = {}, body = '' } = server.seen[index] ?? {};
      const digest = bodyDigest(Buffer.from(body));
      expect(headers).toMatchObject({
        'x-kbind-cluster': CLUSTER,
        'x-kbind-timestamp': '1800000000',
        'x-kbind-content-sha256': digest,
      });
      const parts = { cluster: CLUSTER, timestamp: '1800000000', digest };
      expect(isSignedWith([used], parts, String(headers['x-kbind-signature']))).toBe(true);
      expect(parseIngestBody(body).map(({ change }) => change)).toEqual(batch.map(({ change }) => change));
    }
  });

  it('sends again only what failed', async () => {
    server.answer(json(207, { accepted: 2, failed: [1] }));
    expect(await send()).toEqual([1]);
  });

  it('takes an answer that does not say what failed for nothing taken', async () => {
    server.answer(json(207, 'partly'));
    expect(await send()).toEqual([0, 1, 2]);
  });

  it('leaves the one message that is refused for good, and sends the others again', async () => {
    refuses(422, { code: 'message_invalid', message: 'item 1: name', index: 1 });
    expect(await send()).toEqual([0, 2]);
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', message: 'ingest refused a message for good' });
  });

  it.each([
    [401, 'signature_mismatch', 'unauthorized'],
    [401, 'timestamp_outside_window', 'unauthorized'],
    [403, 'cluster_mismatch', 'forbidden'],
    [410, 'cluster_removed', 'unavailable'],
    [503, 'queue_unavailable', 'unavailable'],
  ])('keeps everything pending after %i %s', async (status, code, errorClass) => {
    refuses(status, { code, message: 'because' });
    await expect(send()).rejects.toMatchObject({ errorClass, message: `ingest answered ${status} ${code}: because` });
  });

  it('keeps everything pending after a redirect, which it does not follow, and after a page of a load balancer', async () => {
    server.answer((_seen, response) => void response.writeHead(302, { location: `${server.origin}/other` }).end());
    await expect(send()).rejects.toMatchObject({ errorClass: 'unavailable' });
    expect(server.seen).toHaveLength(1);
    server.answer((_seen, response) => void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>'));
    await expect(send()).rejects.toMatchObject({ message: 'ingest answered 502' });
  });

  it('names and leaves a message that nobody could read', async () => {
    server.answer(json(202, { accepted: 1, failed: [] }));
    const bad = { queue: 'instances', ...instanceItem(CLUSTER, 'no/name') } as const;
    expect(await sink().send([bad, ...batch.slice(0, 1)], { signal })).toEqual([]);
    expect(parseIngestBody(server.seen[0]?.body ?? '')).toHaveLength(1);
  });

  it('asks how many keys wait with a signed GET', async () => {
    server.answer(json(200, { waiting: 321 }));
    expect(await sink().backlog({ signal })).toBe(321);
    expect(server.seen.map(({ method, url, body }) => [method, url.pathname, body])).toEqual([['GET', '/v1/keys', '']]);
    const parts = { cluster: CLUSTER, timestamp: '1800000000', digest: bodyDigest(Buffer.alloc(0)) };
    expect(isSignedWith([KEY], parts, String(server.seen[0]?.headers['x-kbind-signature']))).toBe(true);
  });

  it.each([
    ['of an older cell, which has no such route', 404, { message: 'Not Found' }, 'ingest answered 404'],
    ['that does not say', 200, { accepted: 1 }, 'ingest answered 200'],
    [
      'of a cell whose queue does not say',
      503,
      { error: { code: 'queue_unavailable', message: 'x' } },
      /queue_unavailable/,
    ],
  ])('throws for an answer %s', async (_what, status, answer, message) => {
    server.answer(json(status, answer));
    await expect(sink().backlog({ signal })).rejects.toThrow(message);
  });

  it('sends nothing in the clear, but on this machine', () => {
    const options = { clusterUid: CLUSTER, key: () => Promise.resolve(KEY), clock, log };
    const plain = () => createHttpSink({ ...options, url: 'http://ingest.example', allowLoopback: false });
    expect(plain).toThrow(/must be https/);
  });
});
