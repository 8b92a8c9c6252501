import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { deletionNodes as nodes } from '../../../lib/reconcile/binding/chart.ts';
import { graceLeftMs, nextWalkSeconds, walkNumber } from '../../../lib/reconcile/binding/may-it-end.ts';
import { API, FakeWorld, NOW, ago, crd, managed, widgets } from './fake-world.ts';

const yes = (node: string): string => `${node} → yes`;
const no = (node: string): string => `${node} → no`;
const held = { finalizers: ['core.kbind.io/syncer'] };

/** A binding that was deleted 20 s ago, its managed CRD, a Ready Connection. */
function fixture(world: FakeWorld, kind: 'ClusterBinding' | 'Binding' = 'ClusterBinding'): void {
  world.connection();
  world.binding({ kind, metadata: { deletionTimestamp: ago(20) } });
  world.consumer.put(resources.crds, crd(managed()));
  world.consumer.date = NOW;
}

interface Row {
  readonly edge: string;
  readonly given: (world: FakeWorld) => void;
  readonly passes: readonly string[];
  readonly kind?: 'ClusterBinding' | 'Binding';
  /** Whether the binding is gone, and whether the CRD is. */
  readonly gone: { readonly binding: boolean; readonly crd: boolean };
}

const nothing = { binding: false, crd: false };
const released = { binding: true, crd: false };

const rows: Row[] = [
  {
    edge: `${nodes.start}: without our finalizer → ${nodes.stop}`,
    given: (world) => {
      fixture(world);
      world.binding({ metadata: { deletionTimestamp: ago(20), finalizers: ['other/x'] } });
    },
    passes: [no(nodes.start)],
    gone: nothing,
  },
  {
    edge: `${nodes.start} → ${nodes.provider} → ${nodes.nextApi} → yes → ${nodes.covered} → no → ${nodes.schema} → yes → ${nodes.drain} → ${nodes.clusterBinding} → yes → ${nodes.removeCrd} → ${nodes.nextApi} → no → ${nodes.related} → ${nodes.release} → ${nodes.stop}`,
    given: fixture,
    passes: [
      yes(nodes.start),
      `${nodes.provider} → yes`,
      `${nodes.nextApi} → ${API}`,
      no(nodes.covered),
      yes(nodes.schema),
      `${nodes.drain} → drained`,
      yes(nodes.clusterBinding),
      `${nodes.removeCrd} → requested`,
      no(nodes.nextApi),
      `${nodes.related} → none selected`,
      nodes.release,
    ],
    gone: { binding: true, crd: true },
  },
  {
    edge: `${nodes.provider}: no credentials → ${nodes.nextApi}: goes on without`,
    given: (world) => {
      fixture(world);
      world.providerError = new KbindError('credential', 'Secret kbind/demo does not exist');
    },
    passes: [`${nodes.provider} → no: credential`, `${nodes.nextApi} → ${API}`, nodes.release],
    gone: { binding: true, crd: true },
  },
  {
    edge: `${nodes.provider}: no Connection → ${nodes.nextApi}`,
    given: (world) => {
      fixture(world);
      world.consumer.objects.delete('connections.core.kbind.io|demo');
    },
    passes: [`${nodes.provider} → the Connection is gone`, nodes.release],
    gone: { binding: true, crd: true },
  },
  {
    edge: `${nodes.covered} → yes → ${nodes.nextApi}: a ClusterBinding`,
    given: (world) => {
      fixture(world);
      world.binding({ metadata: { name: 'other', uid: 'o' } });
      world.instance('a', held);
    },
    passes: [yes(nodes.covered), no(nodes.nextApi), nodes.release],
    gone: released,
  },
  {
    edge: `${nodes.covered} → yes → ${nodes.nextApi}: a Binding of any namespace and Connection`,
    given: (world) => {
      fixture(world);
      world.binding({
        kind: 'Binding',
        metadata: { name: 'other', uid: 'o', namespace: 'far' },
        spec: { connectionRef: { name: 'else' } },
      });
    },
    passes: [yes(nodes.covered), nodes.release],
    gone: released,
  },
  {
    edge: `${nodes.covered} → yes: an unreadable binding that lists it counts`,
    given: (world) => {
      fixture(world);
      world.binding({ metadata: { name: 'other', uid: 'o' }, spec: { conflictPolicy: 'Whatever' } });
    },
    passes: [yes(nodes.covered), nodes.release],
    gone: released,
  },
  {
    edge: `${nodes.covered} → no: another binding lists it, and is deleting too`,
    given: (world) => {
      fixture(world);
      world.binding({ metadata: { name: 'other', uid: 'o', deletionTimestamp: ago(1) } });
    },
    passes: [no(nodes.covered), yes(nodes.schema)],
    gone: { binding: true, crd: true },
  },
  {
    edge: `${nodes.schema} → no → ${nodes.nextApi}: no CRD`,
    given: (world) => {
      fixture(world);
      world.consumer.objects.delete(`customresourcedefinitions.apiextensions.k8s.io|${API}`);
    },
    passes: [no(nodes.schema), no(nodes.nextApi), nodes.release],
    gone: { binding: true, crd: true },
  },
  {
    edge: `${nodes.schema} → no → ${nodes.nextApi}: no served version`,
    given: (world) => {
      fixture(world);
      world.consumer.put(resources.crds, crd(managed(), { versions: [{ name: 'v1', served: false, storage: true }] }));
    },
    passes: [no(nodes.schema), nodes.release],
    gone: released,
  },
  {
    edge: `${nodes.clusterBinding} → no → ${nodes.nextApi}: a Binding keeps the CRD`,
    kind: 'Binding',
    given: (world) => fixture(world, 'Binding'),
    passes: [`${nodes.drain} → drained`, no(nodes.clusterBinding), no(nodes.nextApi), nodes.release],
    gone: released,
  },
  {
    edge: `${nodes.drain}: instances still carry our finalizer: nothing is released`,
    given: (world) => {
      fixture(world);
      world.instance('a', held);
      world.instance('b');
    },
    passes: [`${nodes.drain} → 1 left`],
    gone: nothing,
  },
  {
    edge: `${nodes.drain}: a Binding's scope is its namespace`,
    kind: 'Binding',
    given: (world) => {
      fixture(world, 'Binding');
      world.consumer.put(widgets, { metadata: { name: 'a', namespace: 'other', ...held } });
    },
    passes: [`${nodes.drain} → drained`, nodes.release],
    gone: released,
  },
];

