import { describe, expect, it } from 'vitest';
import { createIngestHandler, refusalCodes } from '../../../lib/app/ingest-handler.ts';
import type { KeysLookup } from '../../../lib/fleet/ingest-keys.ts';
import type { Outgoing, Sink } from '../../../lib/forwarder/sink.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { MAX_INGEST_BODY_BYTES } from '../../../lib/queue/signed-request.ts';
import { ingestEvent, instanceItem, KEY, OTHER_KEY, type RequestOptions } from '../../support/ingest/requests.ts';
import { recordCounters, recordLog } from '../../support/queue/recorded.ts';

const NOW = 1_800_000_000_000;
const SHOP = 'shop-uid';
const BLOG = 'blog-uid';
const keys = new Map<string, KeysLookup>([
  [SHOP, { found: 'keys', keys: [KEY] }],
  [BLOG, { found: 'keys', keys: [OTHER_KEY] }],
  ['gone', { found: 'removed' }],
  ['keyless', { found: 'none' }],
  ['broken', { found: 'unresolved', reason: 'secret: AccessDenied' }],
]);

function stage(send?: Sink['send'], away = false) {
  const sent: Outgoing[] = [];
  const metrics = recordCounters();
  const log = recordLog();
  const handler = createIngestHandler({
    keyring: { keysOf: (uid) => Promise.resolve(keys.get(uid) ?? { found: 'unknown' }) },
    sink: {
      send: (batch, options) => {
        if (send !== undefined) return send(batch, options);
        sent.push(...batch);
        return Promise.resolve([]);
      },
      backlog: () => (away ? Promise.reject(new KbindError('unavailable', 'away')) : Promise.resolve(120)),
    },
    clock: { now: () => NOW, monotonic: () => NOW },
    log,
    metrics,
  });
  const ask = async (options: Partial<RequestOptions> = {}) => {
    const event = ingestEvent({ cluster: SHOP, now: NOW, ...options });
    const { statusCode, body } = await handler(event, { getRemainingTimeInMillis: () => 10_000 });
    return { status: statusCode, body: JSON.parse(body ?? '') as unknown };
  };
  return { ask, sent, metrics, log };
}

describe('a signed request', () => {
  it('is taken: each message goes to its queue with its change, and is counted', async () => {
    const { ask, sent, metrics } = stage();
    const heartbeat = { v: 1, type: 'heartbeat', cluster: SHOP, at: NOW, watches: 3 } as const;
    const sweep = { v: 1, type: 'sweep', cluster: SHOP, id: 's1', retry: true } as const;
    const items = [instanceItem(SHOP, 'a'), { message: heartbeat, change: 'h' }, { message: sweep, change: 's' }];
    expect(await ask({ items })).toEqual({ status: 202, body: { accepted: 3, failed: [] } });
    expect(sent.map(({ queue, change }) => [queue, change])).toEqual([
      ['instances', 'uid-a/1'],
      ['control', 'h'],
      ['work', 's'],
    ]);
    expect(metrics.of('IngestAccepted')).toBe(3);
  });

  it('may come in base64, as the HTTP API hands over what is no text', async () => {
    const { ask, sent } = stage();
    expect(await ask({ contentType: 'application/octet-stream' })).toMatchObject({ status: 202 });
    expect(sent).toHaveLength(1);
  });

  it('goes in batches that a queue takes', async () => {
    const sizes: number[] = [];
    const { ask } = stage((batch) => {
      sizes.push(batch.length);
      return Promise.resolve([]);
    });
    const items = Array.from({ length: 25 }, (_, n) => instanceItem(SHOP, `n${n}`));
    expect(await ask({ items })).toMatchObject({ status: 202, body: { accepted: 25 } });
    expect(sizes).toEqual([10, 10, 5]);
  });

  it('that is sent again within the window names the same keys with the same changes: the queue drops them', async () => {
    const { ask, sent } = stage();
    await ask();
    await ask({ now: NOW });
    expect(sent[1]).toEqual(sent[0]);
  });

  it('signed with the key that replaces the old one is taken too', async () => {
    const both = new Map(keys).set(SHOP, { found: 'keys', keys: [OTHER_KEY, KEY] });
    keys.set(SHOP, both.get(SHOP) ?? { found: 'none' });
    const { ask } = stage();
    expect(await ask()).toMatchObject({ status: 202 });
    expect(await ask({ key: OTHER_KEY })).toMatchObject({ status: 202 });
    keys.set(SHOP, { found: 'keys', keys: [KEY] });
  });
});

