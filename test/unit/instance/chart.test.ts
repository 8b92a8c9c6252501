import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError, toKbindError } from '../../../lib/model/errors.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { deletionNodes, nodes } from '../../../lib/reconcile/instance/chart.ts';
import { reconcileInstance } from '../../../lib/reconcile/instance/reconcile.ts';
import { ago, API, FINALIZER, InstanceWorld, ready, widgets, KEY } from './instance-world.ts';

interface Row {
  readonly edge: string;
  readonly given: () => InstanceWorld;
  /** Lines of the trace, in this order without anything in between. */
  readonly passes: readonly string[];
  readonly ends: { readonly type: 'done' | 'wait'; readonly reason?: string };
  readonly leaves?: (world: InstanceWorld) => void;
}

const yes = (node: string): string => `${node} → yes`;
const no = (node: string): string => `${node} → no`;
const anotherMarker = { 'core.kbind.io/consumer-cluster-uid': 'consumer-uid' };
const covered = `${nodes.resolve} → ClusterBinding b`;
const toTarget = [yes(nodes.bound), nodes.mapKey, yes(nodes.finalizer), nodes.target];

const adopting = (annotations: Record<string, unknown>): InstanceWorld => {
  const world = new InstanceWorld();
  world.binding({ metadata: { finalizers: [] }, spec: { conflictPolicy: 'Adopt' }, status: ready() as never });
  world.copy(annotations);
  return world;
};
const withCopy = (annotations?: Record<string, unknown>, metadata = {}): InstanceWorld => {
  const world = new InstanceWorld();
  world.copy(annotations, metadata);
  return world;
};

