import type { KubeObject, ManagedFieldsEntry } from '../api/object.ts';
import { applyConflict, badRequest, StatusError, type Cause } from '../api/status.ts';
import { equal, type Obj } from '../json/json.ts';
import { decodeFields, FieldSet, showPath } from './fieldset.ts';
import { capUpdaters, decodeManagers, encodeManagers, managerKey, type Managers, type Writer } from './managers.ts';
import { MergeProblem } from './merge.ts';
import { apply, Conflicts, update, type Conflict, type Operation, type TypeOf } from './updater.ts';

/** One write to one object, as field management sees it. */
export interface ManagedWrite {
  readonly writer: Writer;
  readonly typeOf: TypeOf;
  readonly resetFields: readonly string[];
  readonly time: string;
}

/** What no manager ever owns. */
const META = decodeFields({
  'f:apiVersion': {},
  'f:kind': {},
  'f:metadata': {
    '.': {},
    'f:name': {},
    'f:namespace': {},
    'f:creationTimestamp': {},
    'f:selfLink': {},
    'f:uid': {},
    'f:clusterName': {},
    'f:generation': {},
    'f:managedFields': {},
    'f:resourceVersion': {},
  },
});

/** Records who owns what after a create or an update. Returns the object with new managedFields. */
export function trackUpdate(live: KubeObject | undefined, next: KubeObject, write: ManagedWrite): KubeObject {
  const managers = requestedManagers(live, next, write.writer.subresource !== '');
  if (managers.size === 0 && live?.metadata.uid) return withManagers(next, managers);
  const operation = operationOf(write);
  const owners = update(bare(live ?? emptyLike(next)), bare(next), managers, operation);
  return withManagers(next, strip(capUpdaters(owners)));
}

/** Lays an applied configuration over the live object, or over an empty one. */
export function applyManaged(
  live: KubeObject,
  applied: KubeObject,
  write: ManagedWrite & { force: boolean },
): KubeObject {
  const operation = { ...operationOf(write), force: write.force };
  let managers = emptyOnError(live.metadata.managedFields);
  const isNew = !live.metadata.uid;
  if (managers.size === 0 && !isNew) managers = claimForUnknown(live, write);
  try {
    const result = apply(bare(live), bare(applied), managers, operation);
    const owners = keepTime(strip(result.managers), managers, operation.key, equal(result.object, bare(live)));
    return withManagers(result.object as KubeObject, owners);
  } catch (error) {
    if (error instanceof Conflicts) throw conflictError(error.conflicts);
    if (error instanceof MergeProblem) {
      throw new StatusError(
        500,
        'InternalError',
        `failed to create typed patch object (${show(applied)}): ${error.message}`,
      );
    }
    throw error;
  }
}

const show = (object: KubeObject): string =>
  `${object.metadata.namespace ?? ''}/${object.metadata.name}; ${object.apiVersion}, Kind=${object.kind}`;

// An object that nobody tracked so far: what it holds belongs to whoever wrote it before.
function claimForUnknown(live: KubeObject, write: ManagedWrite): Managers {
  const writer: Writer = { ...write.writer, manager: 'before-first-apply', operation: 'Update' };
  return strip(
    update(bare(emptyLike(live)), bare(live), new Map(), { ...operationOf(write), key: managerKey(writer) }),
  );
}

function operationOf(write: ManagedWrite): Operation {
  const reset = new FieldSet();
  for (const field of write.resetFields) reset.insert([`f:${field}`]);
  return {
    key: managerKey(write.writer),
    apiVersion: write.writer.apiVersion,
    typeOf: write.typeOf,
    reset,
    time: write.time,
  };
}

// A no-op apply keeps its time, or it would not be one.
function keepTime(owners: Managers, before: Managers, key: string, sameObject: boolean): Managers {
  const [own, previous] = [owners.get(key), before.get(key)];
  if (
    sameObject &&
    own &&
    previous &&
    previous.applied &&
    own.set.equals(previous.set) &&
    own.apiVersion === previous.apiVersion
  ) {
    owners.set(key, { ...own, time: previous.time });
  }
  return owners;
}

function strip(managers: Managers): Managers {
  const result: Managers = new Map();
  for (const [key, owned] of managers) {
    const set = owned.set.difference(META);
    if (!set.empty) result.set(key, { ...owned, set });
  }
  return result;
}

/** managedFields that a request carries count, unless it has none: old clients drop them unknowingly. */
function requestedManagers(live: KubeObject | undefined, next: KubeObject, subresource: boolean): Managers {
  const liveFields = live?.metadata.managedFields;
  if (subresource) return emptyOnError(liveFields);
  const asked = next.metadata.managedFields;
  if (asked?.length === 1 && asked[0] && Object.keys(asked[0]).length === 0) return new Map();
  try {
    const managers = decodeManagers(asked);
    return managers.size > 0 ? managers : emptyOnError(liveFields);
  } catch {
    return emptyOnError(liveFields);
  }
}

function emptyOnError(entries: readonly ManagedFieldsEntry[] | undefined): Managers {
  try {
    return decodeManagers(entries);
  } catch {
    return new Map();
  }
}

function withManagers(object: KubeObject, managers: Managers): KubeObject {
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  if (managers.size > 0) metadata.managedFields = encodeManagers(managers);
  return { ...object, metadata };
}

function bare(object: KubeObject): Obj {
  if (!object.metadata.managedFields) return object;
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  return { ...object, metadata };
}

const emptyLike = (object: KubeObject): KubeObject =>
  ({ apiVersion: object.apiVersion, kind: object.kind, metadata: {} }) as unknown as KubeObject;

function conflictError(conflicts: readonly Conflict[]): StatusError {
  const causes: Partial<Cause>[] = conflicts.map(({ key, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${showManager(key)}`,
    field: showPath(path),
  }));
  return applyConflict(causes, conflictMessage(conflicts));
}

function conflictMessage(conflicts: readonly Conflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first) {
    return `Apply failed with 1 conflict: conflict with ${showManager(first.key)}: ${showPath(first.path)}`;
  }
  const lines: string[] = [];
  for (const key of [...new Set(conflicts.map((each) => each.key))].sort()) {
    lines.push(`conflicts with ${showManager(key)}:`);
    for (const each of conflicts) if (each.key === key) lines.push(`- ${showPath(each.path)}`);
  }
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}

function showManager(key: string): string {
  const { manager, operation, subresource, apiVersion } = JSON.parse(key) as ManagedFieldsEntry;
  const name = `${JSON.stringify(manager ?? '')}${subresource ? ` with subresource ${JSON.stringify(subresource)}` : ''}`;
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

/** Refuses an applied configuration that carries managedFields. */
export function checkApplied(applied: KubeObject): void {
  if (applied.metadata.managedFields) throw badRequest('metadata.managedFields must be nil');
}
