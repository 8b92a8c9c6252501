import { keyText } from '../../lib/model/api.ts';
import { reconcileRequest } from '../../lib/model/request.ts';
import { reconcileMessage } from '../../lib/queue/queues.ts';
import { createInstance, editStatus, keyAt, range, remove, setSpec, setStatus } from '../support/bench/instances.ts';
import { API, phaseOf, seenBy, sizeOf, type Bench } from './bench.ts';
import { percentile, type Result } from './result.ts';

/** What users and providers do to instances. Whoever writes has seen the object: there are no reads but the product's. */

/** New instances, until each has the status that the provider's operator gives its copy. */
export async function create(bench: Bench): Promise<Result> {
  const { cell, consumer, provider, n } = bench;
  const operated: Promise<unknown>[] = [];
  provider.onObject = (copy) => {
    if (copy.status === undefined) operated.push(setStatus(cell.provider, copy, 'Ready'));
  };
  const result = await bench.measure('create', () =>
    bench.each(
      range(n, consumer.size),
      (index) => createInstance(cell.consumer, index),
      (key) => consumer.seen(key, (object) => phaseOf(object) === 'Ready'),
    ),
  );
  provider.onObject = () => undefined;
  await Promise.all(operated);
  return result;
}

async function changeAll(bench: Bench, scenario: string): Promise<Result> {
  const { cell, consumer, provider } = bench;
  const size = bench.next();
  return bench.measure(scenario, () =>
    bench.each(
      range(bench.n),
      (index) => setSpec(cell.consumer, seenBy(consumer, keyAt(index)), size),
      (key) => provider.seen(key, (object) => sizeOf(object) === size),
    ),
  );
}

/** The first change of each instance makes its copy's fields ours by Apply: a write more than any later one. */
export async function change(bench: Bench): Promise<Result[]> {
  await bench.atRest();
  return [await changeAll(bench, 'first change'), await changeAll(bench, 'change')];
}

export async function status(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { cell, consumer, provider } = bench;
  const phase = `Phase${bench.next()}`;
  return bench.measure('status', () =>
    bench.each(
      range(bench.n),
      (index) => setStatus(cell.provider, seenBy(provider, keyAt(index)), phase),
      (key) => consumer.seen(key, (object) => phaseOf(object) === phase),
    ),
  );
}

export async function deletion(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { cell, consumer } = bench;
  return bench.measure('delete', () =>
    bench.each(
      range(bench.n),
      (index) => remove(cell.consumer, keyAt(index)),
      (key) => consumer.seen(key, (object) => object === undefined),
    ),
  );
}

/** Every key reconciled twice though nothing changed. */
export async function noop(bench: Bench): Promise<Result> {
  await bench.atRest();
  const { cell, n } = bench;
  const round = async (name: string): Promise<void> => {
    for (const index of range(n)) {
      const request = reconcileRequest(cell.consumer.uid, 'instance', keyAt(index), { api: API });
      cell.queues.instances.send(reconcileMessage(request, `noop/${name}/${bench.next()}`).message);
    }
    await cell.settled({ quietMs: 100 });
  };
  return bench.measure(
    'noop',
    async () => {
      await round('first');
      await round('second');
      return undefined;
    },
    { n: 2 * n },
  );
}

const SINGLES = 50;

/** One object at a time: create to copy, status to consumer, delete to gone. */
export async function lag(bench: Bench): Promise<Result> {
  const { cell, consumer, provider } = bench;
  const lags: Record<'create' | 'status' | 'delete', number[]> = { create: [], status: [], delete: [] };
  const timed = async (into: number[], act: () => Promise<unknown>, effect: () => Promise<number>): Promise<void> => {
    const from = performance.now();
    await act();
    into.push(Math.max(0, (await effect()) - from));
  };
  const one = async (index: number): Promise<void> => {
    const key = keyText(keyAt(index));
    await timed(
      lags.create,
      () => createInstance(cell.consumer, index),
      () => provider.seen(key, (copy) => copy !== undefined),
    );
    await timed(
      lags.status,
      () => editStatus(cell.provider, keyAt(index), 'Ready'),
      () => consumer.seen(key, (object) => phaseOf(object) === 'Ready'),
    );
    await timed(
      lags.delete,
      () => remove(cell.consumer, keyAt(index)),
      () => consumer.seen(key, (object) => object === undefined),
    );
  };
  return bench.measure(
    'lag',
    async () => {
      for (const index of range(SINGLES, 800_000)) await one(index);
      return Object.values(lags).flat();
    },
    { n: SINGLES, more: () => Object.assign({}, ...Object.entries(lags).map(percentiles)) as Record<string, number> },
  );
}

const percentiles = ([name, values]: readonly [string, readonly number[]]): Record<string, number> => ({
  [`${name}P50`]: Math.round(percentile(values, 0.5)),
  [`${name}P99`]: Math.round(percentile(values, 0.99)),
});
