import { jsonEqual } from '../../../lib/kube/json.ts';
import { jsonContains } from '../../support/json-contains.ts';
import type { Network, TestCluster } from '../../support/faults/network.ts';
import type { Consumer } from './cell.ts';
import type { Monitor } from './monitor.ts';
import {
  annotation,
  bindingsOf,
  CLEANUP,
  CLUSTER,
  conditionOf,
  CONFLICT,
  deleting,
  has,
  inScope,
  instancesOf,
  keyOfSeen,
  lists,
  MANAGED,
  OBJECT,
  objectsOf,
  SYNCER,
  type Seen,
  type SeenBinding,
} from './seen.ts';
import type { Scene } from './scene.ts';
import { relatedProblems, relatedStrays } from './at-rest-related.ts';
import { apis, hostOf, type ApiName } from './setup.ts';

/**
 * What must be so when nothing happens any more: a model of the product without faults, time or order, that says for the
 * state which users left what the product makes of it. Answers with what is not so.
 */
export function whatIsWrong(
  network: Network,
  consumers: readonly Consumer[],
  monitor: Monitor,
  exempt: ReadonlySet<string>,
): string[] {
  const provider = network.clusters.get('provider');
  if (provider === undefined) throw new Error('no provider');
  const found: string[] = [];
  for (const consumer of consumers) {
    const cluster = network.clusters.get(consumer.name);
    if (cluster !== undefined)
      found.push(
        ...consumerProblems({ network, cluster, provider, consumer, monitor }).map(
          (text) => `${consumer.name}: ${text}`,
        ),
      );
  }
  found.push(...straysOf({ network, provider, consumers, monitor, exempt }));
  found.push(...relatedStrays({ network, consumers, monitor, exempt }));
  return found;
}

const isReady = (object: Seen | undefined): boolean => conditionOf(object, 'Ready')?.status === 'True';

const connectionOf = ({ cluster }: Scene): Seen | undefined =>
  objectsOf(cluster, 'core.kbind.io', 'connections').find(({ metadata }) => metadata.name === 'provider');
const crdOf = (cluster: TestCluster, api: string): Seen | undefined =>
  objectsOf(cluster, 'apiextensions.k8s.io', 'customresourcedefinitions').find(({ metadata }) => metadata.name === api);

/** The kubeconfig leads to the cluster that the Connection is pinned to, and is taken there. */
function credentialWorks(scene: Scene): boolean {
  const { cluster, network, provider } = scene;
  const pinned = (connectionOf(scene)?.status as { remoteClusterUID?: string } | undefined)?.remoteClusterUID;
  if (pinned !== undefined && pinned !== provider.uid) return false;
  const secret = objectsOf(cluster, '', 'secrets').find(({ metadata }) => metadata.name === 'kubeconfig');
  const host = secret === undefined ? undefined : hostOf(secret as never);
  return host !== undefined && network.routes.get(host)?.valid === true;
}

function consumerProblems(scene: Scene): string[] {
  return [
    ...connectionProblems(scene),
    ...bindingsOf(scene.cluster).flatMap((binding) => bindingProblems(scene, binding)),
    ...(Object.keys(apis) as ApiName[]).flatMap((api) => apiProblems(scene, api)),
    ...bindingsOf(scene.cluster)
      .filter((binding) => !deleting(binding) && isReady(binding) && isReady(connectionOf(scene)))
      .flatMap((binding) => relatedProblems(scene, binding)),
  ];
}

function connectionProblems(scene: Scene): string[] {
  const connection = connectionOf(scene);
  const secret = objectsOf(scene.cluster, '', 'secrets').find(({ metadata }) => metadata.name === 'kubeconfig');
  if (connection === undefined)
    return has(secret, CLEANUP) ? ['the Secret keeps our finalizer though no Connection uses it'] : [];
  if (deleting(connection)) {
    const referring = bindingsOf(scene.cluster).length > 0;
    const held = (Object.keys(apis) as ApiName[]).some(
      (api) =>
        crdOf(scene.cluster, api) !== undefined &&
        instancesOf(scene.cluster, api).some((object) => has(object, SYNCER)),
    );
    return referring || held ? [] : ['a deleting Connection stays though nothing holds it'];
  }
  if (credentialWorks(scene) !== isReady(connection))
    return [
      `the Connection's Ready is ${String(isReady(connection))}, its credential ${credentialWorks(scene) ? 'works' : 'does not'}`,
    ];
  return isReady(connection) ? autoBindProblems(scene, connection) : [];
}

