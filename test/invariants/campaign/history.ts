import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { isError } from '../../../lib/model/errors.ts';
import type { Network } from '../../support/faults/network.ts';
import type { Random } from '../../support/faults/random.ts';
import {
  apis,
  base64,
  bindingObject,
  CONNECTION,
  connectionObject,
  kubeconfigFor,
  NAMESPACES,
  SECRET,
  type ApiName,
  type Person,
} from './setup.ts';

/** What people do. All parameters are in it, so that any part of a history can be left out when a failure is narrowed down. */
export interface Action {
  /** Milliseconds since the beginning. */
  readonly at: number;
  readonly what: (typeof kinds)[number];
  readonly consumer: string;
  readonly api: ApiName;
  readonly key: ObjectKey;
  readonly value: number;
}

const kinds = [
  'create', 'create', 'create', 'create', 'edit', 'edit', 'edit', 'remove field', 'delete', 'delete', 'delete', 'recreate', 'orphan', 'no orphan',
  'foreign create', 'foreign delete', 'edit copy', 'delete copy', 'strip markers', 'strip one marker', 'provider status', 'provider status', 'provider finalizer', 'provider unfinalizer',
  'delete binding', 'create binding', 'create binding', 'recreate binding', 'namespaced binding', 'delete namespaced binding', 'adopt', 'fail', 'edit apis',
  'delete connection', 'create connection', 'recreate connection', 'break secret', 'restore secret', 'restore secret', 'rotate', 'delete crd', 'unexport', 'export', 'provider away', 'provider back',
  'edit foreign', 'usurp', 'usurp before apply', 'usurp before delete', 'foreign before create',
] as const; // prettier-ignore

/** What belongs together: most races need two steps of one theme on one object, within milliseconds. */
const themes: readonly (readonly Action['what'][])[] = [
  ['create', 'create', 'edit', 'remove field', 'remove field', 'delete', 'recreate', 'edit copy', 'provider status', 'provider finalizer', 'provider unfinalizer', 'strip one marker'],
  ['create', 'create', 'edit', 'edit', 'foreign create', 'foreign delete', 'foreign delete', 'usurp', 'usurp before apply', 'usurp before apply', 'usurp before delete', 'usurp before delete', 'foreign before create', 'edit foreign', 'strip markers', 'strip one marker', 'adopt', 'fail'],
  ['create', 'create', 'edit', 'delete', 'delete binding', 'create binding', 'recreate binding', 'namespaced binding', 'delete namespaced binding', 'delete connection', 'create connection', 'recreate connection'],
  ['create', 'edit', 'edit', 'delete', 'break secret', 'restore secret', 'rotate', 'provider away', 'provider back', 'unexport', 'export'],
]; // prettier-ignore

const NAMES = ['a', 'b'] as const;

/** A random history; the first steps make something that the others can spoil. */
export function randomHistory(
  random: Random,
  options: { actions: number; consumers: readonly string[]; pauseMs: number },
): Action[] {
  let at = 2_000;
  const actions: Action[] = [];
  const theme = random.chance(0.6) ? random.pick(themes) : undefined;
  const add = (what: Action['what'], fixed: Partial<Action> = {}): void => {
    const api = random.chance(0.75) ? 'widgets.example.org' : 'gizmos.example.org';
    const name = theme === undefined ? random.pick(NAMES) : NAMES[0];
    const namespace = theme === undefined || random.chance(0.2) ? random.pick(NAMESPACES) : NAMESPACES[0];
    const key = apis[api].namespaced ? { namespace, name } : { name };
    actions.push({
      at,
      what,
      consumer: random.pick(options.consumers),
      api,
      key,
      value: random.below(1_000_000),
      ...fixed,
    });
    at += random.chance(0.3) ? random.below(50) : random.below(options.pauseMs);
  };
  for (const consumer of options.consumers) {
    add('create connection', { consumer });
    add(random.chance(0.75) ? 'create binding' : 'namespaced binding', { consumer });
  }
  // Most histories let the API arrive before the first instance is made.
  at += random.pick([0, 4_000, 8_000]);
  for (let index = 0; index < 3; index += 1) add('create');
  for (let index = 0; index < options.actions; index += 1) add(random.pick(theme ?? kinds));
  return actions;
}

interface Stage {
  readonly network: Network;
  readonly person: Person;
}

interface Call extends Stage {
  readonly action: Action;
  readonly consumer: KubeClient;
  readonly provider: KubeClient;
  readonly ref: ResourceRef;
}

const REFUSALS = [
  'absent',
  'conflict',
  'invalid',
  'unserved',
  'namespace-missing',
  'namespace-terminating',
  'forbidden',
] as const;