const isGone = (world: FakeWorld, kind: Row['kind']): boolean =>
  world.bindingNow(kind) === undefined && !exists(world, kind);
const exists = (world: FakeWorld, kind: Row['kind']): boolean =>
  kind === 'Binding'
    ? world.consumer.at(resources.bindings, { namespace: 'team-a', name: 'b' }) !== undefined
    : world.consumer.at(resources.clusterBindings, { name: 'b' }) !== undefined;

describe('the deletion chart', () => {
  test.each(rows)('$edge', async ({ given, passes, kind, gone }) => {
    const world = new FakeWorld();
    given(world);
    await world.reconcile(kind);
    let from = 0;
    for (const line of passes) {
      const found = world.lines.indexOf(line, from);
      expect(found, `${line}\nin\n${world.lines.join('\n')}`).toBeGreaterThanOrEqual(from);
      from = found + 1;
    }
    expect({ binding: isGone(world, kind), crd: world.crdNow === undefined }).toEqual(gone);
  });
});

describe('the first eight seconds', () => {
  const at = (
    seconds: number,
    date: number | undefined,
  ): { deletedAt: number; now: number; serverDate: number | undefined } => ({
    deletedAt: 0,
    now: seconds * 1000,
    serverDate: date === undefined ? undefined : date * 1000,
  });
  test.each([
    ['both clocks early', at(3, 3), 5000],
    ['ours has passed, the server has not', at(9, 7), 1000],
    ['the server has passed, ours has not', at(6, 20), 2000],
    ['the server has shown none', at(60, undefined), 8000],
    ['both have passed', at(8, 8), 0],
  ])('%s', (_name, times, left) => {
    expect(graceLeftMs(times)).toBe(left);
  });

  test.each([
    ['7 s after', ago(7), NOW, 1],
    ['no Date seen yet', ago(20), undefined, 8],
    ['Date lags', ago(8), NOW - 3000, 3],
  ])('%s: no list, nothing told, again in time', async (_name, deletionTimestamp, date, seconds) => {
    const world = new FakeWorld();
    fixture(world);
    world.binding({ metadata: { deletionTimestamp } });
    world.instance('a', held);
    world.consumer.date = date;
    const asked: string[] = [];
    world.consumer.beforeRequest = ({ verb, api }) => asked.push(`${verb} ${api}`);
    expect(await world.reconcile()).toMatchObject({ type: 'wait', firstSeconds: seconds, maxSeconds: seconds });
    expect(world.told).toEqual([]);
    expect(asked).not.toContain('list widgets.example.org');
    expect(world.condition('Ready')).toBe('False/Pending');
  });
});