interface ConnectionSpec {
  readonly autoBind?: boolean;
  readonly schema: { readonly source: 'CRD' | 'OpenAPI' | 'Auto' };
}

/** What the provider offers: by label, or everything that it serves; with Auto the labels count where there are any. */
function exportsOf(scene: Scene): ApiName[] {
  const all = Object.keys(apis) as ApiName[];
  const labelled = all.filter(
    (api) => crdOf(scene.provider, api)?.metadata.labels?.['core.kbind.io/exported'] === 'true',
  );
  const source = (connectionOf(scene)?.spec as ConnectionSpec | undefined)?.schema.source ?? 'CRD';
  if (source === 'OpenAPI' || (source === 'Auto' && labelled.length === 0)) return all;
  return labelled;
}

function autoBindProblems(scene: Scene, connection: Seen): string[] {
  if ((connection.spec as ConnectionSpec).autoBind !== true) return [];
  const namesake = bindingsOf(scene.cluster).find(
    ({ kind, metadata }) => kind === 'ClusterBinding' && metadata.name === connection.metadata.name,
  );
  const exports = exportsOf(scene).sort();
  if (namesake === undefined) return exports.length === 0 ? [] : ['autoBind made no ClusterBinding'];
  // Somebody's own: left to them.
  if (namesake.metadata.labels?.[MANAGED] !== 'true') return [];
  const listed = namesake.spec.apis.map(({ name }) => name).sort();
  return exports.length === 0 || !jsonEqual(listed, exports)
    ? [`the ClusterBinding of autoBind lists ${listed.join(', ')} instead of ${exports.join(', ') || 'going'}`]
    : [];
}

function bindingProblems(scene: Scene, binding: SeenBinding): string[] {
  const name = `${binding.kind} ${keyOfSeen(binding)}`;
  if (deleting(binding)) return [`${name} is still being deleted`];
  const connection = connectionOf(scene);
  const ready = isReady(binding) && conditionOf(binding, 'Ready')?.observedGeneration === binding.metadata.generation;
  const exports: readonly string[] = exportsOf(scene);
  const exported = binding.spec.apis.every(({ name: api }) => exports.includes(api));
  const usable = isReady(connection) && !deleting(connection);
  const crdsGoing = binding.spec.apis.some(({ name: api }) => deleting(crdOf(scene.cluster, api)));
  if (ready && !(usable && exported))
    return [`${name} is Ready though ${usable ? 'an API is not exported' : 'its Connection is not'}`];
  if (!ready && usable && exported && !crdsGoing)
    return [`${name} is not Ready: ${JSON.stringify(conditionOf(binding, 'Ready'))}`];
  return [];
}

function coveringBinding(scene: Scene, api: string, object: Seen): SeenBinding | undefined {
  const all = bindingsOf(scene.cluster).filter(
    (binding) => lists(binding, api) && inScope(binding, object) && !deleting(binding),
  );
  const byName = all.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return byName.find(({ kind }) => kind === 'ClusterBinding') ?? byName[0];
}

function apiProblems(scene: Scene, api: ApiName): string[] {
  const crd = crdOf(scene.cluster, api);
  if (crd === undefined) return [];
  const problems = instancesOf(scene.cluster, api).flatMap((object) =>
    instanceProblems(scene, api, object).map((text) => `${api} ${keyOfSeen(object)}: ${text}`),
  );
  const stuck =
    deleting(crd) && instancesOf(scene.cluster, api).length === 0 ? [`${api}: an empty CRD does not go`] : [];
  return [...problems, ...stuck];
}

