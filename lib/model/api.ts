/**
 * What every Kubernetes API looks like to this product: a group/version/resource, a key in it, an object.
 * Objects are untyped JSON outside `metadata`, because the APIs that are synchronized are not known at build time.
 */

/** Any JSON value as the lossless codec of lib/kube produces it (numbers that a double cannot hold are raw JSON objects). */
export type Json =
  null | boolean | number | string | RawNumber | readonly Json[] | { readonly [key: string]: Json | undefined };

/** The frozen object that `JSON.rawJSON` makes for a number whose text a double would change. */
export interface RawNumber {
  readonly rawJSON: string;
}

/** One resource of one API, enough to build its URL and its objects. */
export interface ResourceRef {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, lower case: the path segment. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Names one object of a resource. `namespace` is absent for cluster-scoped objects. */
export interface ObjectKey {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: 'Apply' | 'Update';
  readonly apiVersion?: string;
  readonly time?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: Json;
  readonly subresource?: string;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFieldsEntry[];
}

/** An object with nothing but its metadata, as `PartialObjectMetadata` brings it. */
export interface MetaObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** Any object as an API server answered it. */
export interface KubeObject extends MetaObject {
  readonly spec?: Json;
  readonly status?: Json;
  readonly [field: string]: unknown;
}

/** `<plural>.<group>`: how bindings, CRDs and messages name an API. */
export function apiName(ref: Pick<ResourceRef, 'group' | 'resource'>): string {
  return ref.group === '' ? ref.resource : `${ref.resource}.${ref.group}`;
}

/** `namespace/name`, or the bare name of a cluster-scoped object: how people and the API server's list order write a key. */
export function keyText(key: ObjectKey): string {
  return key.namespace === undefined || key.namespace === '' ? key.name : `${key.namespace}/${key.name}`;
}

/** The key of an object. */
export function keyOf(object: MetaObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? { name } : { namespace, name };
}

/** The resources that the product itself reads and writes. */
export const resources = {
  namespaces: { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
  secrets: { group: '', version: 'v1', resource: 'secrets', kind: 'Secret', namespaced: true },
  configmaps: { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true },
  events: { group: '', version: 'v1', resource: 'events', kind: 'Event', namespaced: true },
  leases: { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', kind: 'Lease', namespaced: true },
  crds: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    resource: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    namespaced: false,
  },
  logicalClusters: {
    group: 'core.kcp.io',
    version: 'v1alpha1',
    resource: 'logicalclusters',
    kind: 'LogicalCluster',
    namespaced: false,
  },
  connections: {
    group: 'core.kbind.io',
    version: 'v1alpha1',
    resource: 'connections',
    kind: 'Connection',
    namespaced: false,
  },
  clusterBindings: {
    group: 'core.kbind.io',
    version: 'v1alpha1',
    resource: 'clusterbindings',
    kind: 'ClusterBinding',
    namespaced: false,
  },
  bindings: { group: 'core.kbind.io', version: 'v1alpha1', resource: 'bindings', kind: 'Binding', namespaced: true },
} as const satisfies Record<string, ResourceRef>;