/** Does what a person would; what the server refuses (it is gone, it exists already) is as in life. */
export async function perform(stage: Stage, action: Action): Promise<void> {
  const consumer = stage.person.client(`${action.consumer}.test`);
  const provider = stage.person.client('provider.test');
  await unlessRefused(() => deeds[action.what]({ ...stage, action, consumer, provider, ref: apis[action.api] }));
}

async function unlessRefused(deed: () => Promise<unknown>): Promise<void> {
  try {
    await deed();
  } catch (error) {
    if (!isError(error, ...REFUSALS)) throw error;
  }
}

const instance = ({ ref, action }: Call, extra: object = {}) => ({
  apiVersion: `${ref.group}/${ref.version}`,
  kind: ref.kind,
  metadata: { ...action.key, ...extra },
  spec: {
    size: action.value % 5,
    note: `n${action.value % 7}`,
    ...(action.value % 2 === 0 ? { extra: action.value } : {}),
  },
});

async function change(
  client: KubeClient,
  ref: ResourceRef,
  key: ObjectKey,
  edit: (object: KubeObject) => object,
): Promise<void> {
  const object = await client.get(ref, key);
  await client.update(ref, edit(object) as KubeObject);
}

async function remove(client: KubeClient, ref: ResourceRef, key: ObjectKey): Promise<void> {
  const { metadata } = await client.get(ref, key);
  await client.delete(ref, key, metadata);
}

const annotated = (object: KubeObject, changes: Readonly<Record<string, string | undefined>>): object => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: Object.fromEntries(
      Object.entries({ ...object.metadata.annotations, ...changes }).filter(([, value]) => value !== undefined),
    ),
  },
});

const clusterBinding = { name: 'binding' };
const apisOf = ({ action: { value } }: Call): ApiName[] =>
  value % 3 === 0 ? ['widgets.example.org'] : ['widgets.example.org', 'gizmos.example.org'];
const namespacedKey = ({ action }: Call) => ({
  namespace: NAMESPACES[action.value % 2] ?? NAMESPACES[0],
  name: 'binding',
});
const createBinding = (call: Call): Promise<unknown> =>
  call.consumer.create(
    resources.clusterBindings,
    bindingObject('ClusterBinding', { apis: apisOf(call), adopt: call.action.value % 5 === 0 }),
  );

async function setPolicy({ consumer }: Call, conflictPolicy: 'Adopt' | 'Fail'): Promise<void> {
  await change(consumer, resources.clusterBindings, clusterBinding, (object) => ({
    ...object,
    spec: { ...(object.spec as object), conflictPolicy },
  }));
}

async function setSecret({ consumer }: Call, text: string): Promise<void> {
  await change(consumer, resources.secrets, SECRET, (object) => ({ ...object, data: { kubeconfig: base64(text) } }));
}

function newCredential({ network, action }: Call): string {
  const host = `${action.consumer}-${action.value}.provider.test`;
  network.routes.set(host, { cluster: 'provider', valid: true });
  return host;
}

const setExported = ({ provider, action }: Call, exported: string): Promise<void> =>
  change(provider, resources.crds, { name: action.api }, (object) => ({
    ...object,
    metadata: { ...object.metadata, labels: { ...object.metadata.labels, 'core.kbind.io/exported': exported } },
  }));

const editInstance = (call: Call): Promise<void> =>
  change(call.consumer, call.ref, call.action.key, (object) => ({ ...object, spec: instance(call).spec }));

async function createForeign(call: Call): Promise<void> {
  const { namespace } = call.action.key;
  if (namespace !== undefined)
    await call.provider
      .create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
      .catch(() => undefined);
  await call.provider.create(call.ref, instance(call, { labels: { owner: 'somebody' } }));
}

async function usurp(call: Call): Promise<void> {
  await remove(call.provider, call.ref, call.action.key);
  await call.provider.create(call.ref, instance(call, { labels: { owner: 'somebody' } }));
}

/** Does it between the product's next read of the copy and the write that rests on it. */
function whenRead({ network, ref, action }: Call, deed: () => Promise<unknown>): void {
  const { namespace, name } = action.key;
  const address = `${namespace === undefined ? '' : `/namespaces/${namespace}`}/${ref.resource}/${name}`;
  network.setTrap({ cluster: 'provider', address, spring: () => unlessRefused(deed) });
}

const OWNERS = { 'core.kbind.io/consumer-cluster-uid': undefined, 'core.kbind.io/consumer-object-uid': undefined };

