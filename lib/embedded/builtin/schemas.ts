import type { Schema } from '../api/resource.ts';
import { withTypeMeta } from '../schema/meta.ts';

/** Shorthand for the schemas of built-in kinds. */
export const string = (): Schema => ({ type: 'string' });
export const integer = (format = 'int32'): Schema => ({ type: 'integer', format });
export const boolean = (): Schema => ({ type: 'boolean' });
export const mapOf = (value: Schema): Schema => ({ type: 'object', additionalProperties: value });
export const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  ...more,
});
export const atomicList = (items: Schema): Schema => ({ type: 'array', 'x-kubernetes-list-type': 'atomic', items });
export const keyedList = (key: string, items: Schema): Schema => ({
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': [key],
  'x-kubernetes-patch-strategy': 'merge',
  'x-kubernetes-patch-merge-key': key,
  items,
});
const bytes = (): Schema => ({ type: 'string', format: 'byte' });
export const time = (): Schema => ({ type: 'string', format: 'date-time', nullable: true });
const microTime = (): Schema => ({ type: 'string', format: 'micro-time', nullable: true });

const described = (description: string, properties: Record<string, Schema>): Schema =>
  withTypeMeta({ ...object(properties), description });

const condition = object({
  type: string(),
  status: string(),
  lastTransitionTime: time(),
  reason: string(),
  message: string(),
});

const objectReference = object(
  {
    kind: string(),
    namespace: string(),
    name: string(),
    uid: string(),
    apiVersion: string(),
    resourceVersion: string(),
    fieldPath: string(),
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const NAMESPACE: Schema = described('Namespace provides a scope for Names.', {
  spec: object({ finalizers: atomicList(string()) }),
  status: object({ phase: string(), conditions: keyedList('type', condition) }),
});

export const SECRET: Schema = described('Secret holds secret data of a certain type.', {
  immutable: boolean(),
  data: mapOf(bytes()),
  stringData: mapOf(string()),
  type: string(),
});

export const CONFIG_MAP: Schema = described('ConfigMap holds configuration data for pods to consume.', {
  immutable: boolean(),
  data: mapOf(string()),
  binaryData: mapOf(bytes()),
});

export const EVENT: Schema = described('Event is a report of an event somewhere in the cluster.', {
  involvedObject: objectReference,
  reason: string(),
  message: string(),
  source: object({ component: string(), host: string() }),
  firstTimestamp: time(),
  lastTimestamp: time(),
  count: integer(),
  type: string(),
  eventTime: microTime(),
  series: object({ count: integer(), lastObservedTime: microTime() }),
  action: string(),
  related: objectReference,
  reportingComponent: string(),
  reportingInstance: string(),
});

export const LEASE: Schema = described('Lease defines a lease concept.', {
  spec: object({
    holderIdentity: string(),
    leaseDurationSeconds: integer(),
    acquireTime: microTime(),
    renewTime: microTime(),
    leaseTransitions: integer(),
    strategy: string(),
    preferredHolder: string(),
  }),
});
