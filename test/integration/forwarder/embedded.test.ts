import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EmbeddedCluster } from '../../../lib/embedded/index.ts';
import type { Forwarder, ForwarderOptions } from '../../../lib/forwarder/forwarder.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { apiName, resources } from '../../../lib/model/api.ts';
import type { Outgoing } from '../../../lib/forwarder/sink.ts';
import { RecordingSink } from '../../support/forwarder/recording-sink.ts';
import { embeddedKind } from '../../support/apiserver/kinds.ts';
import {
  create,
  EAST,
  remove,
  rotate,
  startForwarder,
  startPair,
  until,
  widgets,
  WIDGETS,
  type Pair,
} from './fixture.ts';

const widget = (name: string) => ({ metadata: { namespace: 'default', name }, spec: { size: 1 } });

const LATENCY_MS = 20;

/** As slow as a queue over a network, so that batches form; takes every message but the first of each. */
class FlakySink extends RecordingSink {
  partial = 0;

  override async send(batch: readonly Outgoing[]): Promise<readonly number[]> {
    await delay(LATENCY_MS);
    if (batch.length < 2) return super.send(batch);
    this.partial += 1;
    await super.send(batch.slice(1));
    return [0];
  }
}

/** What only an API server in this process can be made to do. */
describe('forwarder and API servers that misbehave', () => {
  let pair: Pair;
  let running: Forwarder | undefined;

  beforeAll(async () => {
    pair = await startPair(embeddedKind);
  });
  afterEach(async () => {
    await running?.stop();
  });
  afterAll(() => pair.stop());

  function server(name: 'consumer' | 'provider'): EmbeddedCluster {
    const found = pair[name].server.embedded;
    if (found === undefined) throw new Error(`the ${name} is no embedded server`);
    return found;
  }
  async function standing(change: Partial<ForwarderOptions> = {}, own?: RecordingSink): Promise<RecordingSink> {
    const { forwarder, sink: made } = await startForwarder(pair, change);
    const sink = own ?? made;
    running = forwarder;
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(1));
    await until(() => expect(forwarder.ready()).toBe(true));
    // The keys of the control plane are gathered for a moment.
    await until(() => expect(sink.keys()).toContain(`crd ${WIDGETS}`));
    return sink;
  }
  function requestsOf(name: 'consumer' | 'provider'): { paths: string[]; end: () => void } {
    const paths: string[] = [];
    const end = server(name).onRequest((request) => void paths.push(JSON.stringify(request)));
    return { paths, end };
  }

  it('a bookmark only advances a quiet watch: history that went before it is no gap', async () => {
    const started: string[] = [];
    const client: KubeClient = {
      ...pair.limited,
      watch(ref, options) {
        if (apiName(ref) === WIDGETS) started.push(options.resourceVersion);
        return pair.limited.watch(ref, options);
      },
    };
    const sink = await standing({ client });
    const sent = sink.sent.length;
    const noise = await create(pair.consumer.admin, resources.namespaces, { metadata: { name: 'noise' } });
    server('consumer').bookmark();
    server('consumer').compact();
    server('consumer').stopWatches();
    await until(() => expect(started).toHaveLength(2));
    expect(Number(started[1])).toBeGreaterThanOrEqual(Number(noise.metadata.resourceVersion));
    await create(pair.consumer.admin, widgets, widget('after-end'));
    await until(() => expect(sink.keys(sent)).toContain('instance default/after-end'));
    expect(sink.keys(sent)).toEqual(['instance default/after-end']);
  });

  it('history that is gone is a gap: one sweep for the API, keys once for the control plane', async () => {
    const sink = await standing();
    const sent = sink.sent.length;
    await create(pair.consumer.admin, resources.namespaces, { metadata: { name: 'more-noise' } });
    server('consumer').compact();
    server('consumer').stopWatches();
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(2));
    await until(() => expect(sink.keys(sent)).toContain('connection east'));
  });

  it('loses no change while streams break and the queue takes only a part', async () => {
    const sink = new FlakySink();
    await standing({ sink }, sink);
    const newest = new Map<string, string>();
    for (let index = 0; index < 120; index += 1) {
      const { metadata } = await create(pair.consumer.admin, widgets, widget(`flaky-${index}`));
      newest.set(metadata.name, `${metadata.uid}/${metadata.resourceVersion}`);
      if (index % 40 === 20) server('consumer').stopWatches();
    }
    const delivered = () => new Set(sink.sent.map(({ change }) => change));
    await until(() => expect([...newest.values()].filter((change) => !delivered().has(change))).toEqual([]));
    expect(sink.partial).toBeGreaterThan(0);
    expect(sink.sweeps(WIDGETS)).toHaveLength(1);
  });

  it('starts over 300 objects with a few requests and forwards none of them', async () => {
    for (let index = 0; index < 300; index += 1) await create(pair.consumer.admin, widgets, widget(`many-${index}`));
    const consumer = requestsOf('consumer');
    const provider = requestsOf('provider');
    const sink = await standing();
    expect(sink.keys().filter((key) => key.startsWith('instance'))).toEqual([]);
    expect(consumer.paths.length + provider.paths.length).toBeLessThan(50);
    consumer.end();
    provider.end();
  });

  it('a credential that is refused is read anew from the Secret', async () => {
    const first = await server('provider').addUser({ name: 'first', auth: 'token', groups: ['system:masters'] });
    await rotate(pair, first.kubeconfig, 'first');
    const sink = await standing();
    const second = await server('provider').addUser({ name: 'second', auth: 'token', groups: ['system:masters'] });
    // The Connection controller has not noticed yet: secretVersion stays.
    await rotate(pair, second.kubeconfig, 'first');
    server('provider').removeUser('first');
    server('provider').stopWatches();
    const labels = { 'core.kbind.io/consumer-cluster-uid': pair.consumer.uid };
    const copy = { metadata: { namespace: 'default', name: 'copy', labels }, spec: {} };
    await create(pair.provider.admin, widgets, copy);
    await until(() => expect(sink.keys()).toContain('instance default/copy'));
    expect(sink.sweeps(WIDGETS)).toHaveLength(1);
  });

  it('asks nothing of a provider any more once its Connection is gone', async () => {
    const sink = await standing();
    const sent = sink.sent.length;
    await remove(pair.consumer.admin, resources.connections, EAST);
    await until(() => expect(sink.keys(sent)).toContain('connection east'));
    const provider = requestsOf('provider');
    server('provider').stopWatches();
    await create(pair.consumer.admin, widgets, widget('still-watched'));
    await until(() => expect(sink.keys(sent)).toContain('instance default/still-watched'));
    expect(provider.paths).toEqual([]);
    provider.end();
  });
});
