import type { KubeObject } from '../api/object.ts';
import type { Column } from '../api/resource.ts';
import { at, objectAt, textAt } from '../json/json.ts';
import { age } from '../table/age.ts';

const NAME: Column = { name: 'Name', type: 'string', format: 'name', value: (object) => object.metadata.name };
const AGE: Column = {
  name: 'Age',
  type: 'string',
  value: (object) => age(object.metadata.creationTimestamp ?? undefined),
};

const text = (name: string, ...path: string[]): Column => ({
  name,
  type: 'string',
  value: (object) => textAt(object, ...path),
});
const count = (...fields: string[]): Column => ({
  name: 'Data',
  type: 'string',
  value: (object) => fields.reduce((sum, field) => sum + Object.keys(objectAt(object, field)).length, 0),
});

export const NAMESPACE_COLUMNS: Column[] = [NAME, text('Status', 'status', 'phase'), AGE];
export const SECRET_COLUMNS: Column[] = [NAME, text('Type', 'type'), count('data'), AGE];
export const CONFIG_MAP_COLUMNS: Column[] = [NAME, count('data', 'binaryData'), AGE];
export const LEASE_COLUMNS: Column[] = [NAME, text('Holder', 'spec', 'holderIdentity'), AGE];
export const CRD_COLUMNS: Column[] = [
  NAME,
  { name: 'Created At', type: 'date', value: (object) => object.metadata.creationTimestamp },
];
export const EVENT_COLUMNS: Column[] = [
  { name: 'Last Seen', type: 'string', value: lastSeen },
  text('Type', 'type'),
  text('Reason', 'reason'),
  { name: 'Object', type: 'string', value: involved },
  { ...text('Source', 'source', 'component'), priority: 1 },
  { name: 'Message', type: 'string', value: (object) => textAt(object, 'message').trim() },
  { ...NAME, priority: 1 },
];

function lastSeen(object: KubeObject): string {
  const seen = ['lastTimestamp', 'eventTime', 'firstTimestamp'].map((field) => textAt(object, field)).find(Boolean);
  return age(seen);
}

function involved(object: KubeObject): string {
  const kind = textAt(object, 'involvedObject', 'kind').toLowerCase();
  const name = textAt(object, 'involvedObject', 'name');
  const path = at(object, 'involvedObject', 'fieldPath');
  return `${kind}/${name}${typeof path === 'string' && path ? ` ${path}` : ''}`;
}