describe('a signed GET', () => {
  const get = { method: 'GET', body: '' } as const;

  it('is told how many keys wait, and sends none', async () => {
    const { ask, sent } = stage();
    expect(await ask(get)).toEqual({ status: 200, body: { waiting: 120 } });
    expect(sent).toEqual([]);
  });

  it('is refused to whom a POST is', async () => {
    const { ask } = stage();
    expect(await ask({ ...get, key: OTHER_KEY })).toMatchObject({
      status: 401,
      body: { error: { code: 'signature_mismatch' } },
    });
    expect(await ask({ ...get, cluster: 'gone' })).toMatchObject({ status: 410 });
    expect(await ask({ ...get, now: NOW - 301_000 })).toMatchObject({ status: 401 });
  });

  it('is no way to use what was signed for a POST, nor the other way round', async () => {
    const { ask, sent } = stage();
    expect(await ask({ method: 'GET', sentBody: '' })).toMatchObject({ body: { error: { code: 'body_altered' } } });
    expect(await ask({ body: '' })).toMatchObject({ status: 400, body: { error: { code: 'body_invalid' } } });
    expect(sent).toEqual([]);
  });

  it('is told when the queue does not say', async () => {
    const { ask, log } = stage(undefined, true);
    expect(await ask(get)).toMatchObject({ status: 503, body: { error: { code: 'queue_unavailable' } } });
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', message: 'backlog unknown' }));
  });
});

describe('when a queue takes only a part', () => {
  it('207 names the items to send again', async () => {
    const { ask, metrics } = stage((batch) => Promise.resolve(batch[0]?.queue === 'instances' ? [1] : []));
    const heartbeat = { v: 1, type: 'heartbeat', cluster: SHOP, at: NOW, watches: 3 } as const;
    const items = [{ message: heartbeat, change: 'h' }, instanceItem(SHOP, 'a'), instanceItem(SHOP, 'b')];
    expect(await ask({ items })).toEqual({ status: 207, body: { accepted: 2, failed: [2] } });
    expect(metrics.of('IngestFailed')).toBe(1);
  });

  it('or one of them nothing: its items are the failed ones', async () => {
    const { ask } = stage((batch) =>
      batch[0]?.queue === 'control' ? Promise.reject(new KbindError('unavailable', 'away')) : Promise.resolve([]),
    );
    const heartbeat = { v: 1, type: 'heartbeat', cluster: SHOP, at: NOW, watches: 3 } as const;
    const items = [{ message: heartbeat, change: 'h' }, instanceItem(SHOP, 'a')];
    expect(await ask({ items })).toEqual({ status: 207, body: { accepted: 1, failed: [0] } });
  });
});

const encoded = (items: unknown): string => JSON.stringify({ v: 1, items });
const { message } = instanceItem(SHOP, 'a');
const seconds = (ms: number): string => String(Math.floor(ms / 1000));

