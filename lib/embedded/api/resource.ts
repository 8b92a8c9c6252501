import type { Cause } from './status.ts';
import type { KubeObject } from './object.ts';

/** A structural schema, as in a CustomResourceDefinition. Built-in kinds are described by it, too. */
export interface Schema {
  type?: string;
  format?: string;
  description?: string;
  nullable?: boolean;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  pattern?: string;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-map-type'?: string;
  'x-kubernetes-patch-merge-key'?: string;
  'x-kubernetes-patch-strategy'?: string;
  'x-kubernetes-validations'?: ValidationRule[];
  [keyword: string]: unknown;
}

/** A CEL rule of a schema. */
export interface ValidationRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
  fieldPath?: string;
  optionalOldSelf?: boolean;
}

/** A column of the Table representation. */
export interface Column {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath?: string;
  /** For built-in kinds, instead of a path. */
  value?: (object: KubeObject) => unknown;
}

/** One served version of a resource. */
export interface Version {
  readonly name: string;
  readonly schema: Schema;
  /** Whether status is a subresource: the main resource then ignores it. */
  readonly status: boolean;
  readonly scale?: boolean;
  readonly columns: readonly Column[];
  readonly selectableFields?: readonly string[];
  /** The Warning header of requests to a deprecated version. */
  readonly deprecation?: string;
}

/** What a kind does differently from others. */
export interface Strategy {
  readonly unconditionalUpdate: boolean;
  readonly createOnUpdate: boolean;
  /** Whether metadata.generation counts changes of the spec. */
  readonly generation: boolean;
  /** Runs after defaulting and before validation. */
  readonly prepareCreate?: (object: KubeObject) => void;
  readonly prepareUpdate?: (object: KubeObject, old: KubeObject, subresource: string) => void;
  readonly validate?: (object: KubeObject) => Cause[];
  readonly validateUpdate?: (object: KubeObject, old: KubeObject) => Cause[];
  /** Marks an object for a deletion that a controller ends; others are held by finalizers alone. */
  readonly prepareDelete?: (object: KubeObject, now: Date) => KubeObject;
  readonly validName?: (name: string) => string[];
  /** Fields for field selectors, beside metadata.name and metadata.namespace. */
  readonly fields?: (object: KubeObject) => Record<string, string>;
}

/** A resource that the server serves. */
export interface Resource {
  readonly group: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly versions: readonly Version[];
  /** Versions under which it is stored and served; others are only converted to. */
  readonly storageVersion: string;
  readonly custom: boolean;
  /** The conversion between versions goes through a webhook, which this server does not call. */
  readonly webhookConversion: boolean;
  /** The verbs that discovery shows. */
  readonly verbs: readonly string[];
  /** Its definition is being deleted: nothing new is created. */
  readonly terminating: boolean;
  readonly strategy: Strategy;
}

export const ALL_VERBS: readonly string[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** `group/plural`, the name of a resource's table in the store. */
export const tableName = (resource: { group: string; plural: string }): string =>
  `${resource.group}/${resource.plural}`;

/** `group/version`, or the version alone in the core group. */
export const groupVersion = (group: string, version: string): string => (group ? `${group}/${version}` : version);
