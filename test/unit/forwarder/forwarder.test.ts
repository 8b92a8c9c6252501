import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createForwarder, type Forwarder, type ForwarderOptions } from '../../../lib/forwarder/forwarder.ts';
import { IDLE_MS, type Sleep } from '../../../lib/forwarder/watcher.ts';
import type { KubeClient, WatchEvent } from '../../../lib/kube/types.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { RecordingSink } from '../../support/forwarder/recording-sink.ts';
import { ScriptedCluster, type ScriptedStream } from '../../support/forwarder/scripted-cluster.ts';

const API = 'widgets.example.org';
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io';
const CONNECTIONS = 'connections.core.kbind.io';
const OURS = 'core.kbind.io/consumer-cluster-uid=local-uid';
const NOT_OURS = 'core.kbind.io/consumer-cluster-uid!=local-uid';
const FLUSH_DEADLINE_MS = 60_000;

/** Short rests pass at once; long ones (heartbeats, the flush deadline) last until they are aborted. */
const quickSleep: Sleep = (ms, signal) =>
  ms < FLUSH_DEADLINE_MS ? turn() : new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

const connection = (change: { secretVersion?: string; resourceVersion?: string } = {}): KubeObject => ({
  apiVersion: 'core.kbind.io/v1alpha1',
  kind: 'Connection',
  metadata: { name: 'east', uid: 'c1', resourceVersion: change.resourceVersion ?? '50' },
  spec: { kubeconfigSecretRef: { namespace: 'kbind', name: 'east' } },
  status: {
    remoteClusterUID: 'remote-uid',
    secretVersion: change.secretVersion ?? 's1',
    conditions: [
      {
        type: 'Connected',
        status: 'True',
        reason: 'AsExpected',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
});

const crd = (provider = true, resourceVersion = '51'): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: API,
    uid: 'crd1',
    resourceVersion,
    labels: { 'core.kbind.io/managed': 'true' },
    annotations: {
      'core.kbind.io/watch-plan': JSON.stringify({
        v: 1,
        generation: 1,
        version: 'v1',
        scope: 'Namespaced',
        connection: 'east',
        cluster: 'local-uid',
        epoch: provider ? 'e1' : '',
        provider,
      }),
    },
  },
});

const widget = (name: string, version: number, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'example.org/v1',
  kind: '',
  metadata: { name, namespace: 'default', uid: `u-${name}`, resourceVersion: String(version), labels },
});
const event = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject): WatchEvent => ({ type, object });

interface Setup {
  readonly consumer: ScriptedCluster;
  readonly provider: ScriptedCluster;
  readonly sink: RecordingSink;
  readonly forwarder: Forwarder;
  readonly identities: Map<KubeClient, string>;
  readonly closed: string[];
}

const running: Forwarder[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((forwarder) => forwarder.stop()));
});

async function setup(change: Partial<ForwarderOptions> = {}, before?: (parts: Omit<Setup, 'forwarder'>) => void) {
  const consumer = new ScriptedCluster('consumer');
  const provider = new ScriptedCluster('provider');
  const sink = new RecordingSink();
  const closed: string[] = [];
  const identities = new Map([
    [consumer.client, 'local-uid'],
    [provider.client, 'remote-uid'],
  ]);
  consumer.objects.set(CONNECTIONS, [connection()]);
  consumer.objects.set(CRDS, [crd()]);
  before?.({ consumer, provider, sink, identities, closed });
  const forwarder = createForwarder({
    client: consumer.client,
    clusterUid: 'local-uid',
    openProvider: (name) =>
      Promise.resolve({
        client: provider.client,
        uid: identities.get(provider.client) ?? '',
        close: () => Promise.resolve(void closed.push(name)),
      }),
    readIdentity: (client) => Promise.resolve(identities.get(client) ?? ''),
    sink,
    clock: systemClock,
    log: silentLogger,
    sleep: quickSleep,
    chance: () => 0.5,
    flushDeadlineMs: FLUSH_DEADLINE_MS,
    ...change,
  });
  running.push(forwarder);
  await forwarder.start();
  return { consumer, provider, sink, forwarder, identities, closed };
}

