import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { nodes } from '../../../lib/reconcile/binding/chart.ts';
import { API, FakeWorld, ago, crd, exported, managed, widgets } from './fake-world.ts';

interface Row {
  readonly edge: string;
  readonly given: (world: FakeWorld) => void;
  /** Lines of the trace, in this order, others between them allowed. */
  readonly passes: readonly string[];
  readonly ready?: string;
  readonly kind?: 'ClusterBinding' | 'Binding';
}

const yes = (node: string): string => `${node} → yes`;
const no = (node: string): string => `${node} → no`;

/** A provider that exports the API, a Ready Connection, a binding with its finalizer. */
function fixture(world: FakeWorld): void {
  world.provider.put(resources.crds, crd(exported()));
  world.connection();
  world.binding();
}

const rows: Row[] = [
  {
    edge: `${nodes.start} → ${nodes.getBinding} → ${nodes.exists} → no → ${nodes.stop}`,
    given: (world) => world.connection(),
    passes: [nodes.start, nodes.getBinding, no(nodes.exists)],
  },
  {
    edge: `${nodes.exists} → yes → ${nodes.connection} → no → ${nodes.pending} → ${nodes.status}: no Connection`,
    given: (world) => world.binding(),
    passes: [
      yes(nodes.exists),
      no(nodes.connection),
      `${nodes.pending} → Connection demo does not exist`,
      nodes.status,
    ],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.connection} → no → ${nodes.pending}: not Ready`,
    given: (world) => {
      world.connection({ ready: false });
      world.binding();
    },
    passes: [no(nodes.connection), nodes.pending, nodes.status],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.connection} → no → ${nodes.pending}: Ready, and deleting`,
    given: (world) => {
      world.connection({ metadata: { deletionTimestamp: ago(1), finalizers: ['core.kbind.io/cleanup'] } });
      world.binding();
    },
    passes: [no(nodes.connection), `${nodes.pending} → Connection demo is being deleted`],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.connection} → yes → ${nodes.provider}: unusable credential → ${nodes.pending}`,
    given: (world) => {
      fixture(world);
      world.providerError = new KbindError('credential', 'users[0].user.exec is refused');
    },
    passes: [yes(nodes.connection), `${nodes.provider} → credential`, nodes.pending],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.connection} → yes → ${nodes.provider} → ${nodes.schemas} → ${nodes.counts} → ${nodes.missing} → no → ${nodes.waiting} → no → ${nodes.related} → ${nodes.conditions} → ${nodes.status}`,
    given: fixture,
    passes: [
      yes(nodes.connection),
      nodes.provider,
      `${nodes.schemas} → ${API}: installed`,
      nodes.counts,
      no(nodes.missing),
      no(nodes.waiting),
      `${nodes.related} → none selected`,
      nodes.conditions,
      nodes.status,
    ],
    ready: 'True/AsExpected',
  },
  {
    edge: `${nodes.missing} → yes → ${nodes.notExported} → ${nodes.status}: no such CRD`,
    given: (world) => {
      world.connection();
      world.binding();
    },
    passes: [yes(nodes.missing), nodes.notExported, nodes.status],
    ready: 'False/APINotExported',
  },
  {
    edge: `${nodes.missing} → yes → ${nodes.notExported}: the label has another value`,
    given: (world) => {
      fixture(world);
      world.provider.put(resources.crds, crd({ labels: { 'core.kbind.io/exported': 'yes' } }));
    },
    passes: [yes(nodes.missing), nodes.notExported],
    ready: 'False/APINotExported',
  },
  {
    edge: `${nodes.waiting} → yes → ${nodes.pending}: OpenAPI source and None, no consumer CRD`,
    given: (world) => {
      world.connection({ spec: { schema: { pullPolicy: 'None' } }, status: { activeSchemaSource: 'OpenAPI' } });
      world.binding();
    },
    passes: [no(nodes.missing), `${nodes.waiting} → yes`, `${nodes.pending} → Pending`, nodes.status],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.waiting} → yes → ${nodes.pending}: OpenAPI source, a consumer CRD without markers (L12)`,
    given: (world) => {
      world.connection({ status: { activeSchemaSource: 'OpenAPI' } });
      world.binding();
      world.consumer.put(resources.crds, crd());
    },
    passes: [`${nodes.schemas} → ${API}: missing`, yes(nodes.waiting)],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.waiting} → no → ${nodes.related}: OpenAPI source, a consumer CRD of ours is read`,
    given: (world) => {
      world.connection({ status: { activeSchemaSource: 'OpenAPI' } });
      world.binding();
      world.consumer.put(resources.crds, crd(managed()));
    },
    passes: [`${nodes.schemas} → ${API}: installed`, no(nodes.waiting), nodes.conditions],
    ready: 'True/AsExpected',
  },
  {
    edge: `${nodes.waiting} → yes: pullPolicy None over a missing CRD is never Ready (L11)`,
    given: (world) => {
      fixture(world);
      world.connection({ spec: { schema: { pullPolicy: 'None' } } });
    },
    passes: [`${nodes.schemas} → ${API}: missing`, yes(nodes.waiting)],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.waiting} → yes: the consumer CRD is being deleted`,
    given: (world) => {
      fixture(world);
      world.consumer.put(resources.crds, crd({ ...managed(), deletionTimestamp: ago(1) }));
    },
    passes: [`${nodes.schemas} → ${API}: terminating`, yes(nodes.waiting)],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.waiting} → yes: the CRD is not established yet`,
    given: (world) => {
      fixture(world);
      world.consumer.crdConditions = [];
    },
    passes: [`${nodes.schemas} → ${API}: establishing`, yes(nodes.waiting)],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.waiting} → yes: its names are not accepted`,
    given: (world) => {
      fixture(world);
      world.consumer.crdConditions = [{ type: 'NamesAccepted', status: 'False', message: '"widgets" is taken' }];
    },
    passes: [`${nodes.schemas} → ${API}: refused`, yes(nodes.waiting)],
    ready: 'False/Pending',
  },
  {
    edge: `${nodes.schemas}: somebody else's CRD with another spec → Conflicts`,
    given: (world) => {
      fixture(world);
      world.consumer.put(resources.crds, crd({}, { scope: 'Cluster' }));
    },
    passes: [`${nodes.schemas} → ${API}: foreign`, yes(nodes.waiting)],
    ready: 'False/ForeignObjectExists',
  },
  {
    edge: `${nodes.schemas}: a CRD that is pinned to another Connection (L24)`,
    given: (world) => {
      fixture(world);
      world.consumer.put(resources.crds, crd(managed('other')));
    },
    passes: [`${nodes.schemas} → ${API}: owned-by-another`],
    ready: 'False/OwnedByAnother',
  },
  {
    edge: `${nodes.schemas}: forbidden`,
    given: (world) => {
      fixture(world);
      world.provider.beforeRequest = () => {
        throw new KbindError('forbidden', 'get customresourcedefinitions is forbidden');
      };
    },
    passes: [`${nodes.schemas} → ${API}: forbidden`, nodes.status],
    ready: 'False/Forbidden',
  },
  {
    edge: `${nodes.schemas}: a Binding never acts on a cluster-scoped API`,
    kind: 'Binding',
    given: (world) => {
      world.connection();
      world.binding({ kind: 'Binding' });
      world.provider.put(resources.crds, crd(exported(), { scope: 'Cluster' }));
    },
    passes: [`${nodes.schemas} → ${API}: out-of-scope`],
    ready: 'False/Pending',
  },
];

