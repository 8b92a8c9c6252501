import { keyText, resources } from '../../lib/model/api.ts';
import { workMessage } from '../../lib/queue/queues.ts';
import { until, widgets } from '../support/bench/cell.ts';
import { editSpec, forEach, keyAt, range } from '../support/bench/instances.ts';
import { sizeOf, type Bench } from './bench.ts';
import type { Result } from './result.ts';

/** What many instances at rest cost, and what becomes of all of them at once. */

function sweep({ cell }: Bench, id: string): void {
  cell.queues.work.send(workMessage({ v: 1, type: 'sweep', cluster: cell.consumer.uid, id, retry: false }).message);
}

/** The ten-minute comparison of both sides: with nothing to do, and with a hundredth of the copies drifted. */
export async function backstop(bench: Bench): Promise<Result[]> {
  await bench.atRest();
  const { cell, provider } = bench;
  sweep(bench, 'backstop/counts');
  await cell.settled({ quietMs: 700 });
  const quiet = await bench.measure('backstop', async () => {
    sweep(bench, 'backstop/quiet');
    await cell.settled({ quietMs: 100 });
    return undefined;
  });
  await cell.stopForwarder();
  const drifted = range(Math.max(1, Math.round(bench.n / 100)));
  await forEach(drifted, (index) => editSpec(cell.provider, keyAt(index), 9_999));
  const mended = await bench.measure('backstop, 1 % drifted', async () => {
    sweep(bench, 'backstop/drifted');
    const size = sizeOf(await cell.consumer.hands.get(widgets, keyAt(0)));
    await Promise.all(drifted.map((index) => provider.seen(keyText(keyAt(index)), (copy) => sizeOf(copy) === size)));
    return undefined;
  });
  await cell.startForwarder();
  await cell.settled({ quietMs: 700 });
  return [quiet, mended];
}

/** A forwarder that starts anew: one sweep, no key. */
export async function relist(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { cell } = bench;
  await cell.stopForwarder();
  return bench.measure('relist', async () => {
    const { delivered } = cell.queues.work.counts;
    await cell.startForwarder();
    await until('a sweep was given out', () => Promise.resolve(cell.queues.work.counts.delivered > delivered));
    await cell.settled({ quietMs: 100 });
    return undefined;
  });
}

/** A change of the binding that concerns all of its instances, and changes none. */
export async function fanout(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { cell } = bench;
  const { hands } = cell.consumer;
  return bench.measure('fanout', async () => {
    const { uid } = (await hands.get(resources.clusterBindings, { name: 'widgets' })).metadata;
    const operations = [{ op: 'add', path: '/spec/conflictPolicy', value: 'Adopt' }] as const;
    await hands.patch(resources.clusterBindings, { name: 'widgets' }, { read: { uid }, operations });
    await cell.settled({ quietMs: 500 });
    return undefined;
  });
}

const DRAIN_LIMIT_MS = 1_800_000;

/** Unbinds all. Nothing is bound after it. */
export async function drain(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { hands } = bench.cell.consumer;
  return bench.measure('drain', async () => {
    const { uid, resourceVersion } = (await hands.get(resources.clusterBindings, { name: 'widgets' })).metadata;
    await hands.delete(resources.clusterBindings, { name: 'widgets' }, { uid, resourceVersion });
    await until(
      'the binding is gone',
      async () => (await hands.find(resources.clusterBindings, { name: 'widgets' })) === undefined,
      DRAIN_LIMIT_MS,
    );
    return undefined;
  });
}