const until = (condition: () => void): Promise<void> => vi.waitFor(condition, { timeout: 5000, interval: 5 });

async function only(streams: () => ScriptedStream[]): Promise<ScriptedStream> {
  await until(() => expect(streams()).toHaveLength(1));
  const [stream] = streams();
  if (stream === undefined) throw new Error('no stream');
  return stream;
}

describe('forwarder', () => {
  it('forwards the keys of the control plane once and asks for one sweep when both sides stand', async () => {
    const { consumer, provider, sink, forwarder } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    expect(consumer.open(API)).toHaveLength(1);
    expect(provider.open(API, OURS)).toHaveLength(1);
    expect(provider.open(API, NOT_OURS)).toHaveLength(0);
    expect(sink.keys().filter((key) => key === `crd ${API}`)).toHaveLength(1);
    expect(sink.keys()).toContain('connection east');
    await until(() => expect(forwarder.ready()).toBe(true));
    const [id] = sink.sweeps(API);
    expect(id).toContain(API);
    expect(id).toContain('100#1');
  });

  it('asks for no sweep before the second side stands', async () => {
    const { provider, sink, consumer } = await setup({}, (parts) => {
      parts.provider.refusals.set(API, new KbindError('unavailable', 'not yet'));
    });
    await until(() => expect(provider.requests.filter((line) => line === `watch ${API}`).length).toBeGreaterThan(2));
    expect(consumer.open(API)).toHaveLength(1);
    expect(sink.sweeps(API)).toEqual([]);
    provider.refusals.clear();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
  });

  it('a 410 in the stream is a gap: one more sweep, with another id', async () => {
    const { consumer, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    consumer.resourceVersion = 300;
    (await only(() => consumer.open(API))).fail(new KbindError('expired', 'too old'));
    await until(() => expect(sink.sweeps(API)).toHaveLength(2));
    expect(new Set(sink.sweeps(API)).size).toBe(2);
  });

  it('a gap on the exports forwards their Connection, also when nothing is exported any more', async () => {
    const { provider, sink } = await setup({}, (parts) => {
      parts.consumer.objects.set(CRDS, []);
      parts.provider.objects.set(CRDS, [crd()]);
    });
    const first = await only(() => provider.open(CRDS));
    const changes = (): string[] =>
      sink.sent.flatMap(({ message, change }) =>
        message.type === 'reconcile' && message.controller === 'connection' && change.startsWith('exports|')
          ? [change]
          : [],
      );
    await until(() => expect(changes()).toHaveLength(1));
    provider.objects.set(CRDS, []);
    first.fail(new KbindError('expired', 'too old'));
    await until(() => expect(changes()).toHaveLength(2));
    expect(new Set(changes()).size).toBe(2);
  });

  it('an ordinary end of a stream resumes from the last bookmark without a sweep', async () => {
    const { consumer, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const first = await only(() => consumer.open(API));
    first.push({ type: 'BOOKMARK', resourceVersion: '777' });
    first.finish();
    await until(() => expect(consumer.open(API)[0]?.options.resourceVersion).toBe('777'));
    const sent = sink.sent.length;
    (await only(() => consumer.open(API))).push(event('ADDED', widget('after', 778)));
    await until(() => expect(sink.keys(sent)).toEqual(['instance default/after']));
    expect(sink.sweeps(API)).toHaveLength(1);
  });

  it('a stream that breaks is no gap either', async () => {
    const { provider, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const first = await only(() => provider.open(API));
    first.push(event('ADDED', widget('a', 501)));
    first.fail(new KbindError('unavailable', 'reset'));
    await until(() => expect(provider.open(API)[0]?.options.resourceVersion).toBe('501'));
    expect(sink.sweeps(API)).toHaveLength(1);
  });

  it('a stream that fell silent is opened again at once, again and again, without a rest or a sweep', async () => {
    let now = 0;
    const rests: number[] = [];
    const { consumer, sink } = await setup({
      clock: { now: () => now, monotonic: () => now },
      sleep: (ms, signal) => (rests.push(ms), quickSleep(ms, signal)),
    });
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    rests.length = 0;
    for (let round = 2; round < 8; round += 1) {
      now += IDLE_MS;
      (await only(() => consumer.open(API))).fail(new KbindError('unavailable', 'no byte for a while'));
      await until(() => expect(consumer.streams.filter(({ api }) => api === API)).toHaveLength(round));
    }
    expect(rests).toEqual([]);
    expect(sink.sweeps(API)).toHaveLength(1);
  });

  it('uses no provider that is another cluster, and goes on asking', async () => {
    const { provider, sink, identities, closed } = await setup({}, (parts) => {
      parts.identities.set(parts.provider.client, 'someone-else');
    });
    await until(() => expect(closed.length).toBeGreaterThan(2));
    expect(provider.requests).toEqual([]);
    expect(sink.sweeps(API)).toEqual([]);
    identities.set(provider.client, 'remote-uid');
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
  });

  it('watches nothing in a consumer that is another cluster', async () => {
    const { consumer, forwarder, sink } = await setup({}, (parts) => {
      parts.identities.set(parts.consumer.client, 'someone-else');
    });
    await until(() => expect(sink.sent.length).toBeGreaterThan(0));
    expect(consumer.requests).toEqual([]);
    expect(forwarder.ready()).toBe(false);
  });

  it('asks nothing of a provider whose Connection is gone', async () => {
    const { consumer, provider, sink, closed } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    (await only(() => consumer.open(CONNECTIONS))).push(event('DELETED', connection({ resourceVersion: '900' })));
    await until(() => expect(closed).toEqual(['east']));
    const asked = provider.requests.length;
    await until(() => expect(provider.streams.every(({ open }) => !open)).toBe(true));
    expect(provider.requests).toHaveLength(asked);
    expect(consumer.open('secrets')).toHaveLength(0);
    expect(consumer.open(API)).toHaveLength(1);
  });

  it('a new credential closes the old client and starts the provider side over', async () => {
    const { consumer, provider, sink, closed } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const old = await only(() => provider.open(API));
    const changed = connection({ secretVersion: 's2', resourceVersion: '901' });
    (await only(() => consumer.open(CONNECTIONS))).push(event('MODIFIED', changed));
    await until(() => expect(sink.sweeps(API)).toHaveLength(2));
    expect(old.open).toBe(false);
    expect(closed).toEqual(['east']);
  });

  it('a plan that shrinks keeps the consumer watch and asks for no sweep', async () => {
    const { consumer, provider, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const instances = await only(() => consumer.open(API));
    (await only(() => consumer.open(CRDS))).push(event('MODIFIED', crd(false, '902')));
    await until(() => expect(provider.open(API)).toHaveLength(0));
    expect(instances.open).toBe(true);
    expect(sink.sweeps(API)).toHaveLength(1);
    (await only(() => consumer.open(CRDS))).push(event('MODIFIED', crd(true, '903')));
    await until(() => expect(sink.sweeps(API)).toHaveLength(2));
    expect(instances.open).toBe(true);
  });

  it('while something conflicts, forwards what happens to its blocker, and it once at the start', async () => {
    const { consumer, provider, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const conflict = { 'core.kbind.io/conflict': 'true' };
    const instances = await only(() => consumer.open(API));
    instances.push(event('MODIFIED', widget('a', 910, conflict)));
    const foreign = await only(() => provider.open(API, NOT_OURS));
    await until(() => expect(sink.keys().filter((key) => key === 'instance default/a').length).toBeGreaterThan(0));
    const sent = sink.sent.length;
    foreign.push(event('MODIFIED', widget('b', 911)));
    foreign.push(event('DELETED', widget('a', 912)));
    await until(() => expect(sink.keys(sent)).toEqual(['instance default/a']));
    instances.push(event('MODIFIED', widget('a', 913)));
    await until(() => expect(provider.open(API, NOT_OURS)).toHaveLength(0));
  });

  it('conflicts that stood before the start are watched from the start', async () => {
    const conflict = { 'core.kbind.io/conflict': 'true' };
    const { provider, sink } = await setup({}, ({ consumer }) =>
      consumer.objects.set(API, [widget('old', 60, conflict)]),
    );
    await only(() => provider.open(API, NOT_OURS));
    await until(() => expect(sink.keys()).toContain('instance default/old'));
  });

  it('keys coalesce while the queue is away and are all delivered when it is back', async () => {
    const { consumer, sink, forwarder } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    sink.away = true;
    const sent = sink.sent.length;
    const instances = await only(() => consumer.open(API));
    for (let version = 1000; version < 2000; version += 1) {
      instances.push(event('MODIFIED', widget(`w${version % 3}`, version)));
    }
    await until(() => expect(sink.refused).toBeGreaterThan(3));
    expect(await forwarder.metrics.registry.metrics()).toMatch(/kbind_forwarder_pending\{queue="instances"\} 3\b/);
    sink.away = false;
    await until(() => expect(sink.keys(sent).sort()).toEqual([0, 1, 2].map((name) => `instance default/w${name}`)));
    expect(
      sink.sent
        .slice(sent)
        .map(({ change }) => change)
        .sort(),
    ).toEqual(['u-w0/1998', 'u-w1/1999', 'u-w2/1997']);
  });

  it('stopping ends every watch, flushes what is pending and reports what could not be', async () => {
    const { consumer, provider, sink, forwarder } = await setup({ flushDeadlineMs: 1000 });
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    sink.away = true;
    (await only(() => consumer.open(API))).push(event('ADDED', widget('a', 950)));
    await until(() => expect(sink.refused).toBeGreaterThan(0));
    expect(await forwarder.stop()).toEqual({ undelivered: 1 });
    expect([...consumer.streams, ...provider.streams].some(({ open }) => open)).toBe(false);
    const again = await setup();
    await until(() => expect(again.sink.sweeps(API)).toHaveLength(1));
    (await only(() => again.consumer.open(API))).push(event('ADDED', widget('b', 951)));
    await until(() => expect(again.sink.keys()).toContain('instance default/b'));
    expect(await again.forwarder.stop()).toEqual({ undelivered: 0 });
  });

  it('holds no more after 10,000 objects than after 100', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { consumer, sink } = await setup();
    await until(() => expect(sink.sweeps(API)).toHaveLength(1));
    const instances = await only(() => consumer.open(API));
    const show = async (from: number, to: number): Promise<number> => {
      for (let index = from; index < to; index += 1) instances.push(event('ADDED', widget(`w${index}`, 2000 + index)));
      await until(() => expect(sink.keys().at(-1)).toBe(`instance default/w${to - 1}`));
      sink.sent.length = 0;
      collect();
      return process.memoryUsage().heapUsed;
    };
    const few = await show(0, 100);
    const many = await show(100, 10_100);
    expect(many - few).toBeLessThan(2 * 1024 * 1024);
  });

  it('says with a heartbeat that it lives', async () => {
    const { sink } = await setup();
    await until(() => expect(sink.sent.some(({ message }) => message.type === 'heartbeat')).toBe(true));
    const beat = sink.sent.find(({ message }) => message.type === 'heartbeat');
    expect(beat).toMatchObject({ queue: 'control', message: { v: 1, cluster: 'local-uid' } });
  });
});
