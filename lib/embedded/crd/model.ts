import type { KubeObject } from '../api/object.ts';
import type { Column, Schema } from '../api/resource.ts';

/** The names of a CustomResourceDefinition. */
export interface CrdNames {
  plural: string;
  singular?: string;
  kind: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

/** One version of a CustomResourceDefinition. */
export interface CrdVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: { status?: object; scale?: object };
  additionalPrinterColumns?: Column[];
  selectableFields?: { jsonPath: string }[];
}

/** A condition of a CustomResourceDefinition. */
export interface CrdCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

/** A CustomResourceDefinition. */
export interface Crd extends KubeObject {
  spec: {
    group: string;
    names: CrdNames;
    scope: string;
    versions: CrdVersion[];
    conversion?: { strategy: string; webhook?: object };
    preserveUnknownFields?: boolean;
  };
  status?: {
    conditions?: CrdCondition[] | null;
    acceptedNames?: CrdNames;
    storedVersions?: string[] | null;
  };
}

export const CRDS = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' };
export const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io';

/** Whether a condition is True. */
export const isTrue = (crd: Crd, type: string): boolean =>
  (crd.status?.conditions ?? []).some((condition) => condition.type === type && condition.status === 'True');

/** The CRD with one more, or another, condition. */
export function withCondition(crd: Crd, condition: CrdCondition, now: string): Crd {
  const conditions = crd.status?.conditions ?? [];
  const old = conditions.find(({ type }) => type === condition.type);
  const lastTransitionTime =
    old && old.status === condition.status && old.lastTransitionTime ? old.lastTransitionTime : now;
  const next = { lastTransitionTime, ...condition };
  const others = old ? conditions.map((each) => (each === old ? next : each)) : [...conditions, next];
  return { ...crd, status: { ...crd.status, conditions: others } };
}
