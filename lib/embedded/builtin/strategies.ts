import type { KubeObject } from '../api/object.ts';
import { labelProblems } from '../api/names.ts';
import type { Strategy } from '../api/resource.ts';
import { fieldForbidden, invalidValue, required, type Cause } from '../api/status.ts';
import { at, equal, isObject, objectAt, textAt, type Obj } from '../json/json.ts';

const MAX_DATA = 1024 * 1024;
const KEY = /^[-._a-zA-Z0-9]+$/;

const always = { unconditionalUpdate: true, createOnUpdate: false, generation: false };

function dropEmpty(object: KubeObject, ...fields: string[]): void {
  for (const field of fields) {
    const value = object[field];
    if (value === null || value === '' || (isObject(value) && Object.keys(value).length === 0)) delete object[field];
  }
}

export const NAMESPACE_STRATEGY: Strategy = {
  ...always,
  validName: labelProblems,
  prepareCreate(object) {
    object['status'] = { phase: 'Active' };
    object['spec'] = { finalizers: ['kubernetes'] };
    labelName(object);
  },
  prepareUpdate(object, old, subresource) {
    if (subresource !== 'finalize') object['spec'] = old['spec'];
    if (subresource === '') object['status'] = old['status'];
    labelName(object);
  },
  prepareDelete(object, now) {
    if (object.metadata.deletionTimestamp) return object;
    const deletionTimestamp = now.toISOString().replace(/\.\d+Z$/, 'Z');
    const status = { ...objectAt(object, 'status'), phase: 'Terminating' };
    return { ...object, metadata: { ...object.metadata, deletionTimestamp }, status };
  },
  fields: (object) => ({ 'status.phase': textAt(object, 'status', 'phase') }),
};

function labelName(object: KubeObject): void {
  object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
}

function dataCauses(object: KubeObject, fields: string[]): Cause[] {
  const causes: Cause[] = [];
  let size = 0;
  for (const field of fields) {
    for (const [key, value] of Object.entries(objectAt(object, field))) {
      const text = String(value);
      size +=
        field === 'data' && object.kind === 'ConfigMap' ? Buffer.byteLength(text) : Buffer.from(text, 'base64').length;
      if (!KEY.test(key) || key.length > 253) {
        causes.push(
          invalidValue(
            `${field}[${key}]`,
            key,
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
          ),
        );
      }
    }
  }
  if (size > MAX_DATA)
    causes.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${MAX_DATA} bytes`,
      field: fields.length > 1 ? '' : 'data',
    });
  return causes;
}

function immutableCauses(object: KubeObject, old: KubeObject, fields: string[]): Cause[] {
  if (old['immutable'] !== true) return [];
  const causes: Cause[] = [];
  const frozen = (field: string): void =>
    void causes.push(fieldForbidden(field, 'field is immutable when `immutable` is set'));
  if (object['immutable'] !== true) frozen('immutable');
  for (const field of fields) if (!equal(objectAt(object, field), objectAt(old, field))) frozen(field);
  return causes;
}

export const SECRET_STRATEGY: Strategy = {
  ...always,
  prepareCreate: foldStringData,
  prepareUpdate: foldStringData,
  validate: (object) => (object['type'] ? dataCauses(object, ['data']) : [required('type', '')]),
  validateUpdate(object, old) {
    const causes = object['type'] === old['type'] ? [] : [invalidValue('type', object['type'], 'field is immutable')];
    return [...causes, ...immutableCauses(object, old, ['data'])];
  },
  fields: (object) => ({ type: textAt(object, 'type') }),
};

function foldStringData(object: KubeObject): void {
  const plain = Object.entries(objectAt(object, 'stringData'));
  if (plain.length > 0) {
    const encoded = plain.map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')]);
    object['data'] = { ...objectAt(object, 'data'), ...(Object.fromEntries(encoded) as Obj) };
  }
  delete object['stringData'];
  dropEmpty(object, 'data');
  object['type'] ||= 'Opaque';
}

export const CONFIG_MAP_STRATEGY: Strategy = {
  ...always,
  prepareCreate: (object) => dropEmpty(object, 'data', 'binaryData'),
  prepareUpdate: (object) => dropEmpty(object, 'data', 'binaryData'),
  validate: (object) => dataCauses(object, ['data', 'binaryData']),
  validateUpdate: (object, old) => immutableCauses(object, old, ['data', 'binaryData']),
};

const EVENT_FIELDS: Record<string, string[]> = {
  'involvedObject.kind': ['involvedObject', 'kind'],
  'involvedObject.namespace': ['involvedObject', 'namespace'],
  'involvedObject.name': ['involvedObject', 'name'],
  'involvedObject.uid': ['involvedObject', 'uid'],
  'involvedObject.apiVersion': ['involvedObject', 'apiVersion'],
  'involvedObject.resourceVersion': ['involvedObject', 'resourceVersion'],
  'involvedObject.fieldPath': ['involvedObject', 'fieldPath'],
  reason: ['reason'],
  reportingComponent: ['reportingComponent'],
  source: ['source', 'component'],
  type: ['type'],
};

export const EVENT_STRATEGY: Strategy = {
  ...always,
  createOnUpdate: true,
  prepareCreate: fillEvent,
  prepareUpdate: fillEvent,
  validate(object) {
    const involved = textAt(object, 'involvedObject', 'namespace');
    const namespace = object.metadata.namespace ?? '';
    if (involved === namespace || (involved === '' && namespace === 'default')) return [];
    return [invalidValue('involvedObject.namespace', involved, 'does not match event.namespace')];
  },
  fields: (object) =>
    Object.fromEntries(Object.entries(EVENT_FIELDS).map(([field, path]) => [field, textAt(object, ...path)])),
};

// Go prints these even when they are empty.
function fillEvent(object: KubeObject): void {
  object['involvedObject'] ??= {};
  object['source'] ??= {};
  for (const field of ['firstTimestamp', 'lastTimestamp', 'eventTime']) object[field] ??= null;
  for (const field of ['reportingComponent', 'reportingInstance']) object[field] ??= '';
}

export const LEASE_STRATEGY: Strategy = {
  unconditionalUpdate: false,
  createOnUpdate: true,
  generation: false,
  prepareCreate: fillLease,
  prepareUpdate: fillLease,
  validate(object) {
    const causes: Cause[] = [];
    const duration = at(object, 'spec', 'leaseDurationSeconds');
    const transitions = at(object, 'spec', 'leaseTransitions');
    if (typeof duration === 'number' && duration <= 0)
      causes.push(invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0'));
    if (typeof transitions === 'number' && transitions < 0)
      causes.push(invalidValue('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'));
    return causes;
  },
};

function fillLease(object: KubeObject): void {
  object['spec'] ??= {};
}
