import { hasFinalizer } from '../object-writes.ts';
import { DELETION_GRACE_MS } from '../world.ts';
import { isDeleting } from '../../model/crd.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { listsApi } from '../../model/may-act.ts';
import { holdsInScope, type BindingLists, type InstanceName } from './which-binding.ts';

/** When the decision is taken and by which CRD. */
export interface DrainFacts {
  /** Latest `Date` of the consumer's API server that our clock has passed as well, epoch ms; undefined before the first. */
  readonly serverDate: number | undefined;
  /** The Connection that the CRD is pinned to. */
  readonly connection: string | undefined;
}

/** A deletionTimestamp's grain is a second, and nothing final is concluded sooner than 8 s after it (spec §8). */
function deletingLongEnough(binding: AnyBinding, serverDate: number | undefined): boolean {
  const since = binding.metadata.deletionTimestamp;
  if (since === undefined || serverDate === undefined) return false;
  return serverDate >= Date.parse(since) + DELETION_GRACE_MS;
}

/**
 * The binding that drains an instance, if any (spec §4, last paragraph): nobody alive lists its API anywhere, and a binding
 * with our cleanup finalizer, deleting for at least 8 s, holds it in its scope, with the Connection that the CRD is pinned
 * to. The caller has made sure that the instance carries our finalizer.
 */
export function drainingBinding(
  lists: BindingLists,
  instance: InstanceName,
  facts: DrainFacts,
): AnyBinding | undefined {
  const listing = [...lists.clusterBindings, ...lists.bindings].filter((binding) => listsApi(binding, instance.api));
  if (listing.some((binding) => !isDeleting(binding))) return undefined;
  return listing.find(
    (binding) =>
      hasFinalizer(binding, CLEANUP_FINALIZER) &&
      deletingLongEnough(binding, facts.serverDate) &&
      holdsInScope(binding, instance) &&
      binding.spec.connectionRef.name === facts.connection,
  );
}
