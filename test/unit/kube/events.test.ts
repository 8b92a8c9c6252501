import { beforeEach, describe, expect, test } from 'vitest';
import { createEvents } from '../../../lib/kube/events.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { keyText, type KubeObject } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { silentLogger, type LogFields } from '../../../lib/model/log.ts';

const widget = (namespace?: string, name = 'a'): KubeObject => ({
  apiVersion: 'example.org/v1',
  kind: 'Widget',
  metadata: { name, uid: 'u1', resourceVersion: '7', ...(namespace === undefined ? {} : { namespace }) },
});

let nowMs = 0;
let stored: Map<string, KubeObject>;
let calls: string[];
let fails: KbindError | undefined;
const logged: LogFields[] = [];
const clock = { now: () => nowMs, monotonic: () => nowMs };
const log = { ...silentLogger, warn: (_message: string, fields?: LogFields) => void logged.push(fields ?? {}) };

const client: Pick<KubeClient, 'find' | 'create' | 'patch'> = {
  find: (_ref, key) => {
    calls.push('find');
    return fails === undefined ? Promise.resolve(stored.get(keyText(key))) : Promise.reject(fails);
  },
  create: (_ref, object: SentObject) => {
    calls.push('create');
    const made = { ...object, metadata: { ...object.metadata, uid: 'e', resourceVersion: '1' } } as KubeObject;
    stored.set(keyText(made.metadata), made);
    return Promise.resolve(made);
  },
  patch: (_ref, key, { operations }) => {
    calls.push('patch');
    const before = stored.get(keyText(key));
    if (before === undefined) return Promise.reject(new KbindError('conflict', 'gone'));
    const changed = Object.fromEntries(operations.map(({ path, value }) => [path.slice(1), value]));
    stored.set(keyText(key), { ...before, ...changed });
    return Promise.resolve(before);
  },
};
const writer = () => createEvents(client, clock, 'kbind-konnector', log);

beforeEach(() => {
  nowMs = Date.parse('2026-11-30T12:00:00Z');
  stored = new Map();
  calls = [];
  fails = undefined;
  logged.length = 0;
});

describe('an Event', () => {
  test('says what of which object, in its namespace', async () => {
    await writer().warn(widget('ns'), 'Refused', 'because');
    expect([...stored.values()]).toStrictEqual([
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace: 'ns', name: expect.stringMatching(/^a\.[0-9a-f]{16}$/), uid: 'e', resourceVersion: '1' },
        involvedObject: {
          apiVersion: 'example.org/v1',
          kind: 'Widget',
          namespace: 'ns',
          name: 'a',
          uid: 'u1',
          resourceVersion: '7',
        },
        type: 'Warning',
        reason: 'Refused',
        message: 'because',
        count: 1,
        firstTimestamp: '2026-11-30T12:00:00Z',
        lastTimestamp: '2026-11-30T12:00:00Z',
        source: { component: 'kbind-konnector' },
        reportingComponent: 'kbind-konnector',
        reportingInstance: 'kbind-konnector',
      },
    ]);
  });

  test('of a cluster-scoped object lives in default', async () => {
    await writer().normal(widget(), 'Pulled', 'done');
    expect([...stored.keys()][0]).toMatch(/^default\/a\./);
  });

  test.each(['x'.repeat(253), 'system:node:A_b', `${'-.'.repeat(120)}z`])('has a valid name for %s', async (name) => {
    await writer().warn(widget('ns', name), 'Refused', 'because');
    const [made] = [...stored.values()];
    expect(made?.metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    expect(made?.metadata.name.length).toBeLessThanOrEqual(253);
  });

  test('holds no control characters and no more than the server takes', async () => {
    await writer().warn(widget('ns'), 'Refused', `a\u0000b\n${'x'.repeat(5_000)}`);
    const [made] = [...stored.values()];
    expect(made?.['message']).toMatch(/^a b x+…$/);
    expect(String(made?.['message']).length).toBeLessThanOrEqual(1_024);
  });
});

describe('the same news', () => {
  test('is written once in ten minutes, then counts up', async () => {
    const events = writer();
    await events.warn(widget('ns'), 'Refused', 'because');
    nowMs += 599_000;
    await events.warn(widget('ns'), 'Refused', 'because');
    expect(calls).toStrictEqual(['find', 'create']);
    nowMs += 2_000;
    await events.warn(widget('ns'), 'Refused', 'because');
    expect(calls).toStrictEqual(['find', 'create', 'find', 'patch']);
    expect([...stored.values()]).toMatchObject([{ count: 2, lastTimestamp: '2026-11-30T12:10:01Z' }]);
  });

  test('from another container is not written twice either', async () => {
    await writer().warn(widget('ns'), 'Refused', 'because');
    await writer().warn(widget('ns'), 'Refused', 'because');
    expect(calls).toStrictEqual(['find', 'create', 'find']);
  });

  test('after the server forgot it is written anew', async () => {
    const events = writer();
    await events.warn(widget('ns'), 'Refused', 'because');
    stored.clear();
    nowMs += 601_000;
    await events.warn(widget('ns'), 'Refused', 'because');
    expect([...stored.values()]).toMatchObject([{ count: 1 }]);
  });

  test('of another type, reason, message or object is other news', async () => {
    const events = writer();
    await events.warn(widget('ns'), 'Refused', 'because');
    await events.normal(widget('ns'), 'Refused', 'because');
    await events.warn(widget('ns'), 'Conflict', 'because');
    await events.warn(widget('ns'), 'Refused', 'why not');
    await events.warn({ ...widget('ns'), metadata: { ...widget('ns').metadata, uid: 'u2' } }, 'Refused', 'because');
    expect(stored.size).toBe(5);
  });

  test('is not remembered without end', async () => {
    const events = writer();
    for (let index = 0; index <= 2_000; index += 1) await events.warn(widget('ns'), 'Refused', `number ${index}`);
    calls = [];
    await events.warn(widget('ns'), 'Refused', 'number 0');
    await events.warn(widget('ns'), 'Refused', 'number 2000');
    expect(calls).toStrictEqual(['find']);
  });
});

test('a failure is logged and held against nobody; the next attempt tries again', async () => {
  const events = writer();
  fails = new KbindError('forbidden', 'no Events here');
  await expect(events.warn(widget('ns'), 'Refused', 'because')).resolves.toBeUndefined();
  expect(logged).toStrictEqual([{ reason: 'Refused', errorClass: 'forbidden', error: 'no Events here' }]);
  fails = undefined;
  await events.warn(widget('ns'), 'Refused', 'because');
  expect(stored.size).toBe(1);
});
