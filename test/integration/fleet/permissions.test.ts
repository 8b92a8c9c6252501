import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { NEEDED } from '../../../lib/cli/preflight.ts';
import { resources, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { apiName, BenchCell, CONNECTION, FORWARDER, PRODUCT, until, widgets } from '../../support/bench/cell.ts';
import { createInstance, editSpec, editStatus, keyAt, remove } from '../../support/bench/instances.ts';
import type { SeenRequest } from '../../support/bench/servers.ts';

/** What the functions may do, compared with what they do in the life of a binding, and with what the preflight asks for. */

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

function rulesOf(file: string, ...roles: readonly string[]): Rule[] {
  const text = readFileSync(join(import.meta.dirname, '../../../infra/rbac', file), 'utf8');
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Role);
  return objects.flatMap(({ kind, metadata, rules = [] }) =>
    kind === 'ClusterRole' && roles.includes(metadata.name) ? rules : [],
  );
}
interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly Rule[];
}

/** `verb resource.group`, the subresource behind the resource. */
const used = (seen: readonly SeenRequest[]): Set<string> =>
  new Set(
    seen
      .filter(({ resource }) => resource !== '')
      .map(({ verb, resource, subresource, uri }) => {
        const group = /^\/apis\/([^/]+)\//.exec(uri)?.[1] ?? '';
        return `${verb} ${subresource === '' ? resource : `${resource}/${subresource}`}.${group}`;
      }),
  );

const granted = (rules: readonly Rule[]): Set<string> =>
  new Set(
    rules.flatMap(({ apiGroups, resources: names, verbs }) =>
      apiGroups.flatMap((group) =>
        names.flatMap((name) => verbs.map((verb) => `${verb} ${name.replace('*', 'widgets')}.${group}`)),
      ),
    ),
  );

const needed = new Set(
  NEEDED.flatMap(([{ group, resource }, verbs, subresource]) =>
    verbs.map((verb) => `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}.${group}`),
  ),
);
const beyond = (some: ReadonlySet<string>, whole: ReadonlySet<string>): string[] =>
  [...some].filter((one) => !whole.has(one));

/** Needed, but not in this life. */
const ELSEWHERE = [
  // autoBind.
  'create clusterbindings.core.kbind.io',
  'delete clusterbindings.core.kbind.io',
  // What a write that came too late reads again, and what the CLI looks at.
  'get bindings.core.kbind.io',
  'get clusterbindings.core.kbind.io',
  'get connections.core.kbind.io',
  // Bindings of a namespace.
  'patch bindings.core.kbind.io',
  'patch bindings/status.core.kbind.io',
  // An Event that happens again.
  'patch events.',
  'update clusterbindings.core.kbind.io',
  // A schema that changed.
  'update customresourcedefinitions.apiextensions.k8s.io',
  // A Lease that somebody has emptied.
  'update leases.coordination.k8s.io',
];
/** Only servers that show kcp's API are asked for it. */
const KCP = 'get logicalclusters.core.kcp.io';
/** A binding that goes is looked up copies for that the Go konnector left; where that is forbidden there are none. */
const MAY_BE_FORBIDDEN = ['list secrets.', 'list configmaps.'];

const consumerRules = granted(rulesOf('consumer.yaml', 'kbind-serverless'));
const consumerInstances = granted(rulesOf('consumer.yaml', 'kbind-serverless-instances'));
const providerRules = granted(rulesOf('provider.yaml', 'kbind-consumer', 'kbind-consumer-instances'));

let atConsumer: Set<string>;
let atProvider: Set<string>;

beforeAll(async () => {
  const cell = await BenchCell.start({ server: 'embedded' });
  const measured = await cell.measure(() => lifeOf(cell));
  await cell.stop();
  atConsumer = used(measured.consumer.filter(({ user }) => user === PRODUCT));
  atProvider = used(measured.provider.filter(({ user }) => user === PRODUCT || user === FORWARDER));
}, 120_000);

/** From the Connection to its end, with an instance, a conflict and a sweep between. */
async function lifeOf(cell: BenchCell): Promise<void> {
  const { consumer, provider } = cell;
  await cell.startForwarder();
  await cell.connect();
  await cell.bind('widgets', [apiName(widgets)]);
  await cell.untilBound('widgets');
  await createInstance(consumer, 0);
  await until('the copy is there', async () => (await provider.hands.find(widgets, keyAt(0))) !== undefined);
  await editSpec(consumer, keyAt(0), 2);
  await editStatus(provider, keyAt(0), 'Up');
  await until('its status came back', async () => {
    const { status } = await consumer.hands.get(widgets, keyAt(0));
    return (status as { phase?: string } | undefined)?.phase === 'Up';
  });
  await createInstance(provider, 1);
  await createInstance(consumer, 1);
  await until('the conflict is known', async () => {
    const { annotations = {} } = (await consumer.hands.get(widgets, keyAt(1))).metadata;
    return Object.keys(annotations).some((name) => name.includes('conflict'));
  });
  await cell.tick({ atStart: true });
  await cell.settled();
  await remove(consumer, keyAt(0));
  await gone(cell, widgets, keyAt(0));
  await end(cell, resources.clusterBindings, { name: 'widgets' });
  await end(cell, resources.connections, { name: CONNECTION });
}

const gone = ({ consumer }: BenchCell, ref: ResourceRef, key: ObjectKey): Promise<unknown> =>
  until(`${ref.kind} ${key.name} is gone`, async () => (await consumer.hands.find(ref, key)) === undefined);

async function end(cell: BenchCell, ref: ResourceRef, key: ObjectKey): Promise<void> {
  const { uid, resourceVersion } = (await cell.consumer.hands.get(ref, key)).metadata;
  await cell.consumer.hands.delete(ref, key, { uid, resourceVersion });
  await gone(cell, ref, key);
}

describe('permissions', () => {
  it('in a consumer are enough for all that is done there', () => {
    expect(beyond(atConsumer, new Set([...consumerRules, ...consumerInstances, ...MAY_BE_FORBIDDEN]))).toEqual([]);
  });

  it('in a consumer are what the preflight asks for, and nothing but', () => {
    const unasked = [KCP, 'list events.'];
    expect(beyond(needed, consumerRules)).toEqual([]);
    expect(beyond(consumerRules, needed).toSorted()).toEqual(unasked);
  });

  it('of instances in a consumer are all used', () => {
    expect(beyond(consumerInstances, atConsumer)).toEqual([]);
  });

  it('in a consumer are used in one life, but for those that other lives need', () => {
    expect(beyond(needed, new Set([...atConsumer, ...ELSEWHERE]))).toEqual([]);
  });

  it('on a provider are enough for all that is done there, and none is left over', () => {
    expect(beyond(atProvider, new Set([...providerRules, ...MAY_BE_FORBIDDEN]))).toEqual([]);
    // A sign of life is renewed by a later refresh.
    const later = [KCP, 'update leases.coordination.k8s.io'];
    expect(beyond(providerRules, new Set([...atProvider, ...later]))).toEqual([]);
  });
});
