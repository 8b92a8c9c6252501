import type { KubeObject, ResourceRef } from './api.ts';
import { findCondition, type Condition } from './conditions.ts';

/** CustomResourceDefinitions (apiextensions.k8s.io/v1), as far as this product looks into them. */

export type CrdScope = 'Namespaced' | 'Cluster';

export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly subresources?: { readonly status?: unknown; readonly scale?: unknown };
  readonly [field: string]: unknown;
}

export interface CrdSpec {
  readonly group: string;
  readonly scope: CrdScope;
  readonly names: { readonly plural: string; readonly kind: string; readonly [field: string]: unknown };
  readonly versions: readonly CrdVersion[];
  readonly [field: string]: unknown;
}

/** The spec of a CRD that an API server answered, and which it therefore has validated. */
export const crdSpec = (crd: KubeObject): CrdSpec => crd.spec as unknown as CrdSpec;

/**
 * The version at which instances of an installed CRD are read, written and watched: the storage version, else the first
 * served one (spec §6); undefined when none is served, which is what "usable" in the binding's chart asks.
 */
export function usableVersion(crd: KubeObject): CrdVersion | undefined {
  const served = crdSpec(crd).versions.filter((version) => version.served);
  return served.find((version) => version.storage) ?? served[0];
}

/** How instances of a CRD are addressed; undefined when it serves no version. */
export function instanceResource(crd: KubeObject): ResourceRef | undefined {
  const version = usableVersion(crd);
  if (version === undefined) return undefined;
  const { group, names, scope } = crdSpec(crd);
  return { group, version: version.name, resource: names.plural, kind: names.kind, namespaced: scope === 'Namespaced' };
}

/** True where the version in use has a status subresource. */
export const hasStatusSubresource = (crd: KubeObject): boolean =>
  usableVersion(crd)?.subresources?.status !== undefined;

/** True from the moment that somebody asked for the CRD's deletion. */
export const isDeleting = (object: Pick<KubeObject, 'metadata'>): boolean =>
  object.metadata.deletionTimestamp !== undefined;

/** A condition of the CRD's own status: `Established`, `NamesAccepted`. */
export function crdCondition(crd: KubeObject, type: 'Established' | 'NamesAccepted'): Condition | undefined {
  return findCondition((crd.status as { conditions?: readonly Condition[] } | undefined)?.conditions, type);
}
