import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import type { Clock } from '../../../lib/model/clock.ts';
import { createReadsCache, type ReadsCache } from '../../../lib/reconcile/reads.ts';
import { bindingObject, connectionObject, NOW } from '../connection/samples.ts';

let nowMs: number;
let lists: string[];
let objects: KubeObject[];
let answer: () => Promise<void>;
let cache: ReadsCache;

const clock: Clock = { now: () => nowMs, monotonic: () => nowMs - NOW };

beforeEach(() => {
  nowMs = NOW;
  lists = [];
  objects = [connectionObject('demo')];
  answer = () => Promise.resolve();
  const asked = async <T>(what: string, value: () => T): Promise<T> => {
    lists.push(what);
    await answer();
    return value();
  };
  const page = () => ({ items: objects, resourceVersion: '1', sentAt: { wall: nowMs, mono: 0 }, bytes: 1 });
  const client = {
    host: 'fake',
    serverDate: () => undefined,
    listAll: (ref, options) => asked(`list ${ref.resource}${options?.namespace ?? ''}`, page),
    find: (ref, key) => asked(`get ${ref.resource} ${key.name}`, () => undefined),
    update: () => Promise.reject(new Error('409')),
  } as Partial<KubeClient> as KubeClient;
  cache = createReadsCache(client, clock);
});

describe('a cached answer', () => {
  test('serves the same view for 2 s, and its age counts from when its request left', async () => {
    answer = () => {
      nowMs += 1_500;
      return Promise.resolve();
    };
    const view = cache.viewFor(undefined);
    const first = await view.connections();
    expect(first.sentAt).toEqual({ wall: NOW, mono: 0 });
    nowMs = NOW + 2_000;
    await view.connections();
    expect(lists).toHaveLength(1);
    nowMs = NOW + 2_001;
    await view.connections();
    expect(lists).toHaveLength(2);
  });

  test.each([
    ['left before the message was sent', 500, false],
    ['left after it, with less than a second to spare', -999, false],
    ['left after it, with a second to spare', -1_000, true],
  ])('that %s serves it: %s', async (_name, sentAfterRead, serves) => {
    await cache.viewFor(undefined).connections();
    nowMs = NOW + 1_000;
    await cache.viewFor(NOW + sentAfterRead).connections();
    expect(lists).toHaveLength(serves ? 1 : 2);
  });

  test('that was asked for after the message came in serves it, however young the message is', async () => {
    const arrived = { wall: NOW, mono: 0 };
    await cache.viewFor(NOW, arrived).connections();
    await cache.viewFor(NOW, arrived).connections();
    expect(lists).toHaveLength(1);
  });

  test('is shared with reads that come while it is under way, and a failure with nobody after it', async () => {
    answer = () => Promise.reject(new Error('etcd is away'));
    const view = cache.viewFor(undefined);
    const both = [view.connections(), view.connection('demo')];
    await Promise.all(both.map((read) => expect(read).rejects.toThrow('etcd is away')));
    expect(lists).toHaveLength(1);
    answer = () => Promise.resolve();
    expect((await view.connection('demo')).value?.metadata.name).toBe('demo');
  });

  test('is forgotten with any write to its kind, a refused one included, and reads under way with it', async () => {
    const view = cache.viewFor(undefined);
    let release: () => void = () => undefined;
    answer = () => new Promise((resolve) => (release = resolve));
    const early = view.connections();
    await expect(cache.client.update(resources.connections, connectionObject('x'))).rejects.toThrow('409');
    release();
    await early;
    answer = () => Promise.resolve();
    await view.connections();
    expect(lists).toHaveLength(2);
    for (const other of [resources.configmaps, resources.secrets, resources.crds]) {
      await expect(cache.client.update(other, connectionObject('x'))).rejects.toThrow('409');
      await view.connections();
    }
    expect(lists).toHaveLength(2);
  });

  test('that leaves after it is asked for is shared by those who ask while another one is under way', async () => {
    const view = cache.viewFor(undefined);
    const releases: (() => void)[] = [];
    answer = () => new Promise((resolve) => releases.push(resolve));
    const first = view.connections({ fresh: true });
    const others = [view.connections({ fresh: true }), view.connections({ fresh: true })];
    expect(lists).toHaveLength(1);
    nowMs = NOW + 5;
    releases[0]?.();
    const { sentAt } = await first;
    await vi.waitFor(() => expect(lists).toHaveLength(2));
    releases[1]?.();
    const late = await Promise.all(others);
    expect(late.map((read) => read.sentAt.wall)).toEqual([NOW + 5, NOW + 5]);
    expect(sentAt.wall).toBeLessThan(NOW + 5);
    answer = () => Promise.resolve();
    await view.connections({ fresh: true });
    expect(lists).toHaveLength(3);
  });

  test('that leaves after it is asked for does so, too, when the one before it fails', async () => {
    const view = cache.viewFor(undefined);
    answer = () => {
      answer = () => Promise.resolve();
      return Promise.reject(new Error('etcd is away'));
    };
    const first = view.connections({ fresh: true });
    const second = view.connections({ fresh: true });
    await expect(first).rejects.toThrow('etcd is away');
    expect((await second).value).toHaveLength(objects.length);
    expect(lists).toHaveLength(2);
  });

  test('never serves a fresh read', async () => {
    objects = [];
    const view = cache.viewFor(undefined);
    await view.bindings();
    await view.bindings({ fresh: true });
    await view.bindings({ namespace: 'a', fresh: true });
    expect(lists).toEqual(['list bindings', 'list bindings', 'list bindingsa']);
  });

  test('of all namespaces serves one of them', async () => {
    objects = ['a', 'b'].map((namespace) => bindingObject('x', { metadata: { namespace } }));
    const view = cache.viewFor(undefined);
    expect((await view.bindings({ namespace: 'b' })).value.map(({ metadata }) => metadata.namespace)).toEqual(['b']);
    expect((await view.bindings()).value).toHaveLength(2);
    expect(lists).toEqual(['list bindings']);
  });

  test('of the managed CRDs serves one of them', async () => {
    objects = [connectionObject('widgets.example.org')];
    const view = cache.viewFor(undefined);
    await view.managedCrds();
    expect((await view.crd('widgets.example.org')).value).toBeDefined();
    expect((await view.crd('others.example.org')).value).toBeUndefined();
    expect(lists).toEqual(['list customresourcedefinitions', 'get customresourcedefinitions others.example.org']);
  });
});

