import { keyOf, resources, type KubeObject, type ResourceRef } from '../../model/api.ts';
import { crdCondition, crdSpec, instanceResource, isDeleting } from '../../model/crd.ts';
import { isError } from '../../model/errors.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { SYNCER_FINALIZER } from '../../model/markers.ts';
import { reconcileRequest } from '../../model/request.ts';
import type { BindingLists } from '../instance/which-binding.ts';
import { hasFinalizer } from '../object-writes.ts';
import type { World } from '../world.ts';
import { deletionNodes as nodes } from './chart.ts';
import { coveringOther, whyNotOurs } from './may-it-end.ts';
import { scopeOf } from './target.ts';
import { uncoveredBy } from './what-is-left.ts';

/** What one walk over one API came to. */
export interface CleanUp {
  readonly api: string;
  /** Instances in scope that still carry our finalizer. */
  readonly left: number;
  /** For an Event: why the API was skipped. */
  readonly skipped?: string | undefined;
  /** The server's words where it forbids to delete the CRD. */
  readonly forbidden?: string | undefined;
}

/** One walk of the deletion chart. */
export interface Walk {
  readonly binding: AnyBinding;
  /** Names the walk in deduplication ids: the binding's uid and the walk's number. */
  readonly id: string;
  /** It was waited for; otherwise an event brings it about, between two that are. */
  readonly waitedFor: boolean;
}

/** Instances that a walk has reconciled by itself; more are left to a sweep, which leaves other clusters' keys room. */
const TOLD_AT_ONCE = 100;

/** Complete lists of both kinds, never from a cache: what is skipped or deleted rests on them. */
async function bindingLists({ reads }: World): Promise<BindingLists> {
  const [clusterBindings, bindings] = await Promise.all([
    reads.clusterBindings({ fresh: true }),
    reads.bindings({ fresh: true }),
  ]);
  return { clusterBindings: clusterBindings.value, bindings: bindings.value };
}

const allOf = ({ clusterBindings, bindings }: BindingLists): readonly AnyBinding[] => [...clusterBindings, ...bindings];

/** One API through the chart, up to the deletion of its CRD. */
export async function cleanUpApi(world: World, walk: Walk, api: string): Promise<CleanUp> {
  const { trace } = world;
  const finished: CleanUp = { api, left: 0 };
  const lists = await bindingLists(world);
  const other = coveringOther(walk.binding, allOf(lists), api);
  if (trace.decide(nodes.covered, other !== undefined) && other !== undefined) {
    return { ...finished, skipped: await whatItLeaves(world, { binding: walk.binding, other, lists }, api) };
  }

  const { value: crd } = await world.reads.crd(api, { fresh: true });
  const ref = crd === undefined ? undefined : instanceResource(crd);
  if (!trace.decide(nodes.schema, ref !== undefined) || crd === undefined || ref === undefined) return finished;
  const skipped = whyNotOurs(crd, walk.binding);
  if (skipped !== undefined) {
    trace.step(skipped);
    return { api, left: 0, skipped };
  }
  const { left, total } = await drain(world, walk, { crd, ref }).catch((error: unknown) => {
    // A failure, or the first message of a dry run, is found at this node as well.
    trace.step(nodes.drain, 'not to the end');
    throw error;
  });
  trace.step(nodes.drain, left === 0 ? 'drained' : `${left} left`);
  if (left > 0) return { api, left };
  if (!trace.decide(nodes.clusterBinding, walk.binding.kind === 'ClusterBinding')) return finished;
  return removeCrd(world, walk, { api, total });
}

/** An API that another binding lists is not unwound, also where that one does not hold all of it. */
async function whatItLeaves(
  world: World,
  overlap: Parameters<typeof uncoveredBy>[1],
  api: string,
): Promise<string | undefined> {
  const { value: crd } = await world.reads.crd(api);
  return crd === undefined ? undefined : uncoveredBy(world, overlap, crd);
}

/**
 * Has every instance in scope that still carries our finalizer reconciled: that reconcile drains it, having looked at the
 * bindings itself. The drain has ended when a complete, consistent list shows none. A CRD that never was established (its
 * names clash, say) never had an instance.
 */
