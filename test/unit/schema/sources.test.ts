import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import type { ServedResource } from '../../../lib/kube/discovery.ts';
import { pullPolicies, updatePolicies } from '../../../lib/model/kinds.ts';
import { parseConnection } from '../../../lib/model/kinds.ts';
import { installSchema } from '../../../lib/reconcile/schema-install.ts';
import { readSchema } from '../../../lib/reconcile/schema-read.ts';
import type { InstallRequest, SchemaResult } from '../../../lib/reconcile/schema-result.ts';
import { installSynthesized } from '../../../lib/reconcile/schema-synthesis.ts';
import { API, crd, exported, FakeWorld, managed } from '../binding/fake-world.ts';

/**
 * Source × pullPolicy × updatePolicy × what the consumer has, by who brings the schema in: the outcome and whether anything
 * was written. Auto is one of the two sources by the time that a schema is brought in (which-source.ts).
 */
const consumers = {
  absent: undefined,
  present: crd(managed()),
  foreign: crd({}, { names: { plural: 'widgets', singular: 'widget', kind: 'Other', listKind: 'OtherList' } }),
  elsewhere: crd(managed('other')),
} as const;
type Consumer = keyof typeof consumers;

const served: ServedResource = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  singular: 'widget',
  namespaced: true,
  status: true,
  shortNames: [],
  categories: [],
  verbs: ['get'],
};
/** [Bound and All, Always], [Bound and All, Once], [None]. */
type Outcomes = readonly [always: string, once: string, none: string];

// 'present' has no recorded hash, so that it counts as changed.
const tables: Record<'CRD' | 'OpenAPI, Connection' | 'OpenAPI, binding', Record<Consumer, Outcomes>> = {
  CRD: {
    absent: ['installed, written', 'installed, written', 'missing'],
    present: ['installed, written', 'installed', 'installed'],
    foreign: ['foreign', 'foreign', 'installed, written'],
    elsewhere: ['owned-by-another', 'owned-by-another', 'owned-by-another'],
  },
  'OpenAPI, Connection': {
    absent: ['installed, written', 'installed, written', 'missing'],
    present: ['installed, written', 'installed', 'installed'],
    foreign: ['foreign', 'foreign', 'installed, written'],
    elsewhere: ['owned-by-another', 'owned-by-another', 'owned-by-another'],
  },
  'OpenAPI, binding': {
    absent: ['needs documents', 'needs documents', 'missing'],
    present: ['installed', 'installed', 'installed'],
    foreign: ['missing', 'missing', 'missing'],
    elsewhere: ['owned-by-another', 'owned-by-another', 'owned-by-another'],
  },
};

const rows = Object.entries(tables).flatMap(([source, table]) =>
  Object.entries(table).flatMap(([consumer, [always, once, none]]) =>
    pullPolicies.flatMap((pullPolicy) =>
      updatePolicies.map((updatePolicy) => ({
        source,
        consumer: consumer as Consumer,
        pullPolicy,
        updatePolicy,
        want: pullPolicy === 'None' ? none : updatePolicy === 'Always' ? always : once,
      })),
    ),
  ),
);

async function bringIn({ source, consumer, ...policy }: Omit<(typeof rows)[number], 'want'>): Promise<string> {
  const fake = new FakeWorld();
  const present = consumers[consumer];
  if (present !== undefined) fake.consumer.put(resources.crds, present);
  fake.provider.put(resources.crds, crd(exported()));
  const connection = parseConnection(fake.connection());
  const world = fake.world();
  const before = JSON.stringify(fake.consumer.at(resources.crds, { name: API }));
  const provider = await world.providers.open(connection);
  const request: InstallRequest = { provider, connection, api: API, policy, conflictPolicy: 'Fail' };
  const bring = (): Promise<SchemaResult> => {
    if (source === 'CRD') return installSchema(world, request);
    if (source === 'OpenAPI, binding') return readSchema(world, request);
    return installSynthesized(world, request, {
      served: [served],
      documents: { of: () => Promise.resolve(undefined) },
    });
  };
  try {
    const { state } = await bring();
    const written = JSON.stringify(fake.consumer.at(resources.crds, { name: API })) !== before;
    return written ? `${state}, written` : state;
  } catch (error) {
    // The fake has no discovery: that it was asked is the answer.
    if (String(error).includes('not part of the fake')) return 'needs documents';
    throw error;
  }
}

describe('the schema of an API', () => {
  test.each(rows)('$source: $consumer, pullPolicy $pullPolicy, updatePolicy $updatePolicy → $want', async (row) => {
    expect(await bringIn(row)).toBe(row.want);
  });

  test.each(['absent', 'present'] as const)(
    'an aggregated API that cannot tell leaves things as they are: %s',
    async (consumer) => {
      const fake = new FakeWorld();
      const present = consumers[consumer];
      if (present !== undefined) fake.consumer.put(resources.crds, present);
      const connection = parseConnection(fake.connection());
      const world = fake.world();
      const provider = await world.providers.open(connection);
      const policy = { pullPolicy: 'All', updatePolicy: 'Always' } as const;
      const sources = { served: [], documents: { of: () => Promise.resolve(undefined) } };
      const { state } = await installSynthesized(
        world,
        { provider, connection, api: API, policy, conflictPolicy: 'Fail' },
        sources,
      );
      expect(state).toBe(consumer === 'present' ? 'installed' : 'missing');
    },
  );
});
