import { keyOf, keyText, type KubeObject, type MetaObject, type ResourceRef } from '../../model/api.ts';
import { instanceResource, isDeleting } from '../../model/crd.ts';
import { isError } from '../../model/errors.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { BOUND_BY_ANNOTATION, SYNCER_FINALIZER } from '../../model/markers.ts';
import { coveringBinding, type BindingLists } from '../instance/which-binding.ts';
import { hasFinalizer } from '../object-writes.ts';
import type { World } from '../world.ts';
import { coveringOther, whyNotOurs } from './may-it-end.ts';
import { nameOf, scopeOf } from './target.ts';

/** What stays although nobody lists it any more: editing `apis` and overlapping bindings are no cleanup (L1, L2), so it is said. */

/** How many instances a message names. */
const NAMED = 3;

const RELEASE = 'delete them to have their copies deleted, or list the API again';

function sentence(held: readonly MetaObject[]): string {
  const names = held.map((item) => keyText(keyOf(item))).sort();
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  const count =
    names.length === 1
      ? '1 instance keeps its copy and our finalizer, but is not synchronized'
      : `${names.length} instances keep their copies and our finalizer, but are not synchronized`;
  return `${count}: ${names.slice(0, NAMED).join(', ')}${more}`;
}

/** Instances in a binding's scope that carry our finalizer; none where the API is not served or may not be listed. */
async function heldInstances(world: World, binding: AnyBinding, ref: ResourceRef): Promise<MetaObject[]> {
  const namespace = scopeOf(binding);
  if (namespace !== undefined && !ref.namespaced) return [];
  try {
    const { items } = await world.consumer.client.listAllMetadata(ref, { namespace, signal: world.signal });
    return items.filter((item) => hasFinalizer(item, SYNCER_FINALIZER));
  } catch (error) {
    if (!isError(error, 'unserved', 'forbidden')) throw error;
    return [];
  }
}

/** A CRD that this binding was the last to turn Ready on, and that no live binding lists any more. */
const leftBy =
  (binding: AnyBinding, all: readonly AnyBinding[]) =>
  (crd: KubeObject): boolean =>
    crd.metadata.annotations?.[BOUND_BY_ANNOTATION]?.startsWith(`${binding.metadata.uid}/`) === true &&
    !isDeleting(crd) &&
    !binding.spec.apis.some(({ name }) => name === crd.metadata.name) &&
    coveringOther(binding, all, crd.metadata.name) === undefined &&
    whyNotOurs(crd, binding) === undefined;

/** A sentence for each API that an edit took off the binding's list while instances of it were synchronized. */
export async function apisLeft(world: World, binding: AnyBinding, lists: BindingLists): Promise<string[]> {
  const { value: crds } = await world.reads.managedCrds();
  const said: string[] = [];
  for (const crd of crds.filter(leftBy(binding, [...lists.clusterBindings, ...lists.bindings]))) {
    const ref = instanceResource(crd);
    const held = ref === undefined ? [] : await heldInstances(world, binding, ref);
    if (held.length > 0) said.push(`${crd.metadata.name} is not listed any more: ${sentence(held)}; ${RELEASE}`);
  }
  return said.sort();
}

/**
 * For a binding that goes while another one lists the API: the instances in its scope that no binding left covers. The
 * overlap is looked at API by API, not namespace by namespace (seed), so these are not drained.
 */
export async function uncoveredBy(
  world: World,
  { binding, other, lists }: { readonly binding: AnyBinding; readonly other: AnyBinding; readonly lists: BindingLists },
  crd: KubeObject,
): Promise<string | undefined> {
  const ref = instanceResource(crd);
  if (ref === undefined || whyNotOurs(crd, binding) !== undefined) return undefined;
  const { name: api } = crd.metadata;
  const held = (await heldInstances(world, binding, ref)).filter((item) => {
    const instance = { api, namespaced: ref.namespaced, key: keyOf(item) };
    return coveringBinding(lists, instance, binding.spec.connectionRef.name) === undefined;
  });
  if (held.length === 0) return undefined;
  return `${api} is kept for ${nameOf(other)}, which does not hold all of it: ${sentence(held)}; ${RELEASE}`;
}