async function drain(
  world: World,
  walk: Walk,
  { crd, ref }: { readonly crd: KubeObject; readonly ref: ResourceRef },
): Promise<{ left: number; total: number }> {
  const namespace = scopeOf(walk.binding);
  const nothing = { left: 0, total: 0 };
  if (namespace !== undefined && !ref.namespaced) return nothing;
  if (crdCondition(crd, 'Established')?.status !== 'True') return nothing;
  const { items } = await world.consumer.client.listAllMetadata(ref, { namespace, signal: world.signal });
  const held = items.filter((item) => hasFinalizer(item, SYNCER_FINALIZER));
  const api = crd.metadata.name;
  if (held.length > TOLD_AT_ONCE) await tellSweep(world, walk, { api, namespace });
  else if (held.length > 0) {
    const requests = held.map((item) => reconcileRequest(world.cluster, 'instance', keyOf(item), { api }));
    await world.tell.reconcile(requests, walk.id);
  }
  return { left: held.length, total: items.length };
}

/** One sweep for each walk that was waited for: unlike keys, sweeps that are asked for twice are done twice. */
async function tellSweep(
  { cluster, tell }: World,
  { id, waitedFor }: Walk,
  { api, namespace }: { readonly api: string; readonly namespace: string | undefined },
): Promise<void> {
  if (!waitedFor) return;
  await tell.sweep({ v: 1, type: 'sweep', cluster, apis: [api], id, retry: true, ...(namespace && { namespace }) });
}

/**
 * Deletes the consumer CRD, and with it whatever instances are left in it. The CRD is read, then all bindings are listed once
 * more, then the cluster says who it is, then exactly what was read is deleted: a binding that turned Ready on it meanwhile has written `bound-by`, which
 * fails the precondition (class `conflict`: the walk starts over and finds that binding).
 */
async function removeCrd(
  world: World,
  walk: Walk,
  { api, total }: { readonly api: string; readonly total: number },
): Promise<CleanUp> {
  const { trace, consumer } = world;
  const crd = await consumer.client.find(resources.crds, { name: api }, { signal: world.signal });
  if (crd === undefined || isDeleting(crd) || whyNotOurs(crd, walk.binding) !== undefined) {
    trace.step(nodes.removeCrd, 'nothing to delete');
    return { api, left: 0 };
  }
  const other = coveringOther(walk.binding, allOf(await bindingLists(world)), api);
  if (other !== undefined) {
    trace.step(nodes.removeCrd, `kept for ${other.kind} ${other.metadata.name}`);
    return { api, left: 0 };
  }
  await consumer.confirmIdentity(0);
  await announceRemoval(world, walk, crd, total);
  return requestDeletion(world, crd);
}

/** People must be able to see what went, and that it was many. */
async function announceRemoval(world: World, { binding }: Walk, crd: KubeObject, total: number): Promise<void> {
  const { kind } = crdSpec(crd).names;
  const message = `deleting CustomResourceDefinition ${crd.metadata.name} of the last binding that lists it; ${total === 1 ? `1 ${kind} instance goes` : `${total} ${kind} instances go`} with it`;
  await (total > 0
    ? world.events.warn(binding.raw, 'CRDDeleted', message)
    : world.events.normal(binding.raw, 'CRDDeleted', message));
}

async function requestDeletion(world: World, crd: KubeObject): Promise<CleanUp> {
  const { name, uid, resourceVersion } = crd.metadata;
  const finished: CleanUp = { api: name, left: 0 };
  try {
    const options = { signal: world.signal };
    await world.consumer.client.delete(resources.crds, { name }, { uid, resourceVersion }, options);
    world.trace.step(nodes.removeCrd, 'requested');
    return finished;
  } catch (error) {
    if (isError(error, 'absent')) return finished;
    if (!isError(error, 'forbidden')) throw error;
    world.trace.step(nodes.removeCrd, 'forbidden');
    return { ...finished, forbidden: error.message };
  }
}
