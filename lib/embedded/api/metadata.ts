import { isObject, put, type Obj } from '../json/json.ts';
import { labelProblems, labelValueProblems, qualifiedNameProblems, subdomainProblems } from './names.ts';
import type { KubeObject, ObjectMeta } from './object.ts';
import type { Resource } from './resource.ts';
import { fieldForbidden, invalidValue, required, type Cause } from './status.ts';

const TOTAL_ANNOTATIONS = 256 * 1024;

/** Everything wrong with an object's metadata. */
export function validateMetadata(resource: Resource, object: KubeObject): Cause[] {
  const { metadata } = object;
  const validName = resource.strategy.validName ?? subdomainProblems;
  const causes: Cause[] = [];
  if (metadata.generateName) {
    // Only the part that a name made from it would keep counts.
    const prefix = metadata.generateName.replace(/-+$/, '') || metadata.generateName;
    for (const problem of validName(prefix))
      causes.push(invalidValue('metadata.generateName', metadata.generateName, problem));
  }
  if (!metadata.name) causes.push(required('metadata.name', 'name or generateName is required'));
  else
    for (const problem of validName(metadata.name)) causes.push(invalidValue('metadata.name', metadata.name, problem));
  causes.push(...validateNamespace(resource, metadata));
  causes.push(...validateLabels(metadata.labels ?? {}), ...validateAnnotations(metadata.annotations ?? {}));
  causes.push(
    ...validateOwners(metadata),
    ...validateFinalizers(resource, metadata),
    ...validateManagedFields(metadata),
  );
  return causes;
}

function validateNamespace(resource: Resource, metadata: ObjectMeta): Cause[] {
  if (!resource.namespaced) {
    return metadata.namespace ? [fieldForbidden('metadata.namespace', 'not allowed on this type')] : [];
  }
  if (!metadata.namespace) return [required('metadata.namespace', '')];
  return labelProblems(metadata.namespace).map((problem) =>
    invalidValue('metadata.namespace', metadata.namespace, problem),
  );
}

function validateLabels(labels: Record<string, string>): Cause[] {
  const causes: Cause[] = [];
  for (const [key, value] of Object.entries(labels)) {
    for (const problem of qualifiedNameProblems(key)) causes.push(invalidValue('metadata.labels', key, problem));
    for (const problem of labelValueProblems(value)) causes.push(invalidValue('metadata.labels', value, problem));
  }
  return causes;
}

function validateAnnotations(annotations: Record<string, string>): Cause[] {
  const causes: Cause[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    for (const problem of qualifiedNameProblems(key.toLowerCase()))
      causes.push(invalidValue('metadata.annotations', key, problem));
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > TOTAL_ANNOTATIONS) {
    causes.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${TOTAL_ANNOTATIONS} bytes`,
      field: 'metadata.annotations',
    });
  }
  return causes;
}

function validateOwners(metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = [];
  const owners = metadata.ownerReferences ?? [];
  owners.forEach((owner, i) => {
    const field = `metadata.ownerReferences[${i}]`;
    for (const key of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (!owner[key])
        causes.push(
          invalidValue(
            `metadata.ownerReferences.${key}`,
            owner[key] ?? '',
            key === 'apiVersion' ? 'version must not be empty' : 'must not be empty',
          ),
        );
    }
    if (owner.kind === 'Event' && owner.apiVersion === 'v1')
      causes.push(invalidValue(field, owner, 'is disallowed from being an owner'));
  });
  const controllers = owners.filter((owner) => owner.controller);
  if (controllers.length > 1) {
    const names = controllers
      .map((owner) => owner.kind)
      .slice(0, 2)
      .join(' and ');
    causes.push(
      invalidValue(
        'metadata.ownerReferences',
        owners,
        `Only one reference can have Controller set to true. Found "true" in references for ${names}`,
      ),
    );
  }
  return causes;
}

const STANDARD_FINALIZERS = new Set(['orphan', 'foregroundDeletion', 'kubernetes']);

function validateFinalizers(resource: Resource, metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = [];
  for (const [i, finalizer] of (metadata.finalizers ?? []).entries()) {
    for (const problem of qualifiedNameProblems(finalizer))
      causes.push(invalidValue('metadata.finalizers', finalizer, problem));
    // Only the core's own kinds: a CRD carries customresourcecleanup.apiextensions.k8s.io while it goes.
    const mustBeQualified = !resource.custom && resource.group !== 'apiextensions.k8s.io';
    if (mustBeQualified && !finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
      causes.push(
        invalidValue(
          `metadata.finalizers[${i}]`,
          finalizer,
          'name is neither a standard finalizer name nor is it fully qualified',
        ),
      );
    }
  }
  return causes;
}

function validateManagedFields(metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = [];
  (metadata.managedFields ?? []).forEach((entry, i) => {
    const field = `metadata.managedFields[${i}]`;
    if (entry.operation !== 'Apply' && entry.operation !== 'Update') {
      causes.push(invalidValue(`${field}.operation`, entry.operation ?? '', 'must be `Apply` or `Update`'));
    }
    if (entry.fieldsType !== undefined && entry.fieldsType !== 'FieldsV1') {
      causes.push(invalidValue(`${field}.fieldsType`, entry.fieldsType, 'must be `FieldsV1`'));
    }
  });
  return causes;
}

const immutable = (field: string, value: unknown): Cause => invalidValue(field, value, 'field is immutable');

/** What an update may not change. */
export function validateMetadataUpdate(object: KubeObject, old: KubeObject): Cause[] {
  const [next, before] = [object.metadata, old.metadata];
  const causes: Cause[] = [];
  for (const key of [
    'name',
    'namespace',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    if (next[key] !== before[key]) causes.push(immutable(`metadata.${key}`, next[key] ?? null));
  }
  if (before.deletionTimestamp) {
    const added = (next.finalizers ?? []).filter((finalizer) => !(before.finalizers ?? []).includes(finalizer));
    if (added.length > 0) {
      causes.push(
        fieldForbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((each) => JSON.stringify(each)).join(', ')}}`,
        ),
      );
    }
  }
  return causes;
}

const ORDER = [
  'name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion', 'generation', 'creationTimestamp',
  'deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations', 'ownerReferences', 'finalizers', 'managedFields',
] as const; // prettier-ignore

/** Metadata with known fields only, in Kubernetes' order, without empty ones. */
export function tidyMetadata(metadata: Obj): ObjectMeta {
  const result: Obj = {};
  for (const key of ORDER) {
    const value = metadata[key];
    if (value === undefined || value === null || value === '') continue;
    if (Array.isArray(value) && value.length === 0) continue;
    if (isObject(value) && Object.keys(value).length === 0) continue;
    put(result, key, value);
  }
  return result as unknown as ObjectMeta;
}