function expectPath(lines: readonly string[], path: readonly string[]): void {
  let from = 0;
  for (const line of path) {
    const found = lines.findIndex((seen, index) => index >= from && (seen === line || seen.startsWith(`${line} → `)));
    expect(found, `${line}\nin\n${lines.join('\n')}`).toBeGreaterThanOrEqual(from);
    from = found + 1;
  }
}

describe('the chart of the binding controllers', () => {
  test.each(rows)('$edge', async ({ given, passes, ready, kind }) => {
    const world = new FakeWorld();
    given(world);
    await world.reconcile(kind);
    expectPath(world.lines, passes);
    expect(world.condition('Ready', kind)).toBe(ready);
  });

  test.each(rows.filter(({ ready }) => ready !== undefined))(
    'twice in a row writes nothing: $edge',
    async ({ given, kind }) => {
      const world = new FakeWorld();
      given(world);
      await world.reconcile(kind);
      await world.reconcile(kind);
      const [before, sweeps] = [world.writes.length, world.sweeps.length];
      await world.reconcile(kind);
      expect(world.writes.slice(before)).toEqual([]);
      expect(world.sweeps).toHaveLength(sweeps);
    },
  );

  test('the finalizer comes first, then it stops', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.binding({ metadata: { finalizers: ['other/x'] } });
    expect(await world.reconcile()).toMatchObject({ type: 'done', reason: 'finalizer added' });
    const stored = world.consumer.at(resources.clusterBindings, { name: 'b' });
    expect(stored?.metadata.finalizers).toEqual(['other/x', 'core.kbind.io/cleanup']);
    expect(world.writes).toEqual(['patch clusterbindings.core.kbind.io']);
  });

  test('an unreachable provider is an error, retried', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.providerError = new KbindError('unavailable', 'connection refused');
    await expect(world.reconcile()).rejects.toThrowError('connection refused');
  });

  test('an unreadable binding is not reconciled', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.binding({ spec: { conflictPolicy: 'Whatever' } });
    await expect(world.reconcile()).rejects.toThrowError(/cannot be read/);
    expect(world.writes).toEqual([]);
  });
});

