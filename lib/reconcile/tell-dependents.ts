import { hashJson } from '../kube/json.ts';
import { keyOf, type KubeObject, type ResourceRef } from '../model/api.ts';
import { findCondition } from '../model/conditions.ts';
import type { AnyBinding, Connection } from '../model/kinds.ts';
import { CONNECTION_ANNOTATION, FANNED_OUT_ANNOTATION } from '../model/markers.ts';
import { connectionIsReady, providerEpoch } from '../model/may-act.ts';
import { reconcileRequest, type ReconcileRequest } from '../model/request.ts';
import { setMarkers } from './object-writes.ts';
import type { World } from './world.ts';

/** What the annotation `fanned-out` holds: the state that dependents were last told of, and the APIs that it was about. */
interface FannedOut {
  readonly hash: string;
  readonly apis: readonly string[];
}

/** A Connection or binding that tells, as it stands after its own status was written. */
export interface Teller {
  readonly ref: ResourceRef;
  /** The status write's answer, or the object as read where nothing had to be written. */
  readonly object: KubeObject;
  /** The epoch of the Connection: its own, or that of the one which the binding refers to. */
  readonly epoch: string;
  /** APIs that it is about now; its dependents are told over these and the former ones. */
  readonly apis: readonly string[];
}

/** Puts a teller's dependents on the queue; resolves when the queue has acknowledged. */
type Enqueue = (apis: readonly string[], change: string) => Promise<void>;

/**
 * Design rule 6: tells the dependents whenever (generation, deleting, Ready and when it last changed, epoch) differs from
 * what they were last told, and remembers it on the object only after the queue has acknowledged: dying in between is a
 * redelivery that tells again. A status that only counts something tells nobody.
 * @returns the object as it stands afterwards.
 */
export async function tellDependents(world: World, teller: Teller, enqueue: Enqueue): Promise<KubeObject> {
  const { ref, object } = teller;
  const hash = stateHash(teller);
  const told = toldOf(object);
  if (told?.hash === hash) return object;
  const apis = [...new Set([...teller.apis, ...(told?.apis ?? [])])].sort();
  await enqueue(apis, `${object.metadata.uid}/${object.metadata.resourceVersion}`);
  // Of another cluster, the dependents that were told are not these, and its own work would find that they were.
  await world.consumer.confirmIdentity(0);
  const now: FannedOut = { hash, apis: [...new Set(teller.apis)].sort() };
  return setMarkers(
    world.consumer.client,
    { ref, object },
    { annotations: { [FANNED_OUT_ANNOTATION]: JSON.stringify(now) } },
    { signal: world.signal },
  );
}

function stateHash({ object, epoch }: Teller): string {
  const status = object.status as { readonly conditions?: Connection['status']['conditions'] } | undefined;
  const ready = findCondition(status?.conditions, 'Ready');
  return hashJson({
    generation: object.metadata.generation ?? 0,
    deleting: object.metadata.deletionTimestamp !== undefined,
    ready: ready?.status ?? '',
    since: ready?.lastTransitionTime ?? '',
    epoch,
  });
}

/** Anything that we did not write counts as never told: telling once more does no harm. */
function toldOf(object: KubeObject): FannedOut | undefined {
  const text = object.metadata.annotations?.[FANNED_OUT_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const { hash, apis } = JSON.parse(text) as { readonly hash?: unknown; readonly apis?: unknown };
    const names = Array.isArray(apis) ? apis.filter((api) => typeof api === 'string') : [];
    return typeof hash === 'string' ? { hash, apis: names } : undefined;
  } catch {
    return undefined;
  }
}

/** A Connection tells the bindings that refer to it and the managed CRDs that are pinned to it. */
export function tellConnectionDependents(world: World, ref: ResourceRef, connection: Connection): Promise<KubeObject> {
  const { name } = connection.metadata;
  const teller = { ref, object: connection.raw, epoch: providerEpoch(connection), apis: [] };
  return tellDependents(world, teller, async (_apis, change) => {
    const requests = await dependentsOf(world, name);
    if (requests.length > 0) await world.tell.reconcile(requests, change);
  });
}

/**
 * Bindings that list an API which was not exported before wait for nothing else: they are told at once, beside rule 6. Dying
 * before it leaves them to the 30-second refresh.
 */
export async function tellNewlyExported(world: World, before: Connection, after: Connection): Promise<void> {
  const known = new Set(before.status.exportedAPIs?.map(({ name }) => name));
  const added = new Set(after.status.exportedAPIs?.map(({ name }) => name).filter((name) => !known.has(name)));
  // One that was not Ready has told all of its bindings by now.
  if (added.size === 0 || !connectionIsReady(before)) return;
  const { name, uid, resourceVersion } = after.metadata;
  const [clusterBindings, bindings] = await Promise.all([world.reads.clusterBindings(), world.reads.bindings()]);
  const waiting = [...clusterBindings.value, ...bindings.value].filter(
    ({ spec }) => spec.connectionRef.name === name && spec.apis.some((api) => added.has(api.name)),
  );
  if (waiting.length === 0) return;
  const requests = waiting.map((binding) => reconcileRequest(world.cluster, controllerOf(binding), keyOf(binding.raw)));
  await world.tell.reconcile(requests, `${uid}/${resourceVersion}`);
}

async function dependentsOf(world: World, name: string): Promise<ReconcileRequest[]> {
  const { reads, cluster } = world;
  const [clusterBindings, bindings, crds] = await Promise.all([
    reads.clusterBindings(),
    reads.bindings(),
    reads.managedCrds(),
  ]);
  const referring = [...clusterBindings.value, ...bindings.value].filter(
    ({ spec }) => spec.connectionRef.name === name,
  );
  const pinned = crds.value.filter(({ metadata }) => metadata.annotations?.[CONNECTION_ANNOTATION] === name);
  return [
    ...referring.map((binding) => reconcileRequest(cluster, controllerOf(binding), keyOf(binding.raw))),
    ...pinned.map((crd) => reconcileRequest(cluster, 'crd', keyOf(crd))),
  ];
}

const controllerOf = ({ kind }: AnyBinding): 'clusterbinding' | 'binding' =>
  kind === 'ClusterBinding' ? 'clusterbinding' : 'binding';

/** A binding tells its instances, by one sweep over its present and former APIs: in its namespace for a Binding. */
export function tellBindingDependents(
  world: World,
  ref: ResourceRef,
  told: { readonly binding: AnyBinding; readonly connection: Connection | undefined },
): Promise<KubeObject> {
  const { binding, connection } = told;
  const apis = binding.spec.apis.map(({ name }) => name);
  const teller = { ref, object: binding.raw, epoch: providerEpoch(connection), apis };
  return tellDependents(world, teller, (affected, change) =>
    world.tell.sweep({
      v: 1,
      type: 'sweep',
      cluster: world.cluster,
      apis: affected,
      ...(binding.kind === 'Binding' ? { namespace: binding.metadata.namespace ?? '' } : {}),
      id: change,
      retry: true,
    }),
  );
}