const syncRows: Row[] = [
  {
    edge: `${nodes.start} → ${nodes.object} → no → Stop`,
    given: () => {
      const world = new InstanceWorld();
      world.consumer.objects.delete('widgets.example.org|team-a/w');
      return world;
    },
    passes: [nodes.start, no(nodes.object)],
    ends: { type: 'done', reason: 'consumer object does not exist' },
  },
  {
    edge: `${nodes.object} → yes → ${nodes.resolve} → ${nodes.deleting} → yes → ${nodes.cleanup} → Stop`,
    given: () => new InstanceWorld({ deletionTimestamp: ago(1), finalizers: ['other/x'] }),
    passes: [yes(nodes.object), covered, yes(nodes.deleting), nodes.cleanup],
    ends: { type: 'done' },
  },
  {
    edge: `${nodes.deleting} → no → ${nodes.bound} → no → Stop`,
    given: () => {
      const world = new InstanceWorld();
      world.binding({ metadata: { finalizers: [], generation: 2 }, status: ready(1) as never });
      return world;
    },
    passes: [covered, no(nodes.deleting), no(nodes.bound)],
    ends: { type: 'done', reason: 'ClusterBinding b is not Ready' },
  },
  {
    edge: `${nodes.bound} → no: the binding is of another Connection than the one pinned on the CRD (spec §11)`,
    given: () => {
      const world = new InstanceWorld();
      world.binding({
        metadata: { finalizers: [] },
        spec: { connectionRef: { name: 'other' } },
        status: ready() as never,
      });
      return world;
    },
    passes: [no(nodes.deleting), no(nodes.bound)],
    ends: { type: 'done', reason: 'ClusterBinding b is of another Connection than the CRD is pinned to' },
  },
  {
    edge: `${nodes.bound} → no: the Connection is not Ready`,
    given: () => {
      const world = new InstanceWorld();
      world.connection({ ready: false });
      return world;
    },
    passes: [no(nodes.bound)],
    ends: { type: 'done', reason: 'Connection demo is not Ready' },
  },
  {
    edge: `${nodes.bound} → yes → ${nodes.mapKey} → ${nodes.finalizer} → no → ${nodes.addFinalizer} → again from its answer`,
    given: () => new InstanceWorld({ finalizers: ['other/x'] }),
    passes: [
      yes(nodes.bound),
      nodes.mapKey,
      no(nodes.finalizer),
      `${nodes.addFinalizer} → going on from its answer`,
      covered,
      no(nodes.deleting),
      ...toTarget,
    ],
    ends: { type: 'done', reason: 'synced' },
    leaves: (world) => expect(world.sourceNow?.metadata.finalizers).toEqual(['other/x', FINALIZER]),
  },
  {
    edge: `${nodes.finalizer} → yes → ${nodes.target} → ${nodes.ownership} → absent → ${nodes.namespace} → ${nodes.apply} → ${nodes.status} → Stop`,
    given: () => new InstanceWorld({ labels: { 'core.kbind.io/conflict': 'true' } }),
    passes: [
      ...toTarget,
      `${nodes.ownership} → absent`,
      nodes.apply,
      `${nodes.namespace} → when the server misses it`,
      nodes.status,
    ],
    ends: { type: 'done', reason: 'synced' },
    leaves: (world) => {
      expect(world.copyNow?.spec).toEqual({ size: 'x' });
      expect(world.sourceNow?.metadata.labels).toEqual({});
    },
  },
  {
    edge: `${nodes.ownership} → ours → ${nodes.apply} → ${nodes.status} → Stop`,
    given: () => {
      const world = new InstanceWorld();
      world.copy(undefined, {}, { status: { phase: 'Up' } });
      return world;
    },
    passes: [`${nodes.ownership} → ours`, nodes.apply, 'Apply needed? → yes', nodes.status],
    ends: { type: 'done', reason: 'synced' },
    leaves: (world) => {
      expect(world.copyNow?.spec).toEqual({ size: 'x' });
      expect(world.sourceNow?.status).toEqual({ phase: 'Up' });
    },
  },
  {
    edge: `${nodes.ownership} → no ownership markers → ${nodes.adopt} → yes → ${nodes.apply}`,
    given: () => adopting({}),
    passes: [`${nodes.ownership} → unmarked`, yes(nodes.adopt), nodes.apply, nodes.status],
    ends: { type: 'done', reason: 'synced' },
    leaves: (world) => expect(world.copyNow?.spec).toEqual({ size: 'x' }),
  },
  {
    edge: `${nodes.ownership} → no ownership markers → ${nodes.adopt} → no → ${nodes.conflict} → Stop`,
    given: () => withCopy({}),
    passes: [`${nodes.ownership} → unmarked`, no(nodes.adopt), `${nodes.conflict} → ForeignObjectExists`],
    ends: { type: 'wait', reason: 'ForeignObjectExists' },
    leaves: (world) => {
      expect(world.copyNow?.spec).toEqual({ size: 'old' });
      expect(world.provider.writes).toEqual([]);
      expect(world.events).toMatchObject([{ reason: 'ForeignObjectExists' }]);
    },
  },
  {
    edge: `${nodes.ownership} → owned by another → ${nodes.conflict} → Stop, under Adopt as well`,
    given: () => adopting(anotherMarker),
    passes: [`${nodes.ownership} → another`, `${nodes.conflict} → OwnedByAnother`],
    ends: { type: 'wait', reason: 'OwnedByAnother' },
    leaves: (world) => expect(world.provider.writes).toEqual([]),
  },
  {
    edge: `${nodes.ownership} → ours, but being deleted: waited for, not re-applied (spec §7)`,
    given: () => withCopy(undefined, { deletionTimestamp: ago(1), finalizers: ['hold/me'] }),
    passes: [`${nodes.ownership} → ours`],
    ends: { type: 'wait', reason: 'the provider copy is being deleted' },
    leaves: (world) => expect(world.provider.writes).toEqual([]),
  },
];

const deleting = (metadata = {}): InstanceWorld => new InstanceWorld({ deletionTimestamp: ago(1), ...metadata });
const orphan = { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } };

const deletionRows: Row[] = [
  {
    edge: `${deletionNodes.start} → ${deletionNodes.finalizer} → no → Stop`,
    given: () => deleting({ finalizers: ['other/x'] }),
    passes: [deletionNodes.start, no(deletionNodes.finalizer)],
    ends: { type: 'done', reason: 'deleting, without our finalizer' },
  },
  {
    edge: `${deletionNodes.finalizer} → yes → ${deletionNodes.orphan} → yes → ${deletionNodes.release} → Stop, without a provider`,
    given: () => {
      const world = deleting(orphan);
      world.copy(undefined);
      world.providerError = new KbindError('unavailable', 'down');
      world.connection({ ready: false });
      return world;
    },
    passes: [yes(deletionNodes.finalizer), yes(deletionNodes.orphan), deletionNodes.release],
    ends: { type: 'done', reason: 'finalizer released' },
    leaves: (world) => {
      expect(world.sourceNow).toBeUndefined();
      expect(world.copyNow).toBeDefined();
    },
  },
  {
    edge: `${deletionNodes.orphan} → no → ${deletionNodes.readProvider} → ${deletionNodes.owned} → yes → ${deletionNodes.deleteCopy} → Stop`,
    given: () => {
      const world = deleting();
      world.copy(undefined, { finalizers: ['hold/me'] });
      return world;
    },
    passes: [no(deletionNodes.orphan), deletionNodes.readProvider, yes(deletionNodes.owned), deletionNodes.deleteCopy],
    ends: { type: 'wait', reason: 'the provider copy is going away' },
    leaves: (world) => {
      expect(world.copyNow?.metadata.deletionTimestamp).toBeDefined();
      expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
    },
  },
  {
    edge: `${deletionNodes.deleteCopy}: nothing holds the copy, so it is looked for again at once → ${deletionNodes.release}`,
    given: () => {
      const world = deleting();
      world.copy(undefined);
      return world;
    },
    passes: [
      yes(deletionNodes.owned),
      `${deletionNodes.deleteCopy} → nothing holds it: looking again at once`,
      no(deletionNodes.owned),
      deletionNodes.release,
    ],
    ends: { type: 'done', reason: 'finalizer released' },
    leaves: (world) => {
      expect(world.copyNow).toBeUndefined();
      expect(world.sourceNow).toBeUndefined();
      expect(world.confirmed.slice(-2).sort()).toEqual(['consumer 0', 'provider 0']);
    },
  },
  {
    edge: `${deletionNodes.owned} → no: absent → ${deletionNodes.release} → Stop`,
    given: () => deleting(),
    passes: [no(deletionNodes.owned), deletionNodes.release],
    ends: { type: 'done', reason: 'finalizer released' },
    leaves: (world) => expect(world.confirmed).toContain('provider 0'),
  },
  {
    edge: `${deletionNodes.owned} → no: foreign → ${deletionNodes.release} → Stop`,
    given: () => {
      const world = deleting();
      world.copy(anotherMarker);
      return world;
    },
    passes: [no(deletionNodes.owned), deletionNodes.release],
    ends: { type: 'done', reason: 'finalizer released' },
    leaves: (world) => {
      expect(world.confirmed).toContain('provider 0');
      expect(world.provider.writes).toEqual([]);
    },
  },
  {
    edge: `${deletionNodes.start}: runs without a binding`,
    given: () => {
      const world = deleting();
      world.consumer.objects.delete('clusterbindings.core.kbind.io|b');
      return world;
    },
    passes: [`${nodes.resolve} → none`, yes(nodes.deleting), nodes.cleanup, deletionNodes.start],
    ends: { type: 'done', reason: 'finalizer released' },
  },
  {
    edge: `${deletionNodes.readProvider}: held while the Connection is not Ready`,
    given: () => {
      const world = deleting();
      world.connection({ ready: false });
      return world;
    },
    passes: [no(deletionNodes.orphan)],
    ends: { type: 'done', reason: 'Connection demo is not Ready' },
    leaves: (world) => expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]),
  },
  {
    edge: `${deletionNodes.readProvider}: goes on under a deleting Connection, with its credentials`,
    given: () => {
      const world = deleting();
      world.connection({
        ready: false,
        metadata: { deletionTimestamp: ago(30), finalizers: ['core.kbind.io/cleanup'] },
      });
      return world;
    },
    passes: [no(deletionNodes.owned), deletionNodes.release],
    ends: { type: 'done', reason: 'finalizer released' },
  },
  {
    edge: `${deletionNodes.readProvider}: a deleting Connection whose provider does not answer is waited for`,
    given: () => {
      const world = deleting();
      world.connection({ metadata: { deletionTimestamp: ago(30), finalizers: ['core.kbind.io/cleanup'] } });
      world.providerError = new KbindError('unavailable', 'down');
      return world;
    },
    passes: [no(deletionNodes.orphan)],
    ends: { type: 'wait' },
    leaves: (world) => expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]),
  },
];

async function walk({ given, passes, ends, leaves }: Row): Promise<void> {
  const world = given();
  expect(await world.instanceOutcome()).toMatchObject(ends);
  const text = world.lines.join('\n');
  expect(text).toContain(passes.join('\n'));
  leaves?.(world);
}

describe('instance reconciliation, every edge of the chart', () => {
  test.each(syncRows)('$edge', walk);
});