describe('what a Ready binding has written', () => {
  test('the CRD with its markers and hash, then bound-by, then the status, then fanned-out', async () => {
    const world = new FakeWorld();
    fixture(world);
    await world.reconcile();
    expect(world.writes).toEqual([
      'create customresourcedefinitions.apiextensions.k8s.io',
      'patch customresourcedefinitions.apiextensions.k8s.io',
      'patch clusterbindings.core.kbind.io',
      'patch clusterbindings.core.kbind.io',
    ]);
    const { labels, annotations } = world.crdNow?.metadata ?? {};
    expect(labels).toEqual({ 'core.kbind.io/managed': 'true' });
    expect(annotations).toMatchObject({ 'core.kbind.io/connection': 'demo', 'core.kbind.io/bound-by': 'b-uid/1' });
    expect(world.bindingNow()?.boundAPIs).toEqual([
      { name: API, crdHash: annotations?.['core.kbind.io/schema-hash'], conflictCount: 0 },
    ]);
    expect(world.sweeps).toMatchObject([{ apis: [API], retry: true }]);
    expect(world.confirmed).toEqual(['provider 0', 'consumer 0', 'consumer 0']);
    expect(world.condition('Synced')).toBe('True/AsExpected');
    expect(world.condition('PermissionDenied')).toBe('False/AsExpected');
  });

  test('conflict annotations are counted beside Ready=True, and named', async () => {
    const world = new FakeWorld();
    fixture(world);
    const conflict = (reason: string): object => ({
      labels: { 'core.kbind.io/conflict': 'true' },
      annotations: { 'core.kbind.io/conflict': reason },
    });
    world.instance('a', { ...conflict('OwnedByAnother') });
    world.instance('b');
    world.instance('c', { ...conflict('OwnedByAnother') });
    await world.reconcile();
    expect(world.bindingNow()?.boundAPIs).toMatchObject([{ conflictCount: 2 }]);
    expect(world.condition('Conflicts')).toBe('True/OwnedByAnother');
    expect(world.condition('Ready')).toBe('True/AsExpected');
    expect(world.message('Conflicts')).toContain('team-a/a (OwnedByAnother)');
  });

  test('a Binding counts in its namespace only', async () => {
    const world = new FakeWorld();
    world.provider.put(resources.crds, crd(exported()));
    world.connection();
    world.binding({ kind: 'Binding' });
    const marked = {
      labels: { 'core.kbind.io/conflict': 'true' },
      annotations: { 'core.kbind.io/conflict': 'ForeignObjectExists' },
    };
    world.consumer.put(widgets, { metadata: { name: 'x', namespace: 'other', ...marked } });
    world.instance('y', marked);
    await world.reconcile('Binding');
    expect(world.bindingNow('Binding')?.boundAPIs).toMatchObject([{ conflictCount: 1 }]);
  });

  test('the counts that the backstop writes are kept', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.binding({ status: { boundAPIs: [{ name: API, conflictCount: 9, instances: 3, synced: 2, pending: 1 }] } });
    await world.reconcile();
    expect(world.bindingNow()?.boundAPIs).toMatchObject([{ conflictCount: 0, instances: 3, synced: 2, pending: 1 }]);
  });

  test('a shadowed binding says by whom (L23)', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.binding({ metadata: { name: 'a', uid: 'a-uid' } });
    await world.reconcile();
    expect(world.condition('Ready')).toBe('True/AsExpected');
    expect(world.message('Ready')).toContain(`${API} is synchronized by ClusterBinding a, which comes first`);
  });

  test('dropped versions are reported (L13)', async () => {
    const world = new FakeWorld();
    fixture(world);
    const schema = { openAPIV3Schema: { type: 'object' } };
    const versions = [
      { name: 'v1beta1', served: true, storage: false, schema },
      { name: 'v1', served: true, storage: true, schema },
    ];
    world.provider.put(resources.crds, crd(exported(), { versions }));
    await world.reconcile();
    expect(world.message('Ready')).toContain('left out: v1beta1');
    await world.reconcile();
    expect(world.events).toMatchObject([{ reason: 'VersionsDropped' }]);
  });

  test('two bindings that rely on one CRD do not take turns in writing bound-by', async () => {
    const world = new FakeWorld();
    fixture(world);
    await world.reconcile();
    const stored = world.crdNow;
    world.consumer.put(resources.crds, {
      ...stored,
      metadata: {
        ...stored?.metadata,
        annotations: { ...stored?.metadata.annotations, 'core.kbind.io/bound-by': 'other/1' },
      },
    });
    await world.reconcile();
    expect(world.crdNow?.metadata.annotations?.['core.kbind.io/bound-by']).toBe('other/1');
  });

  test('a deletion of the CRD between the read and bound-by is noticed: read again, not Ready', async () => {
    const world = new FakeWorld();
    fixture(world);
    world.consumer.put(resources.crds, crd(managed()));
    world.connection({ spec: { schema: { updatePolicy: 'Once' } } });
    world.consumer.beforeRequest = ({ verb, api }) => {
      if (verb !== 'patch' || !api.startsWith('customresourcedefinitions')) return;
      const present = world.crdNow;
      world.consumer.beforeRequest = () => undefined;
      world.consumer.put(resources.crds, { ...present, metadata: { ...present?.metadata, deletionTimestamp: ago(0) } });
    };
    await world.reconcile();
    expect(world.lines.some((line) => line.startsWith('read again'))).toBe(true);
    expect(world.condition('Ready')).toBe('False/Pending');
  });
});

