import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { parseBinding } from '../../../lib/model/kinds.ts';
import {
  CONFLICT_MARKER,
  CONSUMER_CLUSTER_UID,
  CONSUMER_OBJECT_UID,
  SECRET_REF_ANNOTATION,
} from '../../../lib/model/markers.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { reconcileConnection } from '../../../lib/reconcile/connection/reconcile.ts';
import { tellBindingDependents } from '../../../lib/reconcile/tell-dependents.ts';
import { runSweep } from '../../../lib/sweep/sweep.ts';
import { ago, crd, exported, FakeWorld, managed, NOW } from '../binding/fake-world.ts';
import { API, InstanceWorld, ready } from '../instance/instance-world.ts';

/** Everything that a reconcile may take for absent on the consumer, and what it does then. */
const rows: readonly [string, () => FakeWorld, (world: FakeWorld) => Promise<unknown>][] = [
  [
    'an instance',
    () => {
      const world = new InstanceWorld();
      world.consumer.objects.delete('widgets.example.org|team-a/w');
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'readiness of a Connection',
    () => {
      const world = new InstanceWorld();
      world.connection({ status: { conditions: [] } });
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'readiness of the Connection that a deletion needs',
    () => {
      const world = new InstanceWorld({ deletionTimestamp: ago(1) });
      world.connection({ status: { conditions: [] } });
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'the managed label of a CRD',
    () => {
      const world = new InstanceWorld();
      world.crd({});
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'our finalizer on a deleting instance',
    () => new InstanceWorld({ deletionTimestamp: ago(1), finalizers: ['hold/me'] }),
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'the API of an instance',
    () => {
      const world = new InstanceWorld();
      world.consumer.objects.delete(`customresourcedefinitions.apiextensions.k8s.io|${API}`);
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'the binding of an instance',
    () => {
      const world = new InstanceWorld();
      world.consumer.objects.delete('clusterbindings.core.kbind.io|b');
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  [
    'the Connection of a deleting instance',
    () => {
      const world = new InstanceWorld({ deletionTimestamp: '2026-11-30T11:59:59Z' });
      world.consumer.objects.delete('connections.core.kbind.io|demo');
      return world;
    },
    (world) => (world as InstanceWorld).instanceOutcome(),
  ],
  ['a binding', () => new FakeWorld(), (world) => world.reconcile()],
  ['a CRD', () => new FakeWorld(), (world) => world.reconcileCrd()],
  [
    'a Connection',
    () => new FakeWorld(),
    (world) => reconcileConnection(world.world(), reconcileRequest('consumer-uid', 'connection', { name: 'demo' })),
  ],
  [
    'what a sweep would enqueue',
    () => {
      const world = new InstanceWorld();
      world.consumer.objects.delete('widgets.example.org|team-a/w');
      return world;
    },
    (world) =>
      runSweep(
        world.world(),
        { v: 1, type: 'sweep', cluster: 'consumer-uid', apis: [API], id: 's', retry: true },
        { deadline: Number.POSITIVE_INFINITY },
      ),
  ],
];

describe('absent on the consumer is only what the consumer itself does not have (spec §2.3)', () => {
  test.each(rows)('%s: the cluster is asked who it is before work ends for it', async (_what, given, reconcile) => {
    const world = given();
    await reconcile(world);
    expect(world.confirmed).toContain('consumer 0');
  });

  test.each(rows)(
    '%s: another cluster behind the address means that it has to be done again',
    async (_what, given, reconcile) => {
      const world = given();
      world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
      await expect(reconcile(world)).rejects.toMatchObject({ errorClass: 'identity' });
    },
  );

  test('what is there needs no such question', async () => {
    const world = new InstanceWorld();
    world.copy(undefined);
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'synced' });
    expect(world.confirmed.filter((asked) => asked.startsWith('consumer'))).toEqual([]);
    expect(world.consumer.at(resources.connections, { name: 'demo' })).toBeDefined();
  });
});

describe('a consumer CRD is written only where both clusters, asked after the reads, are the ones that were meant', () => {
  const crds: readonly [string, (world: FakeWorld) => void][] = [
    ['installed', () => undefined],
    [
      'stamped',
      (world) => {
        world.connection({ spec: { schema: { pullPolicy: 'None' } } });
        world.consumer.put(resources.crds, crd({}));
      },
    ],
    [
      'replaced',
      (world) => {
        const { labels, annotations } = managed() as { labels: object; annotations: object };
        const stale = { ...annotations, 'core.kbind.io/schema-hash': 'sha256:0' };
        world.consumer.put(resources.crds, crd({ labels, annotations: stale }));
      },
    ],
  ];
  const bound = (given: (world: FakeWorld) => void): FakeWorld => {
    const world = new FakeWorld();
    world.connection();
    world.binding();
    world.provider.put(resources.crds, crd(exported()));
    given(world);
    return world;
  };

  test.each(crds)('%s', async (_what, given) => {
    const world = bound(given);
    await world.reconcile();
    expect(world.confirmed).toEqual(['provider 0', 'consumer 0', 'consumer 0']);
    expect(
      world.writes.filter((write) => write.endsWith('customresourcedefinitions.apiextensions.k8s.io')),
    ).not.toEqual([]);
  });

  test.each(crds)('not %s in another cluster', async (_what, given) => {
    const world = bound(given);
    world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
    await expect(world.reconcile()).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.writes.filter((write) => write.endsWith('customresourcedefinitions.apiextensions.k8s.io'))).toEqual(
      [],
    );
  });
});

test('a Connection that is pinned to another consumer is told so only by the cluster that was meant, asked after the read', async () => {
  const fake = new FakeWorld();
  fake.connection({
    metadata: {
      finalizers: ['core.kbind.io/cleanup'],
      annotations: { [SECRET_REF_ANNOTATION]: 'kbind/demo/kubeconfig' },
    },
    status: { localClusterUID: 'another' },
  });
  const world = fake.world();
  const side = { ...world.consumer, which: 'provider', uid: 'provider-uid' } as const;
  const probe = () => Promise.resolve({ side, secretVersion: 'sha256:1', contextNamespace: undefined });
  const consumer = {
    ...world.consumer,
    confirmIdentity: (maxAgeMs: number) =>
      maxAgeMs > 0
        ? Promise.resolve()
        : Promise.reject(new KbindError('identity', 'another cluster', { side: 'consumer' })),
  };
  const request = reconcileRequest('consumer-uid', 'connection', { name: 'demo' });
  await expect(
    reconcileConnection({ ...world, consumer, providers: { ...world.providers, probe } }, request),
  ).rejects.toMatchObject({ errorClass: 'identity' });
  expect(fake.writes).toEqual([]);
});

test('a Connection is released only by the cluster that was meant, asked after the lists of what holds it', async () => {
  const world = new FakeWorld();
  world.consumer.date = NOW;
  world.connection({ metadata: { deletionTimestamp: ago(9), finalizers: ['core.kbind.io/cleanup'] } });
  await reconcileConnection(world.world(), reconcileRequest('consumer-uid', 'connection', { name: 'demo' }));
  expect(world.confirmed.at(-1)).toBe('consumer 0');
  expect(world.writes.at(-1)).toBe('patch connections.core.kbind.io');
});

describe('a syncer finalizer is put on and taken off only in the cluster that was meant, asked after the read', () => {
  const deleting = { deletionTimestamp: ago(1) };
  const orphan = { ...deleting, annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } };
  const changes: readonly [string, () => InstanceWorld, readonly string[]][] = [
    ['an instance that is new', () => new InstanceWorld({ finalizers: [] }), ['consumer 0', 'provider 0']],
    ['one whose copy is gone', () => new InstanceWorld(deleting), ['provider 0', 'consumer 0']],
    ['an orphan', () => new InstanceWorld(orphan), ['consumer 0']],
  ];

  test.each(changes)('%s', async (_what, given, asked) => {
    const world = given();
    const before = world.sourceNow?.metadata.finalizers;
    await world.instanceOutcome();
    expect(world.confirmed.slice(0, asked.length)).toEqual(asked);
    expect(world.sourceNow?.metadata.finalizers).not.toEqual(before);
  });

  test.each(changes)('not in another cluster: %s', async (_what, given) => {
    const world = given();
    world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.consumer.writes).toEqual([]);
    expect(world.provider.writes).toEqual([]);
  });
});

describe('a cleanup finalizer is put on only in the cluster that was meant, asked after the read', () => {
  const connection = reconcileRequest('consumer-uid', 'connection', { name: 'demo' });
  const kinds: readonly [string, (world: FakeWorld) => Promise<unknown>][] = [
    [
      'a binding',
      (world) => {
        world.connection();
        world.binding({ metadata: { finalizers: [] } });
        return world.reconcile();
      },
    ],
    [
      'a Connection',
      (world) => {
        world.connection();
        return reconcileConnection(world.world(), connection);
      },
    ],
    [
      'its Secret',
      (world) => {
        world.connection({
          metadata: {
            finalizers: ['core.kbind.io/cleanup'],
            annotations: { [SECRET_REF_ANNOTATION]: 'kbind/demo/kubeconfig' },
          },
        });
        world.consumer.put(resources.secrets, { metadata: { namespace: 'kbind', name: 'demo' } });
        return reconcileConnection(world.world(), connection);
      },
    ],
  ];

  test.each(kinds)('%s', async (_what, reconcile) => {
    const world = new FakeWorld();
    world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
    await expect(reconcile(world)).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.confirmed).toEqual(['consumer 0']);
    expect(world.writes).toEqual([]);
  });
});

test.each(['provider', 'consumer'] as const)(
  "somebody's object is adopted only where both clusters, asked after the reads, are meant: not while the %s is another",
  async (side) => {
    const world = new InstanceWorld();
    world.binding({ metadata: { finalizers: [] }, spec: { conflictPolicy: 'Adopt' }, status: { ...ready() } });
    world.copy({});
    world.identityErrors[side] = new KbindError('identity', 'another cluster', { side });
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.copyNow).toMatchObject({ spec: { size: 'old' }, metadata: { annotations: {} } });
  },
);