describe('instance deletion, every edge of the chart', () => {
  test.each(deletionRows)('$edge', walk);

  test.each(['unserved', 'unavailable', 'forbidden'] as const)(
    'a provider read that fails as %s releases nothing',
    async (cls) => {
      const world = deleting();
      world.provider.beforeRequest = () => {
        throw new KbindError(cls, 'no');
      };
      await expect(world.instanceOutcome()).rejects.toMatchObject({ name: expect.any(String) as string });
      expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
    },
  );
});

describe('drain (spec §4, last paragraph)', () => {
  const draining = (seconds: number, metadata = {}): InstanceWorld => {
    const world = new InstanceWorld(metadata);
    const held = { finalizers: ['core.kbind.io/cleanup'], deletionTimestamp: ago(seconds) };
    world.binding({ metadata: held, status: ready() as never });
    world.copy(undefined, { finalizers: ['hold/me'] });
    return world;
  };

  test.each<[string, () => InstanceWorld, boolean, boolean]>([
    [
      '8 s after the deletionTimestamp it is drained, without waiting for provider finalizers',
      () => draining(8),
      true,
      true,
    ],
    ['sooner it is not', () => draining(7), false, false],
    ['an Orphan keeps its copy', () => draining(9, orphan), true, false],
    ['a deleting instance is drained as well', () => draining(9, { deletionTimestamp: ago(1) }), true, true],
    [
      'another live binding anywhere that lists the API keeps it',
      () => {
        const world = draining(9);
        world.binding({ kind: 'Binding', metadata: { name: 'elsewhere', namespace: 'other', finalizers: [] } });
        return world;
      },
      false,
      false,
    ],
    [
      'a binding without our cleanup finalizer drains nothing',
      () => {
        const world = draining(9);
        world.binding({ metadata: { finalizers: ['other/x'], deletionTimestamp: ago(9) } });
        return world;
      },
      false,
      false,
    ],
    [
      'a Binding of another namespace drains nothing here',
      () => {
        const world = draining(9);
        world.consumer.objects.delete('clusterbindings.core.kbind.io|b');
        const held = { finalizers: ['core.kbind.io/cleanup'], deletionTimestamp: ago(9) };
        world.binding({ kind: 'Binding', metadata: { ...held, namespace: 'other' } });
        return world;
      },
      false,
      false,
    ],
    [
      'a CRD that is pinned to another Connection is not drained',
      () => {
        const world = draining(9);
        world.crd({
          labels: { 'core.kbind.io/managed': 'true' },
          annotations: { 'core.kbind.io/connection': 'other' },
        });
        return world;
      },
      false,
      false,
    ],
  ])('%s', async (_name, given, released, copyGoes) => {
    const world = given();
    await world.instanceOutcome();
    expect(world.sourceNow?.metadata.finalizers ?? []).toEqual(released ? [] : [FINALIZER]);
    expect(world.copyNow?.metadata.deletionTimestamp !== undefined).toBe(copyGoes);
  });

  test('a failed provider read is tried five times, then the copy is left, named and counted', async () => {
    const world = draining(9);
    world.provider.beforeRequest = () => {
      throw new KbindError('unavailable', 'down');
    };
    for (const attempt of [0, 1, 2, 3]) {
      await expect(world.instanceOutcome(attempt)).rejects.toMatchObject({ errorClass: 'unavailable' });
    }
    expect(await world.instanceOutcome(4)).toMatchObject({ reason: 'drained' });
    expect(world.events.at(-1)?.message).toContain('widgets.example.org team-a/w');
    expect(world.sourceNow?.metadata.finalizers).toEqual([]);
  });

  test('a read that the provider forbids counts as a failed one: a drain does not wait for a permission for ever', async () => {
    const world = draining(9);
    world.provider.beforeRequest = () => {
      throw new KbindError('forbidden', 'get is forbidden', { side: 'provider', api: API });
    };
    await expect(world.instanceOutcome(3)).rejects.toMatchObject({ errorClass: 'unavailable' });
    expect(await world.instanceOutcome(4)).toMatchObject({ reason: 'drained' });
    expect(world.events.at(-1)?.reason).toBe('LeftBehind');
  });

  test.each([
    ['a read', 'get', {}],
    ['a deletion', 'delete', { deletionTimestamp: ago(1) }],
  ])('%s that the provider forbids is said on the object, which waits', async (_what, forbidden, metadata) => {
    const world = new InstanceWorld({ ...metadata, finalizers: [FINALIZER] });
    world.copy(undefined);
    world.provider.beforeRequest = ({ verb, api }) => {
      if (verb === forbidden && api === API) throw new KbindError('forbidden', 'no', { side: 'provider', api });
    };
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'forbidden' });
    expect(world.events.map(({ reason }) => reason)).toEqual(['Forbidden']);
    expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
  });

  test('a provider that is left alone counts as a failed read, not as a wait without end', async () => {
    const world = draining(9);
    world.providerError = new KbindError('aborted', 'left alone', { side: 'provider', leftAloneSeconds: 7 });
    await expect(world.instanceOutcome(0)).rejects.toMatchObject({
      errorClass: 'unavailable',
      details: { retryAfterSeconds: 7 },
    });
    expect(await world.instanceOutcome(4)).toMatchObject({ reason: 'drained' });
    world.providerError = new KbindError('aborted', 'time is up');
    world.put({ finalizers: [FINALIZER] });
    await expect(world.instanceOutcome(9)).rejects.toMatchObject({ errorClass: 'aborted' });
  });

  test.each(['credential', 'identity'] as const)('class %s leaves the copy at once', async (cls) => {
    const world = draining(9);
    world.providerError = new KbindError(cls, 'no');
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'drained' });
    expect(world.copyNow?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('bindings that drain are believed only of the cluster that was meant, asked after the lists', async () => {
    const world = draining(9, { finalizers: [FINALIZER] });
    world.identityErrors.consumer = new KbindError('identity', 'another cluster', { side: 'consumer' });
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.confirmed).toEqual(['consumer 0']);
    expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
    expect(world.copyNow?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('a copy that is found in another cluster behind the address is not ours to delete, and says nothing of ours', async () => {
    const world = draining(9);
    world.identityErrors.provider = new KbindError('identity', 'another cluster', { side: 'provider' });
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'drained' });
    expect(world.copyNow?.metadata.deletionTimestamp).toBeUndefined();
    expect(world.events.map(({ reason }) => reason)).toContain('LeftBehind');
  });

  test('a refused provider delete blocks', async () => {
    const world = draining(9);
    world.copy(undefined);
    world.provider.beforeRequest = ({ verb }) => {
      if (verb === 'delete') throw new KbindError('forbidden', 'no');
    };
    await expect(world.instanceOutcome(9)).rejects.toMatchObject({ errorClass: 'forbidden' });
    expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
  });
});

