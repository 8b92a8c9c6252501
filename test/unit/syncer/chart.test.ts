import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { parseWatchPlan, printWatchPlan, watchPlanOf, type WatchPlan } from '../../../lib/model/watch-plan.ts';
import { nodes } from '../../../lib/reconcile/syncer/chart.ts';
import { API, FakeWorld, ago, crd, managed } from '../binding/fake-world.ts';

const yes = (node: string): string => `${node} → yes`;
const no = (node: string): string => `${node} → no`;

const plan: WatchPlan = {
  v: 1,
  generation: 1,
  version: 'v1',
  scope: 'Namespaced',
  connection: 'demo',
  cluster: 'consumer-uid',
  epoch: `sha256:1@${ago(3600)}`,
  provider: true,
};
const shrunk: WatchPlan = { ...plan, epoch: '', provider: false };

/** A managed CRD with a recorded plan. */
function planned(
  recorded: WatchPlan | undefined = plan,
  metadata: object = {},
  spec: Record<string, unknown> = {},
): ReturnType<typeof crd> {
  const { labels, annotations } = managed() as { labels: object; annotations: object };
  const ours = recorded === undefined ? {} : { 'core.kbind.io/watch-plan': printWatchPlan(recorded) };
  return crd({ labels, annotations: { ...annotations, ...ours }, ...metadata }, spec);
}

interface Row {
  readonly edge: string;
  readonly given: (world: FakeWorld) => void;
  readonly passes: readonly string[];
  readonly plan: WatchPlan | undefined;
  readonly waits?: boolean;
  readonly sweeps?: number;
}

const rows: Row[] = [
  {
    edge: `${nodes.start} → ${nodes.crd} → no → ${nodes.stopSyncer} → ${nodes.stop}: gone`,
    given: (world) => world.connection(),
    passes: [nodes.start, no(nodes.crd), nodes.stopSyncer],
    plan: undefined,
  },
  {
    edge: `${nodes.crd} → no → ${nodes.stopSyncer}: deleting, its instances are swept`,
    given: (world) => {
      world.connection();
      world.consumer.put(
        resources.crds,
        planned(plan, { deletionTimestamp: ago(1), finalizers: ['customresourcecleanup.apiextensions.k8s.io'] }),
      );
    },
    passes: [no(nodes.crd), nodes.stopSyncer],
    plan: shrunk,
    sweeps: 1,
  },
  {
    edge: `${nodes.crd} → no → ${nodes.stopSyncer}: deleting without a plan, swept all the same`,
    given: (world) => {
      const { labels, annotations } = managed() as { labels: object; annotations: object };
      world.consumer.put(resources.crds, crd({ labels, annotations, deletionTimestamp: ago(1) }));
    },
    passes: [no(nodes.crd), nodes.stopSyncer],
    plan: undefined,
    sweeps: 1,
  },
  {
    edge: `${nodes.crd} → yes → ${nodes.connection} → no → ${nodes.stopSyncer}: not Ready`,
    given: (world) => {
      world.connection({ ready: false });
      world.consumer.put(resources.crds, planned());
    },
    passes: [yes(nodes.crd), no(nodes.connection), nodes.stopSyncer],
    plan: shrunk,
  },
  {
    edge: `${nodes.connection} → no → ${nodes.stopSyncer}: gone`,
    given: (world) => world.consumer.put(resources.crds, planned()),
    passes: [no(nodes.connection), nodes.stopSyncer],
    plan: shrunk,
  },
  {
    edge: `${nodes.connection} → no → ${nodes.stopSyncer}: deleting counts as not Ready`,
    given: (world) => {
      world.connection({ metadata: { deletionTimestamp: ago(1) } });
      world.consumer.put(resources.crds, planned());
    },
    passes: [no(nodes.connection), nodes.stopSyncer],
    plan: shrunk,
  },
  {
    edge: `${nodes.connection} → no → ${nodes.stopSyncer}: localClusterUID is not set`,
    given: (world) => {
      world.connection({ status: { localClusterUID: '' } });
      world.consumer.put(resources.crds, planned());
    },
    passes: [no(nodes.connection), nodes.stopSyncer],
    plan: shrunk,
  },
  {
    edge: `${nodes.connection} → no → ${nodes.stopSyncer}: where nothing was watched nothing is recorded`,
    given: (world) => {
      world.connection({ ready: false });
      world.consumer.put(resources.crds, crd(managed()));
    },
    passes: [no(nodes.connection), nodes.stopSyncer],
    plan: undefined,
  },
  {
    edge: `${nodes.connection} → yes → ${nodes.engaged} → no → ${nodes.waitProvider} → ${nodes.stop}`,
    given: (world) => {
      world.connection();
      world.consumer.put(resources.crds, planned());
      world.providerError = new KbindError('unavailable', 'connection refused');
    },
    passes: [yes(nodes.connection), no(nodes.engaged), nodes.waitProvider],
    plan: shrunk,
    waits: true,
  },
  {
    edge: `${nodes.engaged} → yes → ${nodes.current} → yes → ${nodes.stop}`,
    given: (world) => {
      world.connection();
      world.consumer.put(resources.crds, planned());
    },
    passes: [yes(nodes.engaged), yes(nodes.current)],
    plan,
  },
  {
    edge: `${nodes.current} → no → ${nodes.stopOld} → ${nodes.version} → ${nodes.watches} → ${nodes.run} → ${nodes.stop}: none yet`,
    given: (world) => {
      world.connection();
      world.consumer.put(resources.crds, crd(managed()));
    },
    passes: [
      no(nodes.current),
      nodes.stopOld,
      `${nodes.version} → v1`,
      `${nodes.watches} → by the forwarder`,
      `${nodes.run} → plan recorded`,
    ],
    plan,
  },
  {
    edge: `${nodes.current} → no → ${nodes.stopOld}: another generation`,
    given: (world) => {
      world.connection();
      world.consumer.put(resources.crds, planned(plan, { generation: 2 }));
    },
    passes: [no(nodes.current), nodes.stopOld],
    plan: { ...plan, generation: 2 },
  },
  {
    edge: `${nodes.current} → no → ${nodes.stopOld}: another epoch of the provider`,
    given: (world) => {
      world.connection({ status: { secretVersion: 'sha256:2' } });
      world.consumer.put(resources.crds, planned());
    },
    passes: [no(nodes.current), nodes.stopOld],
    plan: { ...plan, epoch: `sha256:2@${ago(3600)}` },
  },
  {
    edge: `${nodes.current} → no → ${nodes.stopOld}: readiness is back`,
    given: (world) => {
      world.connection();
      world.consumer.put(resources.crds, planned(shrunk));
    },
    passes: [no(nodes.current), nodes.stopOld],
    plan,
  },
  {
    edge: `${nodes.version}: the first served one, where the storage version is not`,
    given: (world) => {
      world.connection();
      const versions = [
        { name: 'v3', served: false, storage: true },
        { name: 'v1', served: true, storage: false },
        { name: 'v2', served: true, storage: false },
      ];
      world.consumer.put(resources.crds, crd(managed(), { versions }));
    },
    passes: [`${nodes.version} → v1`],
    plan,
  },
];

