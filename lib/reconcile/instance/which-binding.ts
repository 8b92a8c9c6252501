import type { ObjectKey } from '../../model/api.ts';
import { isDeleting } from '../../model/crd.ts';
import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { bindingIsReady, connectionIsReady, listsApi } from '../../model/may-act.ts';

/** What the choice rests on: all bindings of the cluster, in any order. */
export interface BindingLists {
  readonly clusterBindings: readonly AnyBinding[];
  readonly bindings: readonly AnyBinding[];
}

/** The instance that asks. */
export interface InstanceName {
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly namespaced: boolean;
  readonly key: ObjectKey;
}

/** A ClusterBinding holds every instance; a Binding those of its own namespace, and never cluster-scoped ones. */
export const holdsInScope = (binding: AnyBinding, { namespaced, key }: Omit<InstanceName, 'api'>): boolean =>
  binding.kind === 'ClusterBinding' || (namespaced && binding.metadata.namespace === key.namespace);

const byName = (a: AnyBinding, b: AnyBinding): number => (a.metadata.name < b.metadata.name ? -1 : 1);

/**
 * Resolve covering binding, ClusterBinding before namespaced Binding: ClusterBindings come first, Ready or not; deleting
 * bindings do not count; the first match by name order wins (spec §7) among those of the Connection that the CRD is pinned
 * to (spec §11), so that a binding of a second Connection takes nothing away. Where there is none of that Connection, the
 * first of another is named, for {@link whyNotBound} to refuse.
 */
export function coveringBinding(
  lists: BindingLists,
  instance: InstanceName,
  pinned: string | undefined,
): AnyBinding | undefined {
  const covers = (binding: AnyBinding): boolean =>
    !isDeleting(binding) && listsApi(binding, instance.api) && holdsInScope(binding, instance);
  const inOrder = [lists.clusterBindings, lists.bindings].flatMap((bindings) => bindings.filter(covers).sort(byName));
  return inOrder.find((binding) => binding.spec.connectionRef.name === pinned) ?? inOrder[0];
}

/** Why an instance may not sync now; undefined: it may. The reason is the log line. */
export function whyNotBound(
  binding: AnyBinding | undefined,
  pinned: string | undefined,
  connection: Connection | undefined,
): string | undefined {
  if (binding === undefined) return 'no binding covers it';
  const name = `${binding.kind} ${binding.metadata.name}`;
  if (!bindingIsReady(binding)) return `${name} is not Ready`;
  if (binding.spec.connectionRef.name !== pinned) return `${name} is of another Connection than the CRD is pinned to`;
  if (connection === undefined) return `Connection ${pinned} does not exist`;
  if (!connectionIsReady(connection)) return `Connection ${pinned} is not Ready`;
  return undefined;
}