describe('a create', () => {
  test('is sent only where the cluster, asked after the read, is the one that was meant', async () => {
    const world = new InstanceWorld();
    world.identityErrors.provider = new KbindError('identity', 'another cluster', { side: 'provider' });
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'identity' });
    expect(world.copyNow).toBeUndefined();
    expect(world.confirmed).toEqual(['provider 0']);
  });
});

describe('the look after a create', () => {
  /** The consumer object goes while the POST is under way; `fails` then decides what each request to the provider meets. */
  const losing = (fails: (verb: string, times: number) => KbindError | undefined): InstanceWorld => {
    const world = new InstanceWorld();
    const times = new Map<string, number>();
    world.provider.beforeRequest = ({ verb }) => {
      times.set(verb, (times.get(verb) ?? 0) + 1);
      if (verb === 'create') world.consumer.objects.delete('widgets.example.org|team-a/w');
      const error = fails(verb, times.get(verb) ?? 0);
      if (error !== undefined) throw error;
    };
    return world;
  };
  const down = new KbindError('unavailable', 'down');

  test.each<[string, (verb: string, times: number) => KbindError | undefined]>([
    ['everything answers', () => undefined],
    ['the delete is not answered at first', (verb, times) => (verb === 'delete' && times < 3 ? down : undefined)],
    [
      'somebody writes the copy meanwhile',
      (verb, times) => (verb === 'delete' && times === 1 ? new KbindError('conflict', 'precondition') : undefined),
    ],
  ])('a copy without a keeper is deleted: %s', async (_name, fails) => {
    const world = losing(fails);
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'consumer object does not exist' });
    expect(world.copyNow).toBeUndefined();
    expect(world.confirmed).toContain('consumer 0');
  });

  test('what somebody else has under that name by then is left alone', async () => {
    const world = losing(() => undefined);
    world.createError = new KbindError('unavailable', 'reset');
    const { beforeRequest } = world.provider;
    world.provider.beforeRequest = (request) => {
      beforeRequest(request);
      if (world.createError !== undefined || world.copyNow !== undefined) return;
      world.consumer.objects.delete('widgets.example.org|team-a/w');
      world.provider.put(widgets, { metadata: { ...KEY, annotations: anotherMarker }, spec: {} });
    };
    await expect(world.instanceOutcome()).rejects.toMatchObject({ errorClass: 'unavailable' });
    expect(world.copyNow).toBeDefined();
    expect(world.provider.writes).toEqual([]);
  });
});

