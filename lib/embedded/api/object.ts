import type { Obj } from '../json/json.ts';

/** A reference to an object that owns this one. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Which fields one manager owns. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Obj;
  subresource?: string;
}

/** Kubernetes' ObjectMeta. */
export interface ObjectMeta {
  name: string;
  generateName?: string;
  namespace?: string;
  selfLink?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** An object of any kind. Stored objects are never changed in place: every write stores a new one. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** `namespace/name`, or the name alone; its order is the order of lists. */
export function keyOf(namespace: string, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

export const keyOfObject = (object: KubeObject): string => keyOf(object.metadata.namespace ?? '', object.metadata.name);

/** A time as metav1.Time prints it. */
export const timestamp = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z');

/** A time as metav1.MicroTime prints it. */
export const microTimestamp = (date: Date): string => date.toISOString().replace('Z', '000Z');