describe('a conflict is put on an instance and taken off only where both clusters, asked after the reads, are meant', () => {
  const marked = { labels: { [CONFLICT_MARKER]: 'true' }, annotations: { [CONFLICT_MARKER]: 'OwnedByAnother' } };
  const another = { [CONSUMER_CLUSTER_UID]: 'other', [CONSUMER_OBJECT_UID]: 'other' };
  const held = (metadata: Record<string, unknown>, theirs: Record<string, unknown>): InstanceWorld => {
    const world = new InstanceWorld(metadata);
    world.copy(theirs);
    return world;
  };
  const changes: readonly [string, () => InstanceWorld][] = [
    ['put on for a foreign object', () => held({}, {})],
    ["put on for another owner's", () => held({}, another)],
    ['changed for another reason', () => held(marked, {})],
    ['taken off', () => new InstanceWorld(marked)],
  ];

  test.each(changes)('%s', async (_what, given) => {
    const world = given();
    const before = world.sourceNow?.metadata;
    await world.instanceOutcome();
    expect(world.confirmed.slice(0, 2)).toEqual(['provider 0', 'consumer 0']);
    expect(world.sourceNow?.metadata).not.toEqual(before);
  });

  for (const side of ['provider', 'consumer'] as const) {
    test.each(changes)(`not %s while the ${side} is another`, async (_what, given) => {
      const world = given();
      world.identityErrors[side] = new KbindError('identity', 'another cluster', { side });
      await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
      expect(world.consumer.writes).toEqual([]);
      expect(world.provider.writes).toEqual([]);
    });
  }

  test('one that stands there already needs no such question', async () => {
    const world = held(marked, another);
    await world.instanceOutcome();
    expect(world.confirmed).toEqual([]);
    expect(world.consumer.writes).toEqual([]);
  });
});

test('what dependents were told is remembered only by the cluster that was meant, asked after the lists of them', async () => {
  const world = new FakeWorld();
  world.connection();
  const object = world.binding({ status: { ...ready() } });
  world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
  const told = { binding: parseBinding(object, 'ClusterBinding'), connection: undefined };
  await expect(tellBindingDependents(world.world(), resources.clusterBindings, told)).rejects.toMatchObject({
    errorClass: 'identity',
  });
  expect(world.sweeps.length).toBe(1);
  expect(world.writes).toEqual([]);
});

test('a namespace is made only where the cluster that misses it is the one that was meant', async () => {
  const world = new InstanceWorld();
  world.provider.beforeRequest = ({ verb, api }) => {
    if (verb !== 'create' || api !== API) return;
    world.identityErrors.provider = new KbindError('identity', 'another cluster', { side: 'provider' });
    throw new KbindError('namespace-missing', 'not there');
  };
  await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
  expect(world.provider.writes.filter(({ api }) => api !== API)).toEqual([]);
});
