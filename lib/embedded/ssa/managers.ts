import type { ManagedFieldsEntry } from '../api/object.ts';
import { decodeFields, encodeFields, type FieldSet } from './fieldset.ts';

/** What one manager owns at one version. */
export interface Owned {
  readonly set: FieldSet;
  readonly apiVersion: string;
  readonly applied: boolean;
  readonly time: string | undefined;
}

/** Managers by identity, see {@link managerKey}. */
export type Managers = Map<string, Owned>;

/** Who writes: a manager is another one for every operation, version of updates, and subresource. */
export interface Writer {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
}

/** The identity of a manager; applies at several versions are one. */
export function managerKey(writer: Writer): string {
  return JSON.stringify({
    ...(writer.manager && { manager: writer.manager }),
    operation: writer.operation,
    ...(writer.operation === 'Update' && { apiVersion: writer.apiVersion }),
    ...(writer.subresource && { subresource: writer.subresource }),
  });
}

/** Reads `metadata.managedFields`; throws where an entry makes no sense. */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] = []): Managers {
  const managers: Managers = new Map();
  for (const entry of entries) {
    const { operation, apiVersion = '', fieldsType } = entry;
    if (operation !== 'Apply' && operation !== 'Update') throw new Error('operation must be `Apply` or `Update`');
    if (!apiVersion) throw new Error('apiVersion must not be empty');
    if (fieldsType !== 'FieldsV1') throw new Error('fieldsType must be `FieldsV1`');
    const key = managerKey({
      manager: entry.manager ?? '',
      operation,
      apiVersion,
      subresource: entry.subresource ?? '',
    });
    managers.set(key, {
      set: decodeFields(entry.fieldsV1 ?? {}),
      apiVersion,
      applied: operation === 'Apply',
      time: entry.time,
    });
  }
  return managers;
}

/** Writes `metadata.managedFields`, in Kubernetes' order. */
export function encodeManagers(managers: Managers): ManagedFieldsEntry[] {
  return [...managers].map(([key, owned]) => encodeManager(key, owned)).sort(compareEntries);
}

function encodeManager(key: string, owned: Owned): ManagedFieldsEntry {
  const { manager, operation, subresource } = JSON.parse(key) as ManagedFieldsEntry;
  return {
    apiVersion: owned.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: encodeFields(owned.set),
    ...(manager !== undefined && { manager }),
    operation: owned.applied ? 'Apply' : (operation ?? 'Update'),
    ...(subresource !== undefined && { subresource }),
    ...(owned.time !== undefined && { time: owned.time }),
  };
}

function compareEntries(left: ManagedFieldsEntry, right: ManagedFieldsEntry): number {
  const fields = ['operation', 'time', 'manager', 'apiVersion', 'subresource'] as const;
  for (const field of fields) {
    const [a, b] = [left[field] ?? '', right[field] ?? ''];
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

const MAX_UPDATERS = 10;

/** Folds the oldest updaters into one, so that managedFields stay bounded. */
export function capUpdaters(managers: Managers): Managers {
  const updaters = [...managers].filter(([, owned]) => !owned.applied);
  if (updaters.length <= MAX_UPDATERS) return managers;
  updaters.sort(([a, x], [b, y]) => ((x.time ?? '') + a < (y.time ?? '') + b ? -1 : 1));
  const result: Managers = new Map(managers);
  const firstOf = new Map<string, string>();
  let count = updaters.length;
  for (const [key, owned] of updaters) {
    if (count <= MAX_UPDATERS) break;
    const first = firstOf.get(owned.apiVersion);
    if (first === undefined) {
      firstOf.set(owned.apiVersion, key);
      continue;
    }
    const bucket = managerKey({
      manager: 'ancient-changes',
      operation: 'Update',
      apiVersion: owned.apiVersion,
      subresource: '',
    });
    const older = result.get(bucket) ?? result.get(first);
    result.delete(first);
    result.delete(key);
    result.set(bucket, { ...owned, set: older ? owned.set.union(older.set) : owned.set });
    count -= 1;
  }
  return result;
}
