import { apiName, keyOf, type KubeObject, type ObjectKey } from '../model/api.ts';
import { parseBinding, type AnyBinding } from '../model/kinds.ts';
import { CONSUMER_CLUSTER_UID, MANAGED_LABEL, TRUE } from '../model/markers.ts';
import { entriesOf, routes, sourceQueries, type RelatedEntry, type Route, type SourceQuery } from '../model/related.ts';
import { credentialOf, type ConnectionView, type WantedWatch } from './plan-set.ts';

/** A binding that asks for related resources. Others are not kept. */
export interface BindingView {
  readonly controller: 'clusterbinding' | 'binding';
  readonly key: ObjectKey;
  /** Which Connection leads to its provider. */
  readonly connection: string;
  readonly spec: Pick<AnyBinding['spec'], 'relatedResources'>;
}

/** What decides which related resources are watched. */
export interface RelatedView {
  readonly clusterUid: string;
  readonly connections: ReadonlyMap<string, ConnectionView>;
  readonly relatedBindings: ReadonlyMap<string, BindingView>;
}

/** A watch that should stand, and the bindings that its events are for. Bindings that ask for the same share one. */
export interface RelatedWatch {
  readonly watch: WantedWatch;
  readonly bindings: BindingView[];
}

/** Names of one entry that are watched one by one; more are watched by label alone, and what is not meant is a needless look. */
const MAX_NAMES = 8;

/** What a binding asks for; undefined where it asks for nothing, is deleting, or cannot be read. */
export function bindingView(object: KubeObject, kind: AnyBinding['kind']): BindingView | undefined {
  if (object.metadata.deletionTimestamp !== undefined) return undefined;
  try {
    const { spec } = parseBinding(object, kind);
    const { relatedResources, connectionRef } = spec;
    if (relatedResources.length === 0) return undefined;
    const controller = kind === 'ClusterBinding' ? 'clusterbinding' : 'binding';
    return { controller, key: keyOf(object), connection: connectionRef.name, spec: { relatedResources } };
  } catch {
    // Its key is forwarded all the same; there is nothing to watch for it.
    return undefined;
  }
}

/** Every watch of related resources, by id: of the sources on their side, of our copies on the other. Pure. */
export function relatedWatches(view: RelatedView): Map<string, RelatedWatch> {
  const wanted = new Map<string, RelatedWatch>();
  for (const binding of view.relatedBindings.values()) {
    for (const watch of routes.flatMap((route) => routeWatches(view, binding, route))) {
      const present = wanted.get(watch.id);
      if (present === undefined) wanted.set(watch.id, { watch, bindings: [binding] });
      else if (!present.bindings.includes(binding)) present.bindings.push(binding);
    }
  }
  return wanted;
}

function routeWatches(view: RelatedView, binding: BindingView, route: Route): WantedWatch[] {
  const entries = entriesOf(binding, route);
  if (entries.length === 0) return [];
  const connection = view.connections.get(binding.connection);
  const provider = usable(connection) ? { name: binding.connection, credential: credentialOf(connection) } : undefined;
  const [source, target] =
    route.direction === 'FromProvider' ? ([provider, 'consumer'] as const) : (['consumer', provider] as const);
  const ofUs =
    target === 'consumer'
      ? `${MANAGED_LABEL}=${TRUE}`
      : `${MANAGED_LABEL}=${TRUE},${CONSUMER_CLUSTER_UID}=${view.clusterUid}`;
  const at = { route, namespace: binding.controller === 'binding' ? binding.key.namespace : undefined };
  return [
    ...entries.flatMap(watchedQueries).flatMap((query) => watchAt({ ...at, side: source, copies: false }, query)),
    ...watchAt({ ...at, side: target, copies: true }, { labelSelector: ofUs }),
  ];
}

/** Nothing is asked of a provider that has not answered its controller, or whose Connection goes. */
const usable = (connection: ConnectionView | undefined): connection is ConnectionView =>
  connection !== undefined && connection.connected && !connection.deleting && connection.remoteClusterUID !== undefined;

function watchedQueries(entry: RelatedEntry): SourceQuery[] {
  const many = (entry.names?.length ?? 0) > MAX_NAMES;
  return sourceQueries(many ? { ...entry, names: undefined } : entry);
}

interface Place {
  readonly side: 'consumer' | { readonly name: string; readonly credential: string } | undefined;
  readonly route: Route;
  readonly namespace: string | undefined;
  readonly copies: boolean;
}

function watchAt(
  { side, route, namespace, copies }: Place,
  { labelSelector, fieldSelector }: SourceQuery,
): WantedWatch[] {
  if (side === undefined) return [];
  const connection = side === 'consumer' ? {} : { connection: side.name };
  const where = [side === 'consumer' ? '' : side.name, apiName(route.ref), namespace ?? ''];
  const id = ['related', ...where, labelSelector, fieldSelector ?? ''].join('|');
  return [
    {
      id,
      fingerprint: side === 'consumer' ? '' : side.credential,
      source: { type: 'related', watch: id, copies, ...connection },
      ref: route.ref,
      namespace,
      labelSelector,
      fieldSelector,
    },
  ];
}
