import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { isError } from '../../../lib/model/errors.ts';
import type { Network } from '../../support/faults/network.ts';
import type { VirtualQueues } from '../../support/queue/virtual-queue.ts';
import { flavourOf, type Action } from './actions.ts';
import type { Cell } from './cell.ts';
import {
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

/** Where actions happen. */
export interface Stage {
  readonly network: Network;
  readonly person: Person;
  readonly cell: Cell;
  readonly queues: VirtualQueues;
}

/** One action on its stage. */
export interface Call extends Stage {
  readonly action: Action;
  readonly consumer: KubeClient;
  readonly provider: KubeClient;
  readonly ref: ResourceRef;
}

export type Deed = (call: Call) => Promise<unknown>;

const REFUSALS = [
  'absent',
  'conflict',
  'invalid',
  'unserved',
  'namespace-missing',
  'namespace-terminating',
  'forbidden',
] as const;

/** What the server refuses (it is gone, it exists already) is as in life. */
export async function unlessRefused(deed: () => Promise<unknown>): Promise<void> {
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

export async function change(
  client: KubeClient,
  ref: ResourceRef,
  key: ObjectKey,
  edit: (object: KubeObject) => object,
): Promise<void> {
  const object = await client.get(ref, key);
  await client.update(ref, edit(object) as KubeObject);
}

export async function remove(client: KubeClient, ref: ResourceRef, key: ObjectKey): Promise<void> {
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

export const clusterBinding = { name: 'binding' };
const apisOf = ({ action: { value } }: Call): ApiName[] =>
  value % 3 === 0 ? ['widgets.example.org'] : ['widgets.example.org', 'gizmos.example.org'];
export const namespacedKey = ({ action }: Call) => ({
  namespace: NAMESPACES[action.value % 2] ?? NAMESPACES[0],
  name: 'binding',
});
export const createBinding = (call: Call): Promise<unknown> =>
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

export const editInstance = (call: Call): Promise<void> =>
  change(call.consumer, call.ref, call.action.key, (object) => ({ ...object, spec: instance(call).spec }));

async function createForeign(call: Call): Promise<void> {
  const { namespace } = call.action.key;
  if (namespace !== undefined)
    await call.provider
      .create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
      .catch(() => undefined);
  await call.provider.create(call.ref, instance(call, { labels: { owner: 'somebody' } }));
}

export async function usurp(call: Call): Promise<void> {
  await remove(call.provider, call.ref, call.action.key);
  await call.provider.create(call.ref, instance(call, { labels: { owner: 'somebody' } }));
}

/** Does it between the product's next read of the copy and the write that rests on it. */
export function whenRead({ network, ref, action }: Call, deed: () => Promise<unknown>): void {
  network.setTrap({
    cluster: 'provider',
    address: addressOf(ref, action.key),
    method: 'GET',
    moment: 'answer',
    spring: () => unlessRefused(deed),
  });
}

/** The end of the address of an object. */
export const addressOf = (ref: ResourceRef, { namespace, name }: ObjectKey): string =>
  `${collectionOf(ref, namespace)}/${name}`;
export const collectionOf = (ref: ResourceRef, namespace: string | undefined): string =>
  `${namespace === undefined ? '' : `/namespaces/${namespace}`}/${ref.resource}`;

const OWNERS = { 'core.kbind.io/consumer-cluster-uid': undefined, 'core.kbind.io/consumer-object-uid': undefined };

const createConnection: Deed = ({ consumer, action: { value } }) =>
  consumer.create(resources.connections, connectionObject(flavourOf(value)));

const setAutoBind = ({ consumer }: Call, autoBind: boolean): Promise<void> =>
  change(consumer, resources.connections, { name: CONNECTION }, (object) => ({
    ...object,
    spec: { ...(object.spec as object), autoBind },
  }));

export const createInstance: Deed = (call) => call.consumer.create(call.ref, instance(call));
export const removeInstance: Deed = ({ consumer, ref, action }) => remove(consumer, ref, action.key);

/** What people do with instances, copies, bindings and Connections. */
export const deeds = {
  create: createInstance,
  edit: editInstance,
  'remove field': (call) =>
    change(call.consumer, call.ref, call.action.key, (object) => ({ ...object, spec: { size: 1 } })),
  delete: removeInstance,
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
    await removeInstance(call);
  },
  'foreign before create': async (call) => {
    whenRead(call, () => createForeign(call));
    await createInstance(call);
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
  'create connection': createConnection,
  'recreate connection': async (call) => {
    await remove(call.consumer, resources.connections, { name: CONNECTION });
    await createConnection(call);
  },
  /** Somebody's own ClusterBinding where autoBind would make one; the second time it goes. */
  'own namesake': async (call) => {
    const namesake = await call.consumer.find(resources.clusterBindings, { name: CONNECTION });
    if (namesake !== undefined) return remove(call.consumer, resources.clusterBindings, { name: CONNECTION });
    const object = bindingObject('ClusterBinding', { apis: apisOf(call), adopt: false });
    return call.consumer.create(resources.clusterBindings, { ...object, metadata: { name: CONNECTION } });
  },
  'auto bind': (call) => setAutoBind(call, true),
  'no auto bind': (call) => setAutoBind(call, false),
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
} as const satisfies Readonly<Record<string, Deed>>;

function setAway(network: Network, away: boolean): Promise<void> {
  const provider = network.clusters.get('provider');
  if (provider !== undefined) provider.away = away;
  return Promise.resolve();
}