function instanceProblems(scene: Scene, api: ApiName, object: Seen): string[] {
  const copy = instancesOf(scene.provider, api).find((each) => keyOfSeen(each) === keyOfSeen(object));
  const ours = annotation(copy, CLUSTER) === scene.consumer.uid && annotation(copy, OBJECT) === object.metadata.uid;
  const connection = connectionOf(scene);
  if (deleting(object)) {
    if (!has(object, SYNCER)) return [];
    const waits = ours && deleting(copy);
    const held = !isReady(connection) && (connection === undefined || !deleting(connection) || !credentialWorks(scene));
    return waits || held ? [] : ['deleting, and nothing holds it'];
  }
  const crd = crdOf(scene.cluster, api);
  const binding = coveringBinding(scene, api, object);
  const syncs =
    binding !== undefined && isReady(binding) && isReady(connection) && !deleting(connection) && !deleting(crd);
  if (!syncs) return [];
  if (!has(object, SYNCER)) return ['covered, and without our finalizer'];
  if (copy === undefined) return ['covered, and without a copy'];
  if (ours) return copyProblems(object, copy);
  const marked = annotation(copy, CLUSTER) !== undefined || annotation(copy, OBJECT) !== undefined;
  if (!marked && binding.spec.conflictPolicy === 'Adopt')
    return deleting(copy) ? [] : ['an object without markers is not adopted'];
  const wanted = marked ? 'OwnedByAnother' : 'ForeignObjectExists';
  return annotation(object, CONFLICT) === wanted
    ? []
    : [`conflict ${String(annotation(object, CONFLICT))} instead of ${wanted}`];
}

function copyProblems(object: Seen, copy: Seen): string[] {
  if (deleting(copy)) return [];
  const problems: string[] = [];
  if (!jsonContains(copy.spec ?? null, object.spec)) problems.push('the spec did not arrive');
  // Leaves that only our manager owned have to go with the source's; people's own edits stay where we never wrote.
  const extra = (copy.spec as { extra?: unknown } | undefined)?.extra;
  const wanted = (object.spec as { extra?: unknown } | undefined)?.extra;
  if (extra !== undefined && wanted === undefined && !ownedByOthers(copy, 'f:extra'))
    problems.push('a removed field stays on the copy');
  if (copy.status !== undefined && !jsonEqual(copy.status, object.status))
    problems.push('the status did not come back');
  if (annotation(object, CONFLICT) !== undefined || object.metadata.labels?.[CONFLICT] !== undefined)
    problems.push('it syncs, and is still marked as in conflict');
  for (const [name, value] of [
    ['managed', 'true'],
    ['consumer-cluster-uid', annotation(copy, CLUSTER)],
  ] as const) {
    if (copy.metadata.labels?.[`core.kbind.io/${name}`] !== value) problems.push(`its copy lacks the label ${name}`);
  }
  if (annotation(copy, 'core.kbind.io/applied-hash') === undefined) problems.push('its copy lacks the applied hash');
  return problems;
}

function ownedByOthers(copy: Seen, field: string): boolean {
  const entries =
    (copy.metadata as unknown as { managedFields?: { manager: string; fieldsV1?: { 'f:spec'?: object } }[] })
      .managedFields ?? [];
  return entries.some(
    ({ manager, fieldsV1 }) =>
      manager !== 'kbind-konnector' && fieldsV1?.['f:spec'] !== undefined && field in fieldsV1['f:spec'],
  );
}

/** Line 3: copies of ours without a consumer instance that carries our finalizer. */
function straysOf({
  network,
  provider,
  consumers,
  monitor,
  exempt,
}: {
  network: Network;
  provider: TestCluster;
  consumers: readonly Consumer[];
  monitor: Monitor;
  exempt: ReadonlySet<string>;
}): string[] {
  const strays: string[] = [];
  for (const api of Object.keys(apis) as ApiName[]) {
    for (const copy of instancesOf(provider, api)) {
      const consumer = consumers.find(({ uid }) => uid === annotation(copy, CLUSTER));
      const owner = annotation(copy, OBJECT);
      if (consumer === undefined || owner === undefined || deleting(copy)) continue;
      const cluster = network.clusters.get(consumer.name);
      const source =
        cluster === undefined ? undefined : instancesOf(cluster, api).find(({ metadata }) => metadata.uid === owner);
      if (has(source, SYNCER)) continue;
      const key = keyOfSeen(copy);
      const known =
        monitor.orphaned.has(owner) ||
        monitor.handled.has(owner) ||
        monitor.handled.has(copy.metadata.uid) ||
        monitor.leftBehind.has(`${consumer.uid}|${api}|${key}`) ||
        exempt.has(copy.metadata.uid);
      if (!known) strays.push(`a copy of ours is left without its source: ${api} ${key} of ${consumer.name}`);
    }
  }
  return strays;
}
