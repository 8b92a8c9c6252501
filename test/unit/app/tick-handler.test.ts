import { describe, expect, it } from 'vitest';
import { createTickHandler, startMessages, tickMessages } from '../../../lib/app/tick-handler.ts';
import { parseMessage } from '../../../lib/queue/codec.ts';
import { engineWith, fleetCluster, registryOf } from '../../support/queue/engine.ts';
import { CLUSTER } from '../../support/queue/events.ts';

const MINUTE = 60_000;
const START = 1_700_000_040_000;

describe('a tick', () => {
  it('asks for a refresh in each half of the minute, at a moment of the cluster’s own', () => {
    const delays = tickMessages(CLUSTER, START).map(({ message }) => message.delaySeconds ?? 0);
    expect(delays[0]).toBeLessThan(30);
    expect(delays[1]).toBe((delays[0] ?? 0) + 30);
  });

  it('asks for one backstop sweep in ten minutes, which starts no retries', () => {
    const requests = Array.from({ length: 20 }, (_, minute) => tickMessages(CLUSTER, START + minute * MINUTE))
      .flat()
      .map(({ message }) => parseMessage(message.body));
    const sweeps = requests.filter(({ type }) => type === 'sweep');
    expect(sweeps).toHaveLength(2);
    expect(sweeps[0]).toMatchObject({ retry: false, cluster: CLUSTER });
    expect(requests.filter(({ type }) => type === 'refresh')).toHaveLength(40);
  });

  it('names the period in its ids: twice in a minute is the same, the next minute is not', () => {
    expect(tickMessages(CLUSTER, START)).toEqual(tickMessages(CLUSTER, START + 999));
    const ids = [START, START + MINUTE].flatMap((time) =>
      tickMessages(CLUSTER, time).map(({ message }) => parseMessage(message.body)),
    );
    expect(new Set(ids.map((request) => ('id' in request ? request.id : ''))).size).toBe(ids.length);
  });

  it('spreads a fleet over the ten minutes', () => {
    const minutes = Array.from({ length: 200 }, (_, n) => `cluster-${n}`).map((cluster) =>
      Array.from({ length: 10 }, (_, minute) => tickMessages(cluster, START + minute * MINUTE).length).indexOf(3),
    );
    expect(new Set(minutes).size).toBe(10);
  });
});

describe('the tick handler', () => {
  it('asks for each cluster', async () => {
    const engine = engineWith();
    await createTickHandler(engine)({ time: new Date(START).toISOString() });
    expect(engine.queues.sent).toEqual(tickMessages(CLUSTER, START));
  });

  it('at a cell’s start asks for everything at once as well', async () => {
    const engine = engineWith();
    await createTickHandler(engine)({ time: new Date(START).toISOString(), atStart: true });
    expect(engine.queues.sent).toEqual([...startMessages(CLUSTER, START), ...tickMessages(CLUSTER, START)]);
    expect(engine.queues.bodies('work').slice(0, 2)).toMatchObject([
      { type: 'refresh', cluster: CLUSTER },
      { type: 'sweep', cluster: CLUSTER, retry: true },
    ]);
    expect(engine.queues.sent.slice(0, 2).every(({ message }) => message.delaySeconds === undefined)).toBe(true);
  });

  it('passes over paused clusters', async () => {
    const registry = registryOf({ found: 'cluster', cluster: { ...fleetCluster, paused: true } });
    const engine = engineWith({ registry });
    await createTickHandler(engine)({});
    expect(engine.queues.sent).toEqual([]);
  });

  it('sweeps a resumed cluster eight seconds after it was resumed, and only then owes it nothing', async () => {
    const asked: unknown[] = [];
    const activity = { since: START, sweepOwedSince: START - 3_000 };
    const registry = {
      ...registryOf({ found: 'cluster', cluster: { ...fleetCluster, activity } }),
      sweepAsked: (uid: string, owedSince: number) => Promise.resolve(void asked.push([uid, owedSince])),
    };
    const engine = engineWith({ registry, clock: { now: () => START, monotonic: () => START } });
    engine.queues.failing.add('work');
    await expect(createTickHandler(engine)({})).rejects.toThrow(/does not answer/);
    expect(asked).toEqual([]);
    engine.queues.failing.clear();
    await createTickHandler(engine)({});
    const sweep = engine.queues.sent.find(({ message }) => message.body.includes(`resume/${START - 3_000}`));
    expect(sweep?.message.delaySeconds).toBe(5);
    expect(JSON.parse(sweep?.message.body ?? '')).toMatchObject({ type: 'sweep', cluster: CLUSTER, retry: true });
    expect(asked).toEqual([[CLUSTER, START - 3_000]]);
  });

  it('owes a cluster that is paused again nothing', async () => {
    const cluster = { ...fleetCluster, paused: true, activity: { since: START, sweepOwedSince: START } };
    const engine = engineWith({ registry: registryOf({ found: 'cluster', cluster }) });
    await createTickHandler(engine)({});
    expect(engine.queues.sent).toEqual([]);
  });

  it.each([
    ['heard a minute ago', { since: 0, heardAt: START - MINUTE }, 0],
    ['heard over three minutes ago', { since: 0, heardAt: START - 3 * MINUTE - 1 }, 1],
    ['never heard, of a cluster that is new', { since: START - MINUTE }, 0],
    ['never heard, of a cluster that is not', { since: START - 4 * MINUTE }, 1],
  ])('counts a forwarder that was %s', async (_title, activity, silent) => {
    const registry = registryOf({ found: 'cluster', cluster: { ...fleetCluster, activity } });
    const engine = engineWith({ registry, clock: { now: () => START, monotonic: () => START } });
    await createTickHandler(engine)({});
    expect(engine.metrics.of('ForwarderSilent')).toBe(silent);
    const told = engine.log.lines.filter(({ message }) => message === 'forwarder is silent');
    expect(told).toHaveLength(silent);
  });

  it('throws when the queue does not take it', async () => {
    const engine = engineWith();
    engine.queues.failing.add('work');
    await expect(createTickHandler(engine)({})).rejects.toThrow(/does not answer/);
  });
});
