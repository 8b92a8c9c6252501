import { timestamp } from '../api/object.ts';
import type { Strategy } from '../api/resource.ts';
import { isObject } from '../json/json.ts';
import { CLEANUP, withCondition, type Crd, type CrdVersion } from './model.ts';
import { validateCrd, validateCrdUpdate } from './validate.ts';

/** How CustomResourceDefinitions are written. */
export const CRD_STRATEGY: Strategy = {
  unconditionalUpdate: false,
  createOnUpdate: false,
  generation: true,
  prepareCreate(object) {
    const crd = object as Crd;
    fill(crd);
    crd.status = { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: storageOf(crd) };
  },
  prepareUpdate(object, old, subresource) {
    const crd = object as Crd;
    fill(crd);
    if (subresource !== '') return;
    const stored = (old as Crd).status?.storedVersions ?? [];
    const added = storageOf(crd).filter((name) => !stored.includes(name));
    if (added.length > 0) crd.status = { ...(old as Crd).status, storedVersions: [...stored, ...added] };
  },
  prepareDelete(object, now) {
    if (object.metadata.deletionTimestamp) return object;
    const finalizers = [...new Set([...(object.metadata.finalizers ?? []), CLEANUP])];
    const metadata = {
      ...object.metadata,
      finalizers,
      deletionTimestamp: timestamp(now),
      deletionGracePeriodSeconds: 0,
    };
    delete (metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds;
    const condition = {
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    };
    return withCondition({ ...(object as Crd), metadata }, condition, timestamp(now));
  },
  validate: (object) => validateCrd(object as Crd),
  validateUpdate: (object, old) => validateCrdUpdate(object as Crd, old as Crd),
};

const storageOf = (crd: Crd): string[] =>
  crd.spec.versions.filter((version) => version.storage).map((version) => version.name);

/** Defaults that depend on other fields, and shapes that later code can rely on. */
function fill(crd: Crd): void {
  if (!isObject(crd['spec'])) crd.spec = { group: '', names: { plural: '', kind: '' }, scope: '', versions: [] };
  const { spec } = crd;
  spec.group ??= '';
  spec.scope ??= '';
  spec.versions ??= [];
  spec.names ??= { plural: '', kind: '' };
  spec.names.plural ??= '';
  spec.names.kind ??= '';
  if (!spec.names.singular && spec.names.kind) spec.names.singular = spec.names.kind.toLowerCase();
  if (!spec.names.listKind && spec.names.kind) spec.names.listKind = `${spec.names.kind}List`;
  spec.conversion ??= { strategy: 'None' };
  if (spec.preserveUnknownFields === false) delete spec.preserveUnknownFields;
  for (const version of spec.versions) fillVersion(version);
}

function fillVersion(version: CrdVersion): void {
  version.served ??= false;
  version.storage ??= false;
  const fields = version as { additionalPrinterColumns?: unknown[] };
  if (fields.additionalPrinterColumns?.length === 0) delete fields.additionalPrinterColumns;
}