describe('walks', () => {
  test.each([
    [8, 2],
    [10, 4],
    [14, 8],
    [22, 16],
    [38, 32],
    [70, 60],
    [130, 60],
    [1000, 60],
  ])('after %i s the next one is %i s later', (now, seconds) => {
    expect(nextWalkSeconds({ deletedAt: 0, now: now * 1000, serverDate: undefined })).toBe(seconds);
  });

  const numberAt = (seconds: number): number =>
    walkNumber({ deletedAt: 0, now: seconds * 1000, serverDate: undefined });

  test('each has the next number, however late the requeues come', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 12, maxLength: 12 }), (delays) => {
        let now = 8_000;
        let before = -1;
        for (const delay of delays) {
          now += delay;
          const times = { deletedAt: 0, now, serverDate: undefined };
          const number = walkNumber(times);
          expect(number).toBeGreaterThan(before);
          before = number;
          now += nextWalkSeconds(times) * 1000;
        }
      }),
    );
    expect([8, 10, 14, 22, 38, 70, 130, 190].map(numberAt)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('that come in between have the number of the last one', () => {
    expect([8.5, 9.9, 10.1, 13.9, 14.1, 21.9, 69, 129].map(numberAt)).toEqual([0, 0, 1, 1, 2, 2, 4, 5]);
  });

  test('each enqueues every instance in scope with our finalizer, and says how many are left', async () => {
    const world = new FakeWorld();
    fixture(world);
    for (const name of ['a', 'b', 'c']) world.instance(name, held);
    world.instance('free');
    const outcome: Outcome = await world.reconcile();
    expect(world.told).toEqual([{ change: 'b-uid/2', keys: ['team-a/a', 'team-a/b', 'team-a/c'] }]);
    expect(world.message('Ready')).toContain(`3 instances of ${API}`);
    expect(outcome).toMatchObject({ type: 'wait', firstSeconds: 14 });
    world.time += 14_000;
    world.consumer.date = world.time;
    await world.reconcile();
    expect(world.told[1]?.change).toBe('b-uid/3');
    expect(world.crdNow).toBeDefined();
  });

  test('that an event brings about writes no new number, so that its echo is no walk after another', async () => {
    const world = new FakeWorld();
    fixture(world);
    for (const name of ['a', 'b']) world.instance(name, held);
    await world.reconcile();
    world.instance('a');
    await world.reconcile();
    expect(world.told).toHaveLength(2);
    expect(world.message('Ready')).toContain(`2 instances of ${API}`);
    await world.reconcile('ClusterBinding', 2);
    expect(world.message('Ready')).toContain(`1 instance of ${API}`);
  });
});

describe('what is not this binding’s to clean up', () => {
  test.each([
    [
      'lacks our managed label',
      { annotations: { 'core.kbind.io/connection': 'demo' } },
      'no label core.kbind.io/managed',
    ],
    ['is pinned to another Connection', managed('other'), 'pinned to Connection other'],
    ['is pinned to none', { labels: { 'core.kbind.io/managed': 'true' } }, 'pinned to no Connection'],
  ])('a CRD that %s is skipped, with an Event', async (_name, metadata, words) => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.put(resources.crds, crd(metadata));
    world.instance('a', held);
    await world.reconcile();
    expect(world.told).toEqual([]);
    expect(world.crdNow).toBeDefined();
    expect(isGone(world, undefined)).toBe(true);
    expect(world.events).toMatchObject([{ reason: 'APISkipped' }]);
    expect(world.events[0]?.message).toContain(words);
  });
});