const deeds: Readonly<Record<Action['what'], (call: Call) => Promise<unknown>>> = {
  create: (call) => call.consumer.create(call.ref, instance(call)),
  edit: editInstance,
  'remove field': (call) =>
    change(call.consumer, call.ref, call.action.key, (object) => ({ ...object, spec: { size: 1 } })),
  delete: ({ consumer, ref, action }) => remove(consumer, ref, action.key),
  recreate: async (call) => {
    await remove(call.consumer, call.ref, call.action.key);
    await call.consumer.create(call.ref, instance(call));
  },
  orphan: ({ consumer, ref, action }) =>
    change(consumer, ref, action.key, (object) => annotated(object, { 'core.kbind.io/deletion-policy': 'Orphan' })),
  'no orphan': ({ consumer, ref, action }) =>
    change(consumer, ref, action.key, (object) => annotated(object, { 'core.kbind.io/deletion-policy': undefined })),
  'foreign create': createForeign,
  'foreign delete': ({ provider, ref, action }) => remove(provider, ref, action.key),
  /** Somebody takes the copy away and puts an object of their own in its place. */
  usurp,
  'usurp before apply': async (call) => {
    whenRead(call, () => usurp(call));
    await editInstance(call);
  },
  'usurp before delete': async (call) => {
    whenRead(call, () => usurp(call));
    await remove(call.consumer, call.ref, call.action.key);
  },
  'foreign before create': async (call) => {
    whenRead(call, () => createForeign(call));
    await call.consumer.create(call.ref, instance(call));
  },
  'edit foreign': (call) =>
    change(call.provider, call.ref, call.action.key, (object) => ({ ...object, spec: { mine: call.action.value } })),
  'edit copy': (call) =>
    change(call.provider, call.ref, call.action.key, (object) => ({
      ...object,
      spec: { ...(object.spec as object), size: 99 },
    })),
  'delete copy': ({ provider, ref, action }) => remove(provider, ref, action.key),
  'strip markers': ({ provider, ref, action }) =>
    change(provider, ref, action.key, (object) => annotated(object, OWNERS)),
  'strip one marker': ({ provider, ref, action }) =>
    change(provider, ref, action.key, (object) =>
      annotated(object, { 'core.kbind.io/consumer-object-uid': undefined }),
    ),
  'provider status': async ({ provider, ref, action }) => {
    const object = await provider.get(ref, action.key);
    const status = { phase: `p${action.value % 4}`, seen: action.value };
    if (!ref.namespaced) return provider.update(ref, { ...object, status });
    return provider.patch(ref, action.key, {
      read: object.metadata,
      operations: [{ op: 'add', path: '/status', value: status }],
      subresource: 'status',
    });
  },
  'provider finalizer': ({ provider, ref, action }) =>
    change(provider, ref, action.key, (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: ['example.org/hold'] },
    })),
  'provider unfinalizer': ({ provider, ref, action }) =>
    change(provider, ref, action.key, (object) => ({ ...object, metadata: { ...object.metadata, finalizers: [] } })),
  'delete binding': ({ consumer }) => remove(consumer, resources.clusterBindings, clusterBinding),
  'create binding': createBinding,
  'recreate binding': async (call) => {
    await remove(call.consumer, resources.clusterBindings, clusterBinding);
    await createBinding(call);
  },
  'namespaced binding': (call) =>
    call.consumer.create(
      resources.bindings,
      bindingObject('Binding', {
        namespace: namespacedKey(call).namespace,
        apis: apisOf(call),
        adopt: call.action.value % 5 === 0,
      }),
    ),
  'delete namespaced binding': (call) => remove(call.consumer, resources.bindings, namespacedKey(call)),
  adopt: (call) => setPolicy(call, 'Adopt'),
  fail: (call) => setPolicy(call, 'Fail'),
  'edit apis': (call) =>
    change(call.consumer, resources.clusterBindings, clusterBinding, (object) => ({
      ...object,
      spec: { ...(object.spec as object), apis: apisOf(call).map((name) => ({ name })) },
    })),
  'delete connection': ({ consumer }) => remove(consumer, resources.connections, { name: CONNECTION }),
  'create connection': ({ consumer }) => consumer.create(resources.connections, connectionObject()),
  'recreate connection': async ({ consumer }) => {
    await remove(consumer, resources.connections, { name: CONNECTION });
    await consumer.create(resources.connections, connectionObject());
  },
  'break secret': (call) => setSecret(call, 'no kubeconfig'),
  'restore secret': (call) => setSecret(call, kubeconfigFor(newCredential(call))),
  rotate: async (call) => {
    const fresh = newCredential(call);
    await setSecret(call, kubeconfigFor(fresh));
    for (const [host, route] of call.network.routes)
      if (host.startsWith(`${call.action.consumer}-`) && host !== fresh) route.valid = false;
  },
  'delete crd': ({ consumer, action }) => remove(consumer, resources.crds, { name: action.api }),
  unexport: (call) => setExported(call, 'false'),
  export: (call) => setExported(call, 'true'),
  'provider away': ({ network }) => setAway(network, true),
  'provider back': ({ network }) => setAway(network, false),
};

function setAway(network: Network, away: boolean): Promise<void> {
  const provider = network.clusters.get('provider');
  if (provider !== undefined) provider.away = away;
  return Promise.resolve();
}
