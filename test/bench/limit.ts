import { createKubeClient, type OpenKubeClient } from '../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../lib/kube/kubeconfig.ts';
import { keyOf, type KubeObject } from '../../lib/model/api.ts';
import { systemClock } from '../../lib/model/clock.ts';
import { SYNCER_FINALIZER } from '../../lib/model/markers.ts';
import { copyOf } from '../../lib/reconcile/instance/what-to-apply.ts';
import { widgets, type Cluster } from '../support/bench/cell.ts';
import {
  forEach,
  keyAt,
  range,
  remove,
  setSpec,
  setStatus,
  specOf,
  widgetManifest,
} from '../support/bench/instances.ts';
import type { Bench } from './bench.ts';
import type { Result } from './result.ts';

/**
 * The same writes by a bare loop with the same client and as many under way, and no read: what the machine can do. For a
 * create they are the user's POST, the finalizer, the copy and both statuses; for a change the user's edit and the apply.
 */

/** What five containers with ten reconciles each have under way. */
const PRODUCT_AT_ONCE = 50;
/** Connections and code are warm before anything is timed, as those of the product are. */
const WARMING = 100;
const BASE = 700_000;

interface Pair {
  readonly source: KubeObject;
  readonly copy: KubeObject;
}

interface Loop {
  readonly bench: Bench;
  readonly consumer: Cluster;
  readonly provider: Cluster;
}

const withConnections = (cluster: Cluster): Cluster & { readonly hands: OpenKubeClient } => {
  const egress = { allowLoopback: true };
  const target = parseForeignKubeconfig(cluster.server.kubeconfig, egress);
  return {
    ...cluster,
    hands: createKubeClient(target, { clock: systemClock, egress, maxConnections: PRODUCT_AT_ONCE }),
  };
};

export async function limit(bench: Bench): Promise<Result[]> {
  const { cell } = bench;
  await cell.stopForwarder();
  await cell.settled({ quietMs: 300 });
  const consumer = withConnections(cell.consumer);
  const provider = withConnections(cell.provider);
  const loop = { bench, consumer, provider };
  const warm = range(WARMING, BASE + bench.n);
  const pairs = new Map<number, Pair>();
  const indices = range(bench.n, BASE);
  await forEach(warm, async (index) => void pairs.set(index, await makePair(loop, index)), PRODUCT_AT_ONCE);
  const creates = await bare(bench, 'limit of create', indices, async (index) => {
    pairs.set(index, await makePair(loop, index));
  });
  const change = (index: number): Promise<void> => changePair(loop, pairs.get(index));
  await forEach(warm, change, PRODUCT_AT_ONCE);
  const changes = await bare(bench, 'limit of change', indices, change);
  await forEach([...pairs.keys()], (index) => removePair(loop, index), PRODUCT_AT_ONCE);
  await Promise.all([consumer.hands.close(), provider.hands.close()]);
  await cell.startForwarder();
  await cell.settled({ quietMs: 700 });
  return [creates, changes];
}

async function makePair({ consumer, provider }: Loop, index: number): Promise<Pair> {
  const key = keyAt(index);
  const made = await consumer.hands.create(widgets, widgetManifest(key, specOf(index)));
  const { uid } = made.metadata;
  const finalizers = [{ op: 'add', path: '/metadata/finalizers', value: [SYNCER_FINALIZER] }] as const;
  const source = await consumer.hands.patch(widgets, key, { read: { uid }, operations: finalizers });
  const copy = await provider.hands.create(
    widgets,
    copyOf(source, { ref: widgets, key }, { cluster: consumer.uid, object: uid }),
  );
  const operated = await setStatus(provider, copy, 'Ready');
  await setStatus(consumer, source, 'Ready');
  return { source, copy: operated };
}

async function changePair({ consumer, provider }: Loop, pair: Pair | undefined): Promise<void> {
  if (pair === undefined) throw new Error('fewer were made than are changed');
  const changed = await setSpec(consumer, pair.source, 2);
  const key = keyOf(pair.source);
  const { uid, resourceVersion } = pair.copy.metadata;
  const owner = { cluster: consumer.uid, object: changed.metadata.uid };
  await provider.hands.apply(widgets, copyOf(changed, { ref: widgets, key }, owner), { uid, resourceVersion });
}

async function removePair({ consumer, provider }: Loop, index: number): Promise<void> {
  const key = keyAt(index);
  const { uid } = (await consumer.hands.get(widgets, key)).metadata;
  const operations = [{ op: 'remove', path: '/metadata/finalizers' }] as const;
  await consumer.hands.patch(widgets, key, { read: { uid }, operations });
  await Promise.all([remove(consumer, key), remove(provider, key)]);
}

function bare(
  bench: Bench,
  scenario: string,
  indices: readonly number[],
  act: (index: number) => Promise<unknown>,
): Promise<Result> {
  return bench.measure(scenario, async () => {
    const lags: number[] = [];
    const timed = async (index: number): Promise<void> => {
      const from = performance.now();
      await act(index);
      lags.push(performance.now() - from);
    };
    await forEach(indices, timed, PRODUCT_AT_ONCE);
    return lags;
  });
}