describe('the deletion of the CRD', () => {
  /** Does something between a read and the write that rests on it. */
  function meanwhile(world: FakeWorld, when: string, act: () => void): void {
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (`${verb} ${api}` !== when) return;
      world.consumer.beforeRequest = () => undefined;
      act();
    };
  }

  test('is announced with the number of instances that go with it', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.instance('a');
    world.instance('b');
    await world.reconcile();
    expect(world.events).toMatchObject([{ reason: 'CRDDeleted' }]);
    expect(world.events[0]?.message).toContain('2 Widget instances');
  });

  test('a bound-by that is written meanwhile stops it, and the newcomer is found', async () => {
    const world = new FakeWorld();
    fixture(world);
    meanwhile(world, 'delete customresourcedefinitions.apiextensions.k8s.io', () => {
      world.binding({ metadata: { name: 'newcomer', uid: 'n' } });
      const present = world.crdNow;
      const annotations = { ...present?.metadata.annotations, 'core.kbind.io/bound-by': 'n/1' };
      world.consumer.put(resources.crds, { ...present, metadata: { ...present?.metadata, annotations } });
    });
    await world.reconcile();
    expect(world.lines.some((line) => line.startsWith('read again'))).toBe(true);
    expect(world.crdNow).toBeDefined();
    expect(isGone(world, undefined)).toBe(true);
  });

  describe('that finds more instances than it tells by itself', () => {
    const many = (world: FakeWorld, kind?: 'Binding'): void => {
      fixture(world, kind);
      for (let n = 0; n < 101; n += 1) world.instance(`n${n}`, held);
    };
    /** 20 s after the deletion, 8 s of them grace: the walk after 2 and 4 s. The other sweep is asked for by the status that changed. */
    const ofWalk = ({ sweeps }: FakeWorld) => sweeps.filter(({ id }) => id === 'b-uid/2');

    test('leaves them to one sweep, which leaves other clusters’ keys room', async () => {
      const world = new FakeWorld();
      many(world);
      expect(await world.reconcile('ClusterBinding', 2)).toMatchObject({ type: 'wait' });
      expect(world.told).toEqual([]);
      const sweep = { v: 1, type: 'sweep', cluster: 'consumer-uid', apis: [API], id: 'b-uid/2', retry: true };
      expect(ofWalk(world)).toEqual([sweep]);
    });

    test('leaves those of a Binding to one of its namespace', async () => {
      const world = new FakeWorld();
      many(world, 'Binding');
      await world.reconcile('Binding', 2);
      expect(ofWalk(world)).toMatchObject([{ apis: [API], namespace: 'team-a' }]);
    });

    test('asks for none when an event brings it about between two that are waited for', async () => {
      const world = new FakeWorld();
      many(world);
      expect(await world.reconcile('ClusterBinding')).toMatchObject({ type: 'wait' });
      expect([...ofWalk(world), ...world.told]).toEqual([]);
    });
  });

  test('a newcomer after the drain’s list is seen by the one after it', async () => {
    const world = new FakeWorld();
    fixture(world);
    meanwhile(world, `list ${API}`, () => world.binding({ metadata: { name: 'newcomer', uid: 'n' } }));
    await world.reconcile();
    expect(world.lines).toContain(`${nodes.removeCrd} → kept for ClusterBinding newcomer`);
    expect(world.crdNow).toBeDefined();
  });

  test('a refusal keeps the finalizer and says so', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (verb === 'delete' && api.startsWith('customresource'))
        throw new KbindError('forbidden', 'delete is forbidden');
    };
    expect(await world.reconcile()).toMatchObject({ type: 'wait', firstSeconds: 30 });
    expect(world.condition('Ready')).toBe('False/Forbidden');
    expect(world.condition('PermissionDenied')).toBe('True/Forbidden');
  });

  test('a failed list decides nothing', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (verb === 'list' && api === 'bindings.core.kbind.io') throw new KbindError('unavailable', 'etcd is away');
    };
    await expect(world.reconcile()).rejects.toThrowError('etcd is away');
    expect(world.crdNow).toBeDefined();
    expect(isGone(world, undefined)).toBe(false);
  });

  test('the consumer’s identity is asked for before it and before the finalizer goes', async () => {
    const world = new FakeWorld();
    fixture(world);
    await world.reconcile();
    expect(world.confirmed).toEqual(['consumer 0', 'consumer 0']);
  });

  test('a CRD that is already going is not deleted again', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.put(resources.crds, crd({ ...managed(), deletionTimestamp: ago(3) }));
    await world.reconcile();
    expect(world.writes.filter((write) => write.startsWith('delete'))).toEqual([]);
    expect(isGone(world, undefined)).toBe(true);
  });

  test('a CRD that never was established is deleted without a list of instances', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.put(resources.crds, crd(managed(), {}, [{ type: 'NamesAccepted', status: 'False' }]));
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (verb === 'list' && api === API) throw new KbindError('unserved', '404 page not found');
    };
    await world.reconcile();
    expect(world.crdNow).toBeUndefined();
  });
});

describe(`${nodes.release}, and the Connection that waits for it`, () => {
  const toldConnections = (world: FakeWorld): FakeWorld['told'] =>
    world.told.filter(({ change }) => change.endsWith('/released'));

  test('a deleting Connection is told, once the binding is gone', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.connection({ metadata: { deletionTimestamp: ago(15) } });
    const tells = { before: 0 };
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (verb === 'patch' && api.startsWith('clusterbindings')) tells.before = toldConnections(world).length;
    };
    await world.reconcile();
    expect(toldConnections(world)).toEqual([{ change: 'b-uid/released', keys: ['/demo'] }]);
    expect(tells.before).toBe(0);
  });

  test('a Connection that stays is not', async () => {
    const world = new FakeWorld();
    fixture(world);
    await world.reconcile();
    expect(toldConnections(world)).toEqual([]);
  });
});