test('a server that fills its cache of a new CRD’s instances is looked at again on the spot, as one that does not serve them yet', async () => {
  const world = new FakeWorld();
  fixture(world);
  world.consumer.put(resources.crds, crd(managed()));
  let refused = 0;
  world.consumer.beforeRequest = ({ verb, api }) => {
    if (verb !== 'list' || api !== API || refused === 2) return;
    refused += 1;
    throw new KbindError('throttled', 'storage is (re)initializing', { status: 429, fillsItsCache: true });
  };
  await world.reconcile();
  expect(refused).toBe(2);
  expect(world.condition('Ready')).toBe('True/AsExpected');
});

test('a denied watch is found out although the provider still fills its cache of the API', async () => {
  const world = new FakeWorld();
  fixture(world);
  world.consumer.put(resources.crds, crd(managed()));
  world.provider.beforeRequest = ({ verb, api }) => {
    if (api !== API) return;
    if (verb === 'list') throw new KbindError('throttled', 'filling', { status: 429, fillsItsCache: true });
    if (verb === 'watch') throw new KbindError('forbidden', 'watch is forbidden', { status: 403, verb, api });
  };
  await world.reconcile();
  expect(world.condition('PermissionDenied')).toBe('True/Forbidden');
});

describe('an update of the schema', () => {
  const changed = {
    versions: [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', description: 'new' } } },
    ],
  };

  async function bound(spec: object = {}): Promise<FakeWorld> {
    const world = new FakeWorld();
    fixture(world);
    world.connection({ spec: { schema: spec } });
    await world.reconcile();
    world.provider.put(resources.crds, crd(exported(), changed));
    return world;
  }

  test('Always follows, and crdHash with it', async () => {
    const world = await bound();
    const before = world.crdNow?.metadata.annotations?.['core.kbind.io/schema-hash'];
    await world.reconcile();
    expect(world.crdNow?.spec).toMatchObject(changed);
    const after = world.crdNow?.metadata.annotations?.['core.kbind.io/schema-hash'];
    expect(after).not.toBe(before);
    expect(world.bindingNow()?.boundAPIs).toMatchObject([{ crdHash: after }]);
  });

  test('Once does not: crdHash is that of what is installed (C4)', async () => {
    const world = await bound({ updatePolicy: 'Once' });
    const before = world.crdNow;
    await world.reconcile();
    expect(world.crdNow).toEqual(before);
  });

  test('what the API server refuses leaves the old CRD, and the binding says so in its words (L16)', async () => {
    const world = await bound();
    const before = world.crdNow;
    world.consumer.beforeRequest = ({ verb }) => {
      if (verb === 'update') throw new KbindError('invalid', 'status.storedVersions[0]: must appear in spec.versions');
    };
    await world.reconcile();
    expect(world.crdNow).toEqual(before);
    expect(world.condition('Ready')).toBe('True/AsExpected');
    expect(world.message('Ready')).toContain('must appear in spec.versions');
  });
});