describe('writes that are refused', () => {
  test('a missing namespace is made with the managed label, once', async () => {
    const world = new InstanceWorld();
    world.createError = new KbindError('namespace-missing', 'no namespace');
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'synced' });
    const namespace = world.provider.at(resources.namespaces, { name: 'team-a' });
    expect(namespace?.metadata.labels).toEqual({ 'core.kbind.io/managed': 'true' });
    expect(world.copyNow).toBeDefined();
  });

  test('a name that is taken meanwhile is read again', async () => {
    const world = new InstanceWorld();
    world.createError = new KbindError('conflict', 'exists');
    world.provider.beforeRequest = ({ verb }) => {
      if (verb === 'get' && world.createError === undefined && world.copyNow === undefined) {
        world.provider.put(widgets, { metadata: { ...KEY, annotations: anotherMarker }, spec: {} });
      }
    };
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'OwnedByAnother' });
  });

  test.each([
    ['forbidden', { type: 'wait', firstSeconds: 30, maxSeconds: 30 }, ['Forbidden']],
    ['namespace-terminating', { type: 'wait', firstSeconds: 2, maxSeconds: 60 }, []],
  ] as const)('%s is a wait', async (cls, outcome, events) => {
    const world = new InstanceWorld();
    world.createError = new KbindError(cls, 'no');
    expect(await world.instanceOutcome()).toMatchObject(outcome);
    expect(world.events.map(({ reason }) => reason)).toEqual(events);
  });

  test('a spec and a status that are refused for what they are say which version was: its letters are one', async () => {
    const world = new InstanceWorld();
    world.createError = new KbindError('invalid', 'no', { status: 422 });
    const spec = await world.instanceOutcome().catch(toKbindError);
    expect(spec).toMatchObject({ details: { refused: `source-uid/${world.sourceNow?.metadata.resourceVersion}` } });
    expect(world.events.map(({ reason }) => reason)).toEqual(['Invalid']);

    await world.instanceOutcome();
    const copy = world.copyNow;
    if (copy === undefined) throw new Error('no copy');
    world.provider.put(widgets, { ...copy, status: { phase: 'Up' } });
    world.consumer.beforeRequest = ({ verb }) => {
      if (verb === 'patch') throw new KbindError('invalid', 'phase: no such field', { status: 422 });
    };
    const status = await world.instanceOutcome().catch(toKbindError);
    expect(status).toMatchObject({
      details: { refused: `status/source-uid/${world.sourceNow?.metadata.resourceVersion}` },
    });
    expect(world.events.at(-1)?.message).toContain('is refused by this cluster: phase: no such field');
  });

  test('a spec that the provider alters is told, and not written again and again', async () => {
    const world = new InstanceWorld();
    await world.instanceOutcome();
    const altered = world.copyNow;
    if (altered === undefined) throw new Error('no copy');
    world.provider.put(widgets, { ...altered, spec: { size: 'small' } });
    const dry = world.world();
    const open = async (connection: Parameters<typeof dry.providers.open>[0]) => {
      const side = await dry.providers.open(connection);
      const apply: typeof side.client.apply = async (ref, object, read, options) => {
        expect(options?.dryRun).toBe(true);
        return { ...(await side.client.apply(ref, object, read, options)), spec: { size: 'small' } };
      };
      return { ...side, client: { ...side.client, apply } };
    };
    const request = reconcileRequest('consumer-uid', 'instance', KEY, { api: 'widgets.example.org' });
    await reconcileInstance({ ...dry, providers: { ...dry.providers, open } }, request);
    expect(world.events.at(-1)?.reason).toBe('SpecAltered');
    expect(world.copyNow?.spec).toEqual({ size: 'small' });
  });
});
