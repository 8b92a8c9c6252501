import { resources, type ObjectKey, type ResourceRef } from '../model/api.ts';
import { CONFLICT_MARKER, CONSUMER_CLUSTER_UID, EXPORTED_LABEL, MANAGED_LABEL, TRUE } from '../model/markers.ts';
import type { WatchPlan } from '../model/watch-plan.ts';

/** What a Connection means to the forwarder. */
export interface ConnectionView {
  readonly uid: string;
  readonly secret: ObjectKey;
  /** Identity that its provider must have; absent until the Connection controller pinned it. */
  readonly remoteClusterUID?: string | undefined;
  /** Changes with the credential. */
  readonly secretVersion?: string | undefined;
  /** The provider answered its controller (condition `Connected`). */
  readonly connected: boolean;
  readonly deleting: boolean;
}

/** What a managed CRD means to the forwarder: its uid (a CRD that was made anew starts over) and its plan. */
export interface CrdView {
  readonly uid: string;
  readonly plan: WatchPlan | undefined;
}

/** All that decides which watches should stand. Small: nothing in it grows with the number of instances. */
export interface ConsumerView {
  readonly clusterUid: string;
  /** Connections have been listed: until then, a plan's provider cannot be told from one that is gone. */
  readonly connectionsKnown: boolean;
  readonly connections: ReadonlyMap<string, ConnectionView>;
  readonly crds: ReadonlyMap<string, CrdView>;
  /** APIs of which at least one consumer object carries the conflict label. */
  readonly conflictingApis: ReadonlySet<string>;
}

/** What a watch is for: decides what its events mean (mapping.ts) and what is done when it stands (sources.ts). */
export type WatchSource =
  | { readonly type: 'connections' | 'clusterbindings' | 'bindings' | 'crds' }
  | { readonly type: 'secret'; readonly secret: ObjectKey }
  | { readonly type: 'exports'; readonly connection: string }
  | { readonly type: 'instances'; readonly api: string }
  | { readonly type: 'copies'; readonly api: string; readonly connection: string }
  | { readonly type: 'foreign'; readonly api: string; readonly connection: string }
  /** Secrets or ConfigMaps that bindings select, or our copies of them; on the consumer without `connection`. */
  | { readonly type: 'related'; readonly watch: string; readonly copies: boolean; readonly connection?: string };

/** One watch that should stand. */
export interface WantedWatch {
  readonly id: string;
  /** Two watches with the same id and another fingerprint: the old one is stopped and the new one starts from a list. */
  readonly fingerprint: string;
  readonly source: WatchSource;
  readonly ref: ResourceRef;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

const managedCrds = `${MANAGED_LABEL}=${TRUE}`;
const exportedCrds = `${EXPORTED_LABEL}=${TRUE}`;
/** Selects the consumer objects that are in conflict. */
export const conflictingObjects = `${CONFLICT_MARKER}=${TRUE}`;

/** Every watch that should stand, by id; those of related resources aside (related-watches.ts). Pure. */
export function wantedWatches(view: ConsumerView): Map<string, WantedWatch> {
  const wanted = [
    ...staticWatches(),
    ...connectionWatches(view),
    ...[...view.crds].flatMap((crd) => planWatches(view, crd)),
  ];
  return new Map(wanted.map((watch) => [watch.id, watch]));
}

/** What to do to get from the watches that run to those that should. */
export function diffWatches(
  running: ReadonlyMap<string, { readonly fingerprint: string }>,
  wanted: ReadonlyMap<string, WantedWatch>,
): { readonly start: WantedWatch[]; readonly stop: string[]; readonly rebuild: WantedWatch[] } {
  const all = [...wanted.values()];
  return {
    start: all.filter(({ id }) => !running.has(id)),
    stop: [...running.keys()].filter((id) => !wanted.has(id)),
    rebuild: all.filter(({ id, fingerprint }) => (running.get(id)?.fingerprint ?? fingerprint) !== fingerprint),
  };
}

/** The watches of the control plane, which stand for as long as the forwarder runs. */
export function staticWatches(): WantedWatch[] {
  return [
    { id: 'connections', fingerprint: '', source: { type: 'connections' }, ref: resources.connections },
    { id: 'clusterbindings', fingerprint: '', source: { type: 'clusterbindings' }, ref: resources.clusterBindings },
    { id: 'bindings', fingerprint: '', source: { type: 'bindings' }, ref: resources.bindings },
    { id: 'crds', fingerprint: '', source: { type: 'crds' }, ref: resources.crds, labelSelector: managedCrds },
  ];
}

function connectionWatches(view: ConsumerView): WantedWatch[] {
  return [...view.connections].flatMap(([name, connection]) => [
    secretWatch(connection.secret),
    ...(connection.connected && !connection.deleting && connection.remoteClusterUID !== undefined
      ? [exportsWatch(name, connection)]
      : []),
  ]);
}

/** Of one Secret only, by name: RBAC can then be held to the Secrets that Connections name. */
function secretWatch(secret: ObjectKey): WantedWatch {
  return {
    id: `secret|${secret.namespace ?? ''}|${secret.name}`,
    fingerprint: '',
    source: { type: 'secret', secret },
    ref: resources.secrets,
    namespace: secret.namespace,
    fieldSelector: `metadata.name=${secret.name}`,
  };
}

function exportsWatch(name: string, connection: ConnectionView): WantedWatch {
  return {
    id: `exports|${name}`,
    fingerprint: credentialOf(connection),
    source: { type: 'exports', connection: name },
    ref: resources.crds,
    labelSelector: exportedCrds,
  };
}

function planWatches(view: ConsumerView, [api, { uid, plan }]: readonly [string, CrdView]): WantedWatch[] {
  if (plan === undefined || !view.connectionsKnown) return [];
  const ref = refOf(api, plan);
  const schema = [uid, plan.generation, plan.version, plan.scope].join('|');
  const instances: WantedWatch = {
    id: `instances|${api}`,
    fingerprint: schema,
    source: { type: 'instances', api },
    ref,
  };
  const connection = view.connections.get(plan.connection);
  if (!plan.provider || connection?.remoteClusterUID === undefined || plan.cluster !== view.clusterUid)
    return [instances];
  const fingerprint = [schema, plan.connection, plan.epoch, credentialOf(connection)].join('|');
  const provider = (type: 'copies' | 'foreign', operator: '=' | '!='): WantedWatch => ({
    id: `${type}|${api}`,
    fingerprint,
    source: { type, api, connection: plan.connection },
    ref,
    labelSelector: `${CONSUMER_CLUSTER_UID}${operator}${view.clusterUid}`,
  });
  return [
    instances,
    provider('copies', '='),
    // Only while something conflicts: it brings events of everybody's objects.
    ...(view.conflictingApis.has(api) ? [provider('foreign', '!=')] : []),
  ];
}

/** Changes whenever a client that was made for the Connection must not be used any more. */
export const credentialOf = (connection: ConnectionView): string =>
  [connection.uid, connection.secretVersion ?? '', connection.remoteClusterUID ?? ''].join('/');

function refOf(api: string, plan: WatchPlan): ResourceRef {
  const dot = api.indexOf('.');
  const [resource, group] = dot < 0 ? [api, ''] : [api.slice(0, dot), api.slice(dot + 1)];
  // Metadata-only answers say PartialObjectMetadata whatever the kind is, so the plan does not carry it.
  return { group, version: plan.version, resource, kind: '', namespaced: plan.scope === 'Namespaced' };
}
