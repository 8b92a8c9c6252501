import type { Schema } from '../api/resource.ts';

const string = (): Schema => ({ type: 'string' });
const strings = (): Schema => ({ type: 'object', additionalProperties: { type: 'string' } });
const time = (): Schema => ({ type: 'string', format: 'date-time', nullable: true });

const OWNER: Schema = {
  type: 'object',
  'x-kubernetes-map-type': 'atomic',
  properties: {
    apiVersion: string(),
    kind: string(),
    name: string(),
    uid: string(),
    controller: { type: 'boolean' },
    blockOwnerDeletion: { type: 'boolean' },
  },
};

const MANAGED_FIELDS: Schema = {
  type: 'object',
  properties: {
    manager: string(),
    operation: string(),
    apiVersion: string(),
    time: time(),
    fieldsType: string(),
    fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    subresource: string(),
  },
};

/** Kubernetes' ObjectMeta as a structural schema. */
export const OBJECT_META: Schema = {
  type: 'object',
  description: "Standard object's metadata.",
  properties: {
    name: string(),
    generateName: string(),
    namespace: string(),
    selfLink: string(),
    uid: string(),
    resourceVersion: string(),
    generation: { type: 'integer', format: 'int64' },
    creationTimestamp: time(),
    deletionTimestamp: time(),
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    labels: strings(),
    annotations: strings(),
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-merge-key': 'uid',
      'x-kubernetes-patch-strategy': 'merge',
      items: OWNER,
    },
    finalizers: {
      type: 'array',
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
      items: string(),
    },
    managedFields: { type: 'array', 'x-kubernetes-list-type': 'atomic', items: MANAGED_FIELDS },
  },
};

/** A schema of a whole object: what the author left out (apiVersion, kind, the shape of metadata) is added. */
export function withTypeMeta(schema: Schema): Schema {
  const properties = {
    ...schema.properties,
    apiVersion: { ...string(), ...schema.properties?.['apiVersion'] },
    kind: { ...string(), ...schema.properties?.['kind'] },
    metadata: { ...schema.properties?.['metadata'], ...OBJECT_META },
  };
  return { ...schema, type: 'object', properties };
}
