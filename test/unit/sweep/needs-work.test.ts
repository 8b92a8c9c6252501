import { describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import type { BoundApi } from '../../../lib/model/kinds.ts';
import { parseBinding, parseConnection } from '../../../lib/model/kinds.ts';
import { printWatchPlan } from '../../../lib/model/watch-plan.ts';
import { instanceApi } from '../../../lib/reconcile/instance/which-api.ts';
import { withCounts } from '../../../lib/sweep/binding-counts.ts';
import { planFate } from '../../../lib/sweep/done-plans.ts';
import { judge, type SweptApi } from '../../../lib/sweep/needs-work.ts';
import { runSweep } from '../../../lib/sweep/sweep.ts';
import { API, ago, FINALIZER, InstanceWorld, KEY, NOW, ready, widgets } from '../instance/instance-world.ts';

/** What a sweep knows of an in-memory world. */
function sweptOf(world: InstanceWorld): SweptApi {
  const { consumer } = world;
  const crd = consumer.at(resources.crds, { name: API });
  const connection = consumer.at(resources.connections, { name: 'demo' });
  const binding = consumer.at(resources.clusterBindings, { name: 'b' });
  if (crd === undefined) throw new Error('no CRD');
  return {
    api: instanceApi(crd),
    cluster: 'consumer-uid',
    lists: { clusterBindings: binding === undefined ? [] : [parseBinding(binding, 'ClusterBinding')], bindings: [] },
    connection: connection === undefined ? undefined : parseConnection(connection),
    serverDate: NOW,
  };
}

/** A world in which everything is synced. */
async function synced(): Promise<InstanceWorld> {
  const world = new InstanceWorld();
  await world.instanceOutcome();
  return world;
}

const change = (object: KubeObject | undefined, metadata: object, fields: object = {}): KubeObject => {
  if (object === undefined) throw new Error('no object');
  return { ...object, ...fields, metadata: { ...object.metadata, ...metadata } };
};

describe('what a sweep enqueues', () => {
  const rows: [
    string,
    (world: InstanceWorld) => [KubeObject, KubeObject | undefined | 'unknown'],
    string | undefined,
  ][] = [
    ['nothing when nothing differs', (w) => [change(w.sourceNow, {}), w.copyNow], undefined],
    [
      'no finalizer though a Ready binding covers it',
      (w) => [change(w.sourceNow, { finalizers: [] }), undefined],
      'no finalizer',
    ],
    ['deleting', (w) => [change(w.sourceNow, { deletionTimestamp: ago(1) }), w.copyNow], 'deleting'],
    [
      'deleting without our finalizer: nothing',
      (w) => [change(w.sourceNow, { deletionTimestamp: ago(1), finalizers: ['x/y'] }), undefined],
      undefined,
    ],
    ['no copy', (w) => [change(w.sourceNow, {}), undefined], 'no copy'],
    ['a copy that is not ours', (w) => [change(w.sourceNow, { uid: 'new' }), w.copyNow], 'the copy is not ours'],
    [
      'another applied hash',
      (w) => [change(w.sourceNow, {}, { spec: { size: 'z' } }), w.copyNow],
      'another applied hash or a marker missing',
    ],
    [
      'a marker missing',
      (w) => [change(w.sourceNow, {}), change(w.copyNow, { labels: {} })],
      'another applied hash or a marker missing',
    ],
    ['drifted spec', (w) => [change(w.sourceNow, {}), change(w.copyNow, {}, { spec: { size: 'z' } })], 'drifted spec'],
    [
      'differing status',
      (w) => [change(w.sourceNow, {}), change(w.copyNow, {}, { status: { phase: 'Up' } })],
      'differing status',
    ],
    [
      'a conflict',
      (w) => [change(w.sourceNow, { labels: { 'core.kbind.io/conflict': 'true' } }), w.copyNow],
      'conflict',
    ],
    [
      'a copy that is going',
      (w) => [change(w.sourceNow, {}), change(w.copyNow, { deletionTimestamp: ago(1) })],
      'the copy is going',
    ],
    ['nothing where the provider could not be asked', (w) => [change(w.sourceNow, {}), 'unknown'], undefined],
  ];
  test.each(rows)('%s', async (_name, given, expected) => {
    const world = await synced();
    const [source, copy] = given(world);
    const { work, synced: isSynced } = judge(sweptOf(world), source, copy);
    expect(work).toBe(expected);
    expect(isSynced).toBe(expected === undefined && copy !== 'unknown' && copy !== undefined);
  });

  test('to be drained, once 8 s have passed', async () => {
    const world = await synced();
    for (const [seconds, expected] of [
      [9, 'to be drained'],
      [7, undefined],
    ] as const) {
      world.binding({ metadata: { finalizers: ['core.kbind.io/cleanup'], deletionTimestamp: ago(seconds) } });
      expect(judge(sweptOf(world), change(world.sourceNow, {}), world.copyNow).work).toBe(expected);
    }
  });

  test('while the Connection is not Ready: deletions of Orphans only', async () => {
    const world = await synced();
    world.connection({ ready: false });
    const swept = sweptOf(world);
    const going = { deletionTimestamp: ago(1), finalizers: [FINALIZER] };
    const orphan = { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } };
    expect(judge(swept, change(world.sourceNow, {}), 'unknown').work).toBeUndefined();
    expect(judge(swept, change(world.sourceNow, going), 'unknown').work).toBeUndefined();
    expect(judge(swept, change(world.sourceNow, { ...going, ...orphan }), 'unknown').work).toBe('deleting');
  });
});

