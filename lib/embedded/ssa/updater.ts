import { equal, type Obj } from '../json/json.ts';
import { compare, fieldsOf, type Comparison } from './compare.ts';
import { FieldSet } from './fieldset.ts';
import type { Managers, Owned } from './managers.ts';
import { ensureNamedFields, merge, removeFields } from './merge.ts';
import type { MergeType } from './types.ts';

/** The types of one resource's versions; a version that is gone has none, and what is owned at it is forgotten. */
export interface TypeOf {
  (apiVersion: string): MergeType | undefined;
}

/** One write, seen by structured-merge-diff. */
export interface Operation {
  readonly key: string;
  readonly apiVersion: string;
  readonly typeOf: TypeOf;
  /** Fields that this endpoint never lets a writer own. */
  readonly reset: FieldSet;
  readonly time: string;
}

/** Fields that another manager owns and this apply would change. */
export interface Conflict {
  readonly key: string;
  readonly path: readonly string[];
}

/** The refusal of an apply that was not forced. */
export class Conflicts extends Error {
  readonly conflicts: readonly Conflict[];
  constructor(conflicts: readonly Conflict[]) {
    super('conflict');
    this.conflicts = conflicts;
  }
}

/** Managers after an update (create, replace, patch) from one state to another. */
export function update(live: Obj, next: Obj, managers: Managers, operation: Operation): Managers {
  const known = dropMissingVersions(managers, operation.typeOf);
  const { comparison, owners } = takeOver({ live, next, managers: known, force: true }, operation);
  const before = owners.get(operation.key)?.set ?? new FieldSet();
  const set = before
    .difference(comparison.removed)
    .union(comparison.modified)
    .union(comparison.added)
    .recursiveDifference(operation.reset);
  const changed = !set.equals(before) || !isSame(comparison);
  if (set.empty) owners.delete(operation.key);
  else {
    const previous = owners.get(operation.key);
    const time = changed || !previous ? operation.time : previous.time;
    owners.set(operation.key, { set, apiVersion: operation.apiVersion, applied: false, time });
  }
  return owners;
}

const isSame = (comparison: Comparison): boolean =>
  comparison.added.empty && comparison.modified.empty && comparison.removed.empty;

/** The object and the managers after an apply. Throws {@link Conflicts} unless it is forced. */
export function apply(
  live: Obj,
  applied: Obj,
  managers: Managers,
  operation: Operation & { force: boolean },
): { object: Obj; managers: Managers } {
  const type = operation.typeOf(operation.apiVersion);
  if (!type) throw new Error(`no type for ${operation.apiVersion}`);
  const known = dropMissingVersions(managers, operation.typeOf);
  const last = known.get(operation.key);
  const set = fieldsOf(applied, type).recursiveDifference(operation.reset);
  const claimed: Managers = new Map(known);
  claimed.set(operation.key, { set, apiVersion: operation.apiVersion, applied: true, time: operation.time });
  const merged = merge(live, applied, type);
  const object = last ? prune(merged, claimed, last, operation) : merged;
  const { owners } = takeOver({ live, next: object, managers: claimed, force: operation.force }, operation);
  return { object, managers: owners };
}

interface Change {
  live: Obj;
  next: Obj;
  managers: Managers;
  force: boolean;
}

/** Takes changed and removed fields away from all other managers. */
function takeOver(change: Change, operation: Operation): { comparison: Comparison; owners: Managers } {
  const comparisons = new Map<string, Comparison>();
  const comparisonAt = (apiVersion: string): Comparison => {
    let found = comparisons.get(apiVersion);
    if (!found) comparisons.set(apiVersion, (found = compareAt(change, apiVersion, operation)));
    return found;
  };
  const conflicts: Conflict[] = [];
  const owners: Managers = new Map();
  for (const [key, owned] of change.managers) {
    if (key === operation.key) {
      owners.set(key, owned);
      continue;
    }
    const { added, modified, removed } = comparisonAt(owned.apiVersion);
    const contested = owned.set.intersection(modified.union(added));
    for (const path of contested.paths()) conflicts.push({ key, path });
    const set = owned.set.difference(contested).difference(removed);
    if (!set.empty) owners.set(key, { ...owned, set });
  }
  if (conflicts.length > 0 && !change.force) throw new Conflicts(conflicts);
  const own = owners.get(operation.key);
  if (own?.set.empty) owners.delete(operation.key);
  return { comparison: comparisonAt(operation.apiVersion), owners };
}

function compareAt(change: Change, apiVersion: string, operation: Operation): Comparison {
  const type = operation.typeOf(apiVersion);
  if (!type) throw new Error(`no type for ${apiVersion}`);
  const { added, modified, removed } = compare(change.live, change.next, type);
  const { reset } = operation;
  return {
    added: added.recursiveDifference(reset),
    modified: modified.recursiveDifference(reset),
    removed: removed.recursiveDifference(reset),
  };
}

function dropMissingVersions(managers: Managers, typeOf: TypeOf): Managers {
  return new Map([...managers].filter(([, owned]) => typeOf(owned.apiVersion) !== undefined));
}

/** Removes what this manager applied last time and does not apply now, unless others own it. */
function prune(merged: Obj, managers: Managers, last: Owned, operation: Operation): Obj {
  const type = operation.typeOf(last.apiVersion);
  if (!type || last.set.empty) return merged;
  const named = (set: FieldSet): FieldSet => ensureNamedFields(set, type);
  let pruned = removeFields(merged, named(last.set), type);
  for (const [apiVersion, managed] of managedByVersion(managers, last.apiVersion)) {
    const at = operation.typeOf(apiVersion);
    if (!at) continue;
    const all = ensureNamedFields(fieldsOf(merged, at), at);
    const kept = ensureNamedFields(fieldsOf(pruned, at), at).union(ensureNamedFields(managed, at));
    pruned = removeFields(merged, all.difference(kept), at);
  }
  const gone = named(fieldsOf(merged, type)).difference(named(fieldsOf(pruned, type)));
  const result = removeFields(merged, gone.intersection(named(last.set)), type);
  return equal(result, merged) ? merged : result;
}

function managedByVersion(managers: Managers, first: string): [string, FieldSet][] {
  const sets = new Map<string, FieldSet>([[first, new FieldSet()]]);
  for (const { apiVersion, set } of managers.values())
    sets.set(apiVersion, (sets.get(apiVersion) ?? new FieldSet()).union(set));
  return [...sets];
}
