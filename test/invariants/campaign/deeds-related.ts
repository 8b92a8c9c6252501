import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import {
  addressOf,
  change,
  clusterBinding,
  collectionOf,
  namespacedKey,
  remove,
  unlessRefused,
  type Call,
  type Deed,
} from './deeds.ts';
import { base64, NAMESPACES } from './setup.ts';

const AFTER_A_BATCH_MS = 1_000;
const ON_ITS_WAY_MS = 3_000;
const SHARED = { matchLabels: { share: 'yes' } };
const entry = (
  resource: 'secrets' | 'configmaps',
  direction: 'FromProvider' | 'FromConsumer',
  selector: object,
): object => ({
  group: '',
  resource,
  direction,
  selector,
});
const byLabel = { labelSelector: SHARED };
const byName = { names: ['r-a'] };

/** What bindings ask for: one route, several, both directions of one kind, nothing any more. */
const WISHES: readonly (readonly object[])[] = [
  [entry('secrets', 'FromProvider', byLabel)],
  [entry('secrets', 'FromProvider', byName), entry('configmaps', 'FromConsumer', byLabel)],
  [entry('configmaps', 'FromProvider', byLabel), entry('secrets', 'FromConsumer', { names: ['r-a', 'r-b'] })],
  [entry('secrets', 'FromProvider', byLabel), entry('configmaps', 'FromProvider', byLabel), entry('secrets', 'FromConsumer', byLabel), entry('configmaps', 'FromConsumer', byLabel)],
  [entry('secrets', 'FromProvider', byLabel), entry('secrets', 'FromConsumer', { ...byLabel, ...byName })],
  [],
]; // prettier-ignore

interface Place {
  readonly ref: ResourceRef;
  readonly key: ObjectKey;
  readonly source: KubeClient;
  readonly target: KubeClient;
  readonly targetCluster: string;
}

/** Which object an action means: its kind and direction are in the value. */
function placeOf({ action, consumer, provider }: Call): Place {
  const { key, value } = action;
  const fromProvider = Math.floor(value / 2) % 2 === 0;
  return {
    ref: value % 2 === 0 ? resources.secrets : resources.configmaps,
    key: { namespace: key.namespace ?? NAMESPACES[0], name: `r-${key.name}` },
    source: fromProvider ? provider : consumer,
    target: fromProvider ? consumer : provider,
    targetCluster: fromProvider ? action.consumer : 'provider',
  };
}

const textOf = ({ ref }: Place, text: string): string => (ref === resources.secrets ? base64(text) : text);

const objectOf = (place: Place, { action: { value } }: Call, whose: string) => ({
  apiVersion: 'v1',
  kind: place.ref.kind,
  metadata: { ...place.key, labels: { whose, ...(value % 3 === 0 ? {} : { share: 'yes' }) } },
  data: { key: textOf(place, `${whose}-${value}`), ...(value % 5 === 0 ? { more: textOf(place, 'more') } : {}) },
  ...(value % 11 === 0 ? { immutable: true } : {}),
});

async function ensureNamespace(client: KubeClient, { namespace }: ObjectKey): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace ?? '' } };
  await unlessRefused(() => client.create(resources.namespaces, object));
}

const makeSource: Deed = async (call) => {
  const place = placeOf(call);
  await ensureNamespace(place.source, place.key);
  await place.source.create(place.ref, objectOf(place, call, 'provider'));
};

/** Somebody's own object where a copy would stand. */
const makeTarget: Deed = async (call) => {
  const place = placeOf(call);
  await ensureNamespace(place.target, place.key);
  await place.target.create(place.ref, objectOf(place, call, 'somebody'));
};

const removeTarget = (call: Call): Promise<void> => {
  const { target, ref, key } = placeOf(call);
  return remove(target, ref, key);
};

const usurpTarget = async (call: Call): Promise<undefined> => {
  await unlessRefused(() => removeTarget(call));
  await unlessRefused(() => makeTarget(call));
  return undefined;
};

const editSource: Deed = (call) => {
  const place = placeOf(call);
  const { data } = objectOf(place, call, 'edited');
  return change(place.source, place.ref, place.key, (object) => ({ ...object, data }));
};

const deleteSource: Deed = (call) => {
  const { source, ref, key } = placeOf(call);
  return remove(source, ref, key);
};

const wish = (object: KubeObject, relatedResources: readonly object[]): object => ({
  ...object,
  spec: { ...(object.spec as object), relatedResources },
});
const wished = ({ action: { value } }: Call): readonly object[] => WISHES[value % WISHES.length] ?? [];
const relate = (call: Call, wishes: readonly object[]): Promise<void> =>
  change(call.consumer, resources.clusterBindings, clusterBinding, (object) => wish(object, wishes));

export const relatedDeeds = {
  relate: (call) => relate(call, wished(call)),
  'relate namespaced': (call) =>
    change(call.consumer, resources.bindings, namespacedKey(call), (object) => wish(object, wished(call))),
  'make source': makeSource,
  'edit source': editSource,
  'delete source': deleteSource,
  'unlabel source': (call) => {
    const { source, ref, key } = placeOf(call);
    return change(source, ref, key, (object) => ({ ...object, metadata: { ...object.metadata, labels: {} } }));
  },
  'make target': makeTarget,
  'delete target': removeTarget,
  'edit related copy': (call) => {
    const place = placeOf(call);
    return change(place.target, place.ref, place.key, (object) => ({
      ...object,
      data: { ...(object['data'] as object), key: textOf(place, 'theirs') },
    }));
  },
  'usurp before related write': async (call) => {
    const { targetCluster: cluster, ref, key } = placeOf(call);
    const spring = (): Promise<undefined> => usurpTarget(call);
    const onTheWay = { cluster, moment: 'request', spring } as const;
    call.network.setTrap({ ...onTheWay, method: 'POST', address: collectionOf(ref, key.namespace) });
    call.network.setTrap({ ...onTheWay, method: 'PATCH', address: addressOf(ref, key) });
    await unlessRefused(() => editSource(call));
    await unlessRefused(() => makeSource(call));
  },
  'usurp before related delete': async (call) => {
    const { targetCluster: cluster, ref, key } = placeOf(call);
    call.network.setTrap({
      cluster,
      moment: 'request',
      method: 'DELETE',
      address: addressOf(ref, key),
      spring: () => usurpTarget(call),
    });
    await deleteSource(call);
  },
  /** The entry or the source goes, and a second container finds nothing to do, while a copy is on its way. */
  'unrelate before create': async (call) => {
    const { targetCluster: cluster, ref, key } = placeOf(call);
    call.network.setTrap({
      cluster,
      moment: 'request',
      method: 'POST',
      address: collectionOf(ref, key.namespace),
      spring: async () => {
        await unlessRefused(() => (call.action.value % 7 < 3 ? relate(call, []) : deleteSource(call)));
        await call.network.time.sleep(ON_ITS_WAY_MS);
      },
    });
    call.cell.doubleNext(['"controller":"clusterbinding"'], AFTER_A_BATCH_MS);
    await makeSource(call);
  },
} as const satisfies Readonly<Record<string, Deed>>;
