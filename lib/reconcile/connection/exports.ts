import { discoverApis, type Discovered, type DiscoveryFailure, type ServedResource } from '../../kube/discovery.ts';
import type { KubeClient } from '../../kube/types.ts';
import { apiName, resources, type KubeObject } from '../../model/api.ts';
import { crdSpec } from '../../model/crd.ts';
import type { ExportedApi } from '../../model/kinds.ts';
import { canBeDefined } from '../../schema/from-openapi.ts';
import { EXPORTED_LABEL, TRUE } from '../../model/markers.ts';

/** What a provider offers, by either source (spec §2.4). */
export interface ExportList {
  /** Sorted by name. */
  readonly apis: readonly ExportedApi[];
  /** The provider's CRDs behind them; empty for the OpenAPI source. */
  readonly crds: readonly KubeObject[];
  /** False when a part of the provider could not tell: nothing may be taken for gone. */
  readonly complete: boolean;
  /** What discovery says of each API by name, the preferred version first; empty for the CRD source. */
  readonly served: ReadonlyMap<string, readonly ServedResource[]>;
  /** `<group>/<version>` of what could not tell. */
  readonly silent: readonly string[];
}

/** A provider's schemas are held all at once; a large one has 1 MiB. */
const MAX_EXPORTED_BYTES = 64 * 1024 * 1024;

interface Asking {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
}

/** CRDs labelled exported with at least one served version: a complete list, or an error. */
export async function listExportedCrds({ client, signal }: Asking): Promise<ExportList> {
  const labelSelector = `${EXPORTED_LABEL}=${TRUE}`;
  const { items } = await client.listAll(resources.crds, { labelSelector, signal, maxTotalBytes: MAX_EXPORTED_BYTES });
  const crds = items.filter((crd) => crdSpec(crd).versions.some(({ served }) => served));
  return { apis: sorted(crds.map(exportOf)), crds, complete: true, served: new Map(), silent: [] };
}

function exportOf(crd: KubeObject): ExportedApi {
  const { group, names, scope, versions } = crdSpec(crd);
  return {
    name: crd.metadata.name,
    group,
    resource: names.plural,
    scope,
    versions: versions.filter(({ served }) => served).map(({ name }) => name),
  };
}

/**
 * Every API of discovery outside Kubernetes' own groups. Of groups that could not tell (an aggregated API whose server is
 * away), what they offered before is kept.
 * @param before the exports that the status holds.
 */
export async function discoverExports(
  { client, signal }: Asking,
  before: readonly ExportedApi[] = [],
): Promise<ExportList> {
  const discovered = await discoverApis(client, { signal, wants: isOffered });
  const { failures } = discovered;
  return {
    apis: exportsFrom(discovered, before),
    crds: [],
    complete: failures.length === 0,
    served: whollyServed(discovered),
    silent: failures.map(({ group, version }) => `${group}/${version}`).sort(),
  };
}

/**
 * Our own kinds are what the consumer is told with, and kcp's are what clusters are told apart by: a copy of either in the
 * consumer would turn one against the other.
 */
const NEVER_OFFERED: ReadonlySet<string> = new Set([resources.connections.group, resources.logicalClusters.group]);

/** Groups without a dot and those under k8s.io and kubernetes.io are Kubernetes' own: discovery is no consent (spec §3). */
export const isOffered = (group: string): boolean =>
  group.includes('.') && !/(^|\.)(k8s|kubernetes)\.io$/.test(group) && !NEVER_OFFERED.has(group);

/** What synchronizing needs of an API. */
const NEEDED_VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];

/** Pure: discovery as exports, all versions of a resource in one entry, the preferred one first. */
export function exportsFrom(discovered: Discovered, before: readonly ExportedApi[]): ExportedApi[] {
  const served = servedByName(discovered);
  const silent = silentGroups(discovered.failures);
  const kept = before.filter(({ name, group }) => silent.has(group) && !served.has(name));
  return sorted([...[...served.values()].map(merged), ...kept]);
}

const silentGroups = (failures: readonly DiscoveryFailure[]): ReadonlySet<string> =>
  new Set(failures.map(({ group }) => group));

/** Usable APIs by name, each with its versions, the preferred one first. */
function servedByName({ groups, resources: all }: Discovered): Map<string, ServedResource[]> {
  const preferred = new Map(groups.map(({ group, preferredVersion }) => [group, preferredVersion]));
  const rank = ({ group, version }: ServedResource): number => (version === preferred.get(group) ? 0 : 1);
  const usable = all.filter((one) => canBeDefined(one) && NEEDED_VERBS.every((verb) => one.verbs.includes(verb)));
  return Map.groupBy(
    usable.sort((a, b) => rank(a) - rank(b)),
    apiName,
  );
}

/** APIs of which every version could tell: only these may be installed anew. */
function whollyServed(discovered: Discovered): Map<string, ServedResource[]> {
  const silent = silentGroups(discovered.failures);
  return new Map([...servedByName(discovered)].filter(([, [first]]) => !silent.has(first?.group ?? '')));
}

function merged(ordered: readonly ServedResource[]): ExportedApi {
  const [first] = ordered;
  if (first === undefined) throw new TypeError('a resource without a version');
  const { group, resource, namespaced } = first;
  return {
    name: apiName(first),
    group,
    resource,
    scope: namespaced ? 'Namespaced' : 'Cluster',
    versions: ordered.map(({ version }) => version),
  };
}

const sorted = (apis: readonly ExportedApi[]): ExportedApi[] =>
  [...apis].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