describe('the chart of the managed-CRD controller', () => {
  test.each(rows)('$edge', async ({ given, passes, plan: want, waits = false, sweeps = 0 }) => {
    const world = new FakeWorld();
    given(world);
    const outcome = await world.reconcileCrd();
    let from = 0;
    for (const line of passes) {
      const found = world.lines.indexOf(line, from);
      expect(found, `${line}\nin\n${world.lines.join('\n')}`).toBeGreaterThanOrEqual(from);
      from = found + 1;
    }
    expect(world.crdNow === undefined ? undefined : watchPlanOf(world.crdNow)).toEqual(want);
    expect(outcome.type).toBe(waits ? 'wait' : 'done');
    expect(world.sweeps).toHaveLength(sweeps);
  });

  test.each(rows)('twice in a row writes nothing: $edge', async ({ given }) => {
    const world = new FakeWorld();
    given(world);
    await world.reconcileCrd();
    const before = world.writes.length;
    await world.reconcileCrd();
    expect(world.writes.slice(before)).toEqual([]);
  });

  test('a missing connection annotation is an error, retried', async () => {
    const world = new FakeWorld();
    world.consumer.put(resources.crds, crd({ labels: { 'core.kbind.io/managed': 'true' } }));
    await expect(world.reconcileCrd()).rejects.toMatchObject({ errorClass: 'misconfigured' });
  });

  test('a CRD that serves no version is an error that names it', async () => {
    const world = new FakeWorld();
    world.connection();
    world.consumer.put(resources.crds, crd(managed(), { versions: [{ name: 'v1', served: false, storage: true }] }));
    await expect(world.reconcileCrd()).rejects.toThrowError(`${API} serves no version`);
  });

  test('a CRD that is not managed is nobody’s business', async () => {
    const world = new FakeWorld();
    world.consumer.put(resources.crds, crd({ deletionTimestamp: ago(1) }));
    await world.reconcileCrd();
    expect(world.sweeps).toEqual([]);
    expect(world.writes).toEqual([]);
  });
});

describe('the annotation', () => {
  test('says what it said', () => {
    expect(parseWatchPlan(printWatchPlan(plan))).toEqual(plan);
  });

  test.each(['', 'null', '{}', '{"v":2}', '{"v":1,"generation":"1"}', '['])('%j is no plan', (text) => {
    expect(parseWatchPlan(text)).toBeUndefined();
  });
});
