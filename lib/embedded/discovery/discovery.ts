import { groupVersion, type Resource, type Version } from '../api/resource.ts';
import { comparePriority } from '../crd/resource.ts';
import type { Registry } from '../registry/registry.ts';

type Document = Record<string, unknown>;

/** Resources that exist only to be created: the answer to a question. */
const REVIEWS: Record<string, { kind: string; plural: string }[]> = {
  'authorization.k8s.io': [{ kind: 'SelfSubjectAccessReview', plural: 'selfsubjectaccessreviews' }],
  'authentication.k8s.io': [{ kind: 'SelfSubjectReview', plural: 'selfsubjectreviews' }],
};
const PRIORITY = ['authentication.k8s.io', 'authorization.k8s.io', 'apiextensions.k8s.io', 'coordination.k8s.io'];

/** Groups with their versions, preferred first. */
export function groupsOf(registry: Registry): [string, string[]][] {
  const groups = new Map<string, Set<string>>(Object.keys(REVIEWS).map((group) => [group, new Set(['v1'])]));
  for (const resource of registry.all()) {
    if (!resource.group) continue;
    const versions = groups.get(resource.group) ?? new Set();
    for (const version of resource.versions) versions.add(version.name);
    groups.set(resource.group, versions);
  }
  const rank = (group: string): number => (PRIORITY.includes(group) ? PRIORITY.indexOf(group) : PRIORITY.length);
  return [...groups]
    .filter(([, versions]) => versions.size > 0)
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([group, versions]) => [group, [...versions].sort(comparePriority)]);
}

/** `/api` */
export const legacyVersions = (address: string): Document => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
});

/** `/apis` */
export const groupList = (registry: Registry): Document => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupsOf(registry).map(([name, versions]) => group(name, versions)),
});

function group(name: string, versions: string[]): Document {
  const entries = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

/** `/apis/GROUP` */
export function apiGroup(registry: Registry, name: string): Document | undefined {
  const found = groupsOf(registry).find(([each]) => each === name);
  return found && { kind: 'APIGroup', apiVersion: 'v1', ...group(name, found[1]) };
}

/** `/api/v1` and `/apis/GROUP/VERSION` */
export function resourceList(registry: Registry, name: string, version: string): Document | undefined {
  const served = servedAt(registry, name, version);
  const reviews = version === 'v1' ? (REVIEWS[name] ?? []) : [];
  if (served.length === 0 && reviews.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: groupVersion(name, version),
    resources: [
      ...reviews.map(({ plural, kind }) => ({
        name: plural,
        singularName: kind.toLowerCase(),
        namespaced: false,
        kind,
        verbs: ['create'],
      })),
      ...served.flatMap(([resource, at]) => entries(resource, at)),
    ],
  };
}

function servedAt(registry: Registry, name: string, version: string): [Resource, Version][] {
  return registry
    .all()
    .filter((resource) => resource.group === name)
    .sort((a, b) => (a.plural < b.plural ? -1 : 1))
    .flatMap((resource) => {
      const at = resource.versions.find((each) => each.name === version);
      return at ? [[resource, at] as [Resource, Version]] : [];
    });
}

function entries(resource: Resource, version: Version): Document[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories } = resource;
  const main = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  };
  return [
    main,
    ...subresources(resource, version).map((name) => ({
      name: `${plural}/${name}`,
      singularName: '',
      namespaced,
      kind,
      verbs: ['get', 'patch', 'update'],
    })),
  ];
}

/** The subresources that are served. */
export function subresources(resource: Resource, version: Version): string[] {
  const status = version.status ? ['status'] : [];
  return resource.plural === 'namespaces' && resource.group === '' ? ['finalize', ...status] : status;
}

/** Everything at once: `/api` or `/apis` as APIGroupDiscoveryList. */
export function aggregated(registry: Registry, legacy: boolean): Document {
  const groups: [string, string[]][] = legacy ? [['', ['v1']]] : groupsOf(registry);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map(([name, versions]) => ({
      metadata: { ...(name && { name }), creationTimestamp: null },
      versions: versions.map((version) => ({
        version,
        resources: discovered(registry, name, version),
        freshness: 'Current',
      })),
    })),
  };
}

function discovered(registry: Registry, name: string, version: string): Document[] {
  const reviews = (version === 'v1' ? (REVIEWS[name] ?? []) : []).map(({ plural, kind }) => ({
    resource: plural,
    responseKind: { group: '', version: '', kind },
    scope: 'Cluster',
    singularResource: kind.toLowerCase(),
    verbs: ['create'],
  }));
  return [
    ...reviews,
    ...servedAt(registry, name, version).map(([resource, at]) => discoveredResource(resource, at, version)),
  ];
}

function discoveredResource(resource: Resource, at: Version, version: string): Document {
  const { group: name, plural, singular, kind, shortNames, categories, verbs } = resource;
  const responseKind = { group: name, version, kind };
  const below = subresources(resource, at);
  return {
    resource: plural,
    responseKind,
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(below.length > 0 && {
      subresources: below.map((subresource) => ({ subresource, responseKind, verbs: ['get', 'patch', 'update'] })),
    }),
  };
}