describe('an object that does not parse', () => {
  test('counts as a binding that lists its APIs and is never Ready', async () => {
    objects = [bindingObject('odd', { apis: ['a.x'], spec: { conflictPolicy: 'Whatever' } }), bindingObject('fine')];
    const { value } = await cache.viewFor(undefined).clusterBindings({ fresh: true });
    expect(value.map(({ metadata, unreadable }) => [metadata.name, unreadable !== undefined])).toEqual([
      ['odd', true],
      ['fine', false],
    ]);
    expect(value[0]?.spec.apis).toEqual([{ name: 'a.x' }]);
    expect(value[0]?.status).toEqual({});
  });

  test('and does not even show its APIs is skipped, and fails what something final rests on', async () => {
    objects = [bindingObject('odd', { spec: { apis: 'all' } }), bindingObject('fine')];
    const view = cache.viewFor(undefined);
    expect((await view.clusterBindings()).value.map(({ metadata }) => metadata.name)).toEqual(['fine']);
    await expect(view.clusterBindings({ fresh: true })).rejects.toMatchObject({
      errorClass: 'misconfigured',
      message: expect.stringMatching(/clusterbindings.core.kbind.io odd.*spec.apis: /) as string,
    });
  });

  test('takes no other Connection down', async () => {
    objects = [connectionObject('odd', { spec: { autoBind: 'perhaps' } }), connectionObject('demo')];
    const view = cache.viewFor(undefined);
    expect((await view.connections()).value.map(({ metadata }) => metadata.name)).toEqual(['demo']);
    expect((await view.connection('demo')).value).toBeDefined();
    await expect(view.connection('odd')).rejects.toMatchObject({ errorClass: 'misconfigured' });
    await expect(view.connections({ fresh: true })).rejects.toMatchObject({ errorClass: 'misconfigured' });
  });
});
