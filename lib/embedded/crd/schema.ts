import { atomicList, boolean, integer, keyedList, mapOf, object, string, time } from '../builtin/schemas.ts';
import type { Schema } from '../api/resource.ts';
import { withTypeMeta } from '../schema/meta.ts';

const anything = (): Schema => ({ 'x-kubernetes-preserve-unknown-fields': true });
const number = (): Schema => ({ type: 'number', format: 'double' });

const VALIDATION_RULE = object({
  rule: string(),
  message: string(),
  messageExpression: string(),
  reason: string(),
  fieldPath: string(),
  optionalOldSelf: boolean(),
});

/** JSONSchemaProps, which contains itself. */
const JSON_SCHEMA: Schema = { type: 'object', properties: {} };
const schemas = (): Schema => atomicList(JSON_SCHEMA);
const orBoolean = (): Schema => ({ properties: JSON_SCHEMA.properties ?? {} });

Object.assign(JSON_SCHEMA.properties ?? {}, {
  id: string(),
  $schema: string(),
  $ref: string(),
  description: string(),
  type: string(),
  format: string(),
  title: string(),
  default: anything(),
  maximum: number(),
  exclusiveMaximum: boolean(),
  minimum: number(),
  exclusiveMinimum: boolean(),
  maxLength: integer('int64'),
  minLength: integer('int64'),
  pattern: string(),
  maxItems: integer('int64'),
  minItems: integer('int64'),
  uniqueItems: boolean(),
  multipleOf: number(),
  enum: atomicList(anything()),
  maxProperties: integer('int64'),
  minProperties: integer('int64'),
  required: atomicList(string()),
  items: orBoolean(),
  allOf: schemas(),
  oneOf: schemas(),
  anyOf: schemas(),
  not: JSON_SCHEMA,
  properties: mapOf(JSON_SCHEMA),
  additionalProperties: orBoolean(),
  patternProperties: mapOf(JSON_SCHEMA),
  dependencies: mapOf(anything()),
  additionalItems: orBoolean(),
  definitions: mapOf(JSON_SCHEMA),
  externalDocs: object({ description: string(), url: string() }),
  example: anything(),
  nullable: boolean(),
  'x-kubernetes-preserve-unknown-fields': boolean(),
  'x-kubernetes-embedded-resource': boolean(),
  'x-kubernetes-int-or-string': boolean(),
  'x-kubernetes-list-map-keys': atomicList(string()),
  'x-kubernetes-list-type': string(),
  'x-kubernetes-map-type': string(),
  'x-kubernetes-validations': keyedList('rule', VALIDATION_RULE),
});

const NAMES = object({
  plural: string(),
  singular: string(),
  shortNames: atomicList(string()),
  kind: string(),
  listKind: string(),
  categories: atomicList(string()),
});

const COLUMN = object({
  name: string(),
  type: string(),
  format: string(),
  description: string(),
  priority: integer(),
  jsonPath: string(),
});

const VERSION = object({
  name: string(),
  served: boolean(),
  storage: boolean(),
  deprecated: boolean(),
  deprecationWarning: string(),
  schema: object({ openAPIV3Schema: JSON_SCHEMA }),
  subresources: object({
    status: object({}),
    scale: object({ specReplicasPath: string(), statusReplicasPath: string(), labelSelectorPath: string() }),
  }),
  additionalPrinterColumns: atomicList(COLUMN),
  selectableFields: atomicList(object({ jsonPath: string() })),
});

const WEBHOOK = object({
  clientConfig: object({
    url: string(),
    service: object({ namespace: string(), name: string(), path: string(), port: integer() }),
    caBundle: { type: 'string', format: 'byte' },
  }),
  conversionReviewVersions: atomicList(string()),
});

const CONDITION = object({
  type: string(),
  status: string(),
  lastTransitionTime: time(),
  reason: string(),
  message: string(),
  observedGeneration: integer('int64'),
});

/** CustomResourceDefinition as a structural schema. */
export const CRD_SCHEMA: Schema = withTypeMeta({
  ...object({
    spec: object({
      group: string(),
      names: NAMES,
      scope: string(),
      versions: atomicList(VERSION),
      conversion: object({ strategy: string(), webhook: WEBHOOK }),
      preserveUnknownFields: boolean(),
    }),
    status: object({
      conditions: keyedList('type', CONDITION),
      acceptedNames: NAMES,
      storedVersions: atomicList(string()),
      observedGeneration: integer('int64'),
    }),
  }),
  description: 'CustomResourceDefinition represents a resource that should be exposed on the API server.',
});