/** Every refusal: its code, its status, and what leads to it. */
const refusals: readonly (readonly [code: string, status: number, what: string, options: Partial<RequestOptions>])[] = [
  ['header_missing', 400, 'no signature', { headers: { 'x-kbind-signature': '' } }],
  ['timestamp_invalid', 400, 'a date in words', { headers: { 'x-kbind-timestamp': 'today' } }],
  ['timestamp_outside_window', 401, 'a time long past', { now: NOW - 301_000 }],
  ['timestamp_outside_window', 401, 'a time to come', { now: NOW + 302_000 }],
  ['cluster_unknown', 401, 'an unknown cluster', { cluster: 'nobody' }],
  ['cluster_unknown', 401, 'a cluster that is none', { cluster: 'a/b' }],
  ['cluster_removed', 410, 'a removed cluster', { cluster: 'gone' }],
  ['cluster_without_key', 403, 'a cluster that has no key', { cluster: 'keyless' }],
  ['keys_unavailable', 503, 'a key that cannot be read', { cluster: 'broken' }],
  ['signature_mismatch', 401, 'a wrong key', { key: Buffer.from('wrong-key-'.repeat(4)) }],
  ['signature_mismatch', 401, 'another cluster’s key', { key: OTHER_KEY }],
  ['signature_mismatch', 401, 'a time that was not signed', { headers: { 'x-kbind-timestamp': seconds(NOW - 5_000) } }],
  ['signature_mismatch', 401, 'another cluster’s name', { headers: { 'x-kbind-cluster': BLOG } }],
  ['body_altered', 400, 'an altered body', { sentBody: encoded([instanceItem(SHOP, 'b')]) }],
  ['body_too_large', 413, 'an oversize body', { body: 'x'.repeat(MAX_INGEST_BODY_BYTES + 1) }],
  ['body_invalid', 400, 'a body that is not JSON', { body: '{' }],
  ['body_invalid', 400, 'a body without items', { body: encoded([]) }],
  [
    'body_invalid',
    400,
    'more items than fit',
    { body: encoded(Array.from({ length: 101 }, () => ({ message, change: 'c' }))) },
  ],
  ['message_invalid', 422, 'a message of no kind', { body: encoded([{ message: { v: 1, type: 'x' }, change: 'c' }]) }],
  [
    'message_invalid',
    422,
    'a refresh',
    { body: encoded([{ message: { v: 1, type: 'refresh', cluster: SHOP, id: 'r' }, change: 'c' }]) },
  ],
  [
    'message_invalid',
    422,
    'a chain of attempts',
    { body: encoded([{ message: { ...message, attempt: 9 }, change: 'c' }]) },
  ],
  [
    'message_invalid',
    422,
    'a key that reaches a prototype',
    { body: `{"v":1,"items":[{"message":{"__proto__":{}},"change":"c"}]}` },
  ],
  [
    'cluster_mismatch',
    403,
    'another cluster’s key in a message',
    { items: [instanceItem(SHOP, 'a'), instanceItem(BLOG, 'b')] },
  ],
];

describe('a request that is refused', () => {
  it.each(refusals)('%s (%i): %s', async (code, status, _what, options) => {
    const { ask, sent, metrics, log } = stage();
    const answer = await ask(options);
    expect(answer).toMatchObject({ status, body: { error: { code, message: expect.any(String) } } });
    expect(sent).toEqual([]);
    expect(metrics.of('IngestRefused')).toBe(1);
    expect(metrics.of('IngestAccepted')).toBe(0);
    expect(log.lines.at(-1)).toMatchObject({ message: 'request refused', fields: { code } });
  });

  it('names the item that is to blame', async () => {
    const items = [instanceItem(SHOP, 'a'), instanceItem(BLOG, 'b')];
    expect(await stage().ask({ items })).toMatchObject({ body: { error: { index: 1 } } });
  });

  it('because no queue takes anything is told so, to come again', async () => {
    const { ask, metrics } = stage(() => Promise.reject(new KbindError('unavailable', 'away')));
    expect(await ask()).toMatchObject({ status: 503, body: { error: { code: 'queue_unavailable' } } });
    expect(metrics.of('IngestFailed')).toBe(1);
  });

  it('has a code that this table knows', () => {
    const known = new Set([...refusals.map(([code]) => code), 'queue_unavailable']);
    expect(refusalCodes.filter((code) => !known.has(code))).toEqual([]);
  });
});