describe('the counts of a binding', () => {
  const bound: BoundApi[] = [{ name: API, conflictCount: 2, crdHash: 'sha256:1' }];
  const counted = (status: object, bothSides = true) => {
    const world = new InstanceWorld();
    const object = world.binding({ metadata: { finalizers: [] }, status: { ...ready(), ...status } });
    const tally = { finalizers: 3, bindings: { 'b-uid': [3, 2] as const }, bothSides };
    return withCounts(parseBinding(object, 'ClusterBinding'), new Map([[API, tally]]));
  };
  test('are added to what its own controller wrote', () => {
    expect(counted({ boundAPIs: bound })).toEqual([{ ...bound[0], instances: 3, synced: 2, pending: 1 }]);
  });
  test('are not written again, nor when one side was not seen', () => {
    expect(counted({ boundAPIs: [{ ...bound[0], instances: 3, synced: 2, pending: 1 }] })).toBeUndefined();
    expect(counted({ boundAPIs: bound }, false)).toBeUndefined();
  });
});

describe('what becomes of a watch plan', () => {
  const plan = (provider: boolean): string =>
    printWatchPlan({
      v: 1,
      generation: 1,
      version: 'v1',
      scope: 'Namespaced',
      connection: 'demo',
      cluster: 'c',
      epoch: '',
      provider,
    });
  const fate = (provider: boolean | undefined, connectionReady: boolean, finalizers: number) => {
    const world = new InstanceWorld();
    world.connection({ ready: connectionReady });
    const { connection } = sweptOf(world);
    const annotations = provider === undefined ? {} : { 'core.kbind.io/watch-plan': plan(provider) };
    const crd = { apiVersion: '', kind: '', metadata: { name: API, uid: '', resourceVersion: '', annotations } };
    return planFate(crd, connection, finalizers);
  };
  test.each([
    { name: 'stays while the Connection is Ready', given: [true, true, 0], expected: 'keep' },
    { name: 'shrinks once it is not', given: [true, false, 0], expected: 'shrink' },
    { name: 'shrunk, it stays while an instance carries our finalizer', given: [false, false, 1], expected: 'keep' },
    { name: 'shrunk, it goes when none does', given: [false, false, 0], expected: 'remove' },
    { name: 'none is none', given: [undefined, false, 0], expected: 'keep' },
  ] as const)('$name', ({ given, expected }) => {
    const [provider, connectionReady, finalizers] = given;
    expect(fate(provider, connectionReady, finalizers)).toBe(expected);
  });
});

test('a CRD that cannot be used does not stop the sweep of the others', async () => {
  const world = new InstanceWorld({ finalizers: [] });
  const broken = { name: 'broken.example.org', labels: { 'core.kbind.io/managed': 'true' } };
  world.consumer.put(resources.crds, { metadata: broken, spec: { versions: [] } });
  const request = { v: 1, type: 'sweep', cluster: 'consumer-uid', id: 'x', retry: true } as const;
  expect(await runSweep(world.world(), request, { deadline: NOW + 1 })).toBeUndefined();
  expect(world.told).toEqual([{ change: 'x', keys: [`${KEY.namespace}/${KEY.name}`] }]);
  expect(world.consumer.at(widgets, KEY)?.metadata.finalizers).toEqual([]);
});
