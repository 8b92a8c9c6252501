import { isObject, put, type Obj } from '../json/json.ts';
import { showItem } from './check.ts';
import { FieldSet } from './fieldset.ts';
import { fieldType, itemElement, itemProblem, shapeOf, type MergeType } from './types.ts';

/** An applied object that cannot be merged, with the place. */
export class MergeProblem extends Error {}

/** Lays an applied object over the live one: what it names is set, the rest stays. */
export function merge(live: Obj, applied: Obj, type: MergeType): Obj {
  const result: Obj = {};
  for (const [key, value] of Object.entries(live)) put(result, key, value);
  for (const [key, value] of Object.entries(applied)) {
    const before = Object.hasOwn(live, key) ? live[key] : undefined;
    put(result, key, mergeValue(before, value, fieldType(type, key)));
  }
  return result;
}

function mergeValue(live: unknown, applied: unknown, type: MergeType): unknown {
  const shape = shapeOf(type, applied);
  if (shape === 'map' && Object.keys(applied as Obj).length > 0) {
    return merge(isObject(live) ? live : {}, applied as Obj, type);
  }
  if (shape === 'map') return isObject(live) && Object.keys(live).length > 0 ? live : applied;
  if (shape === 'list') return mergeLists(Array.isArray(live) ? (live as unknown[]) : [], applied as unknown[], type);
  return keepsGranular(live, applied, type) ? live : applied;
}

// A null over a granular map or list that has entries changes nothing, as in structured-merge-diff.
function keepsGranular(live: unknown, applied: unknown, type: MergeType): boolean {
  return (
    applied === null && live !== undefined && shapeOf(type, live) !== 'leaf' && Object.keys(live as object).length > 0
  );
}

/** Items of both, in the applied order where both have them, others where they were. */
function mergeLists(live: unknown[], applied: unknown[], type: MergeType): unknown[] {
  const wanted = indexApplied(applied, type);
  const present = new Map(live.map((item) => [itemElement(type, item), item]));
  const result: unknown[] = [];
  const queue = [...wanted.keys()];
  const done = new Set<string>();
  const take = (element: string): void => {
    done.add(element);
    result.push(mergeItem(present.get(element), wanted.get(element), type));
  };
  for (const item of live) {
    const element = itemElement(type, item);
    if (!wanted.has(element)) {
      result.push(item);
      continue;
    }
    if (done.has(element)) continue;
    // Everything that the applied list puts before this shared item comes first.
    while (queue.length > 0 && queue[0] !== element && !done.has(element)) take(queue.shift() ?? '');
    if (queue[0] === element) queue.shift();
    if (!done.has(element)) take(element);
  }
  for (const element of queue) if (!done.has(element)) take(element);
  return result;
}

const mergeItem = (live: unknown, applied: unknown, type: MergeType): unknown =>
  isObject(applied) ? mergeValue(live, applied, type.element) : applied;

function indexApplied(list: unknown[], type: MergeType): Map<string, unknown> {
  const found = new Map<string, unknown>();
  list.forEach((item, i) => {
    const problem = itemProblem(type, item);
    if (problem) throw new MergeProblem(`element ${i}: ${problem}`);
    const element = itemElement(type, item);
    if (found.has(element)) throw new MergeProblem(`duplicate entries for key ${showItem(element)}`);
    found.set(element, item);
  });
  return found;
}

/** Takes the members of a set out of an object; maps and lists that get empty go too. */
export function removeFields(object: Obj, set: FieldSet, type: MergeType): Obj {
  const result: Obj = {};
  for (const [key, value] of Object.entries(object)) {
    const element = `f:${key}`;
    if (set.members.has(element)) continue;
    const below = set.children.get(element);
    const kept = below && !below.empty ? removeBelow(value, below, fieldType(type, key)) : value;
    put(result, key, kept === undefined ? null : kept);
  }
  return result;
}

function removeBelow(value: unknown, set: FieldSet, type: MergeType): unknown {
  const shape = shapeOf(type, value);
  if (shape === 'map') {
    const kept = removeFields(value as Obj, set, type);
    return Object.keys(kept).length > 0 ? kept : undefined;
  }
  if (shape === 'list') return removeItems(value as unknown[], set, type);
  return isObject(value) || Array.isArray(value) ? undefined : value;
}

function removeItems(list: unknown[], set: FieldSet, type: MergeType): unknown[] | undefined {
  const kept: unknown[] = [];
  for (const item of list) {
    const element = itemElement(type, item);
    if (set.members.has(element)) continue;
    const below = set.children.get(element);
    kept.push(below && !below.empty ? (removeBelow(item, below, type.element) ?? null) : item);
  }
  return kept.length > 0 ? kept : undefined;
}

/** Adds the known fields that lead to members, as structured-merge-diff does before it prunes. */
export function ensureNamedFields(set: FieldSet, type: MergeType): FieldSet {
  const result = set.union(new FieldSet());
  for (const [element, child] of set.children) {
    const name = element.startsWith('f:') ? element.slice(2) : undefined;
    if (name !== undefined && type.field(name)) result.members.add(element);
    const below = name === undefined ? type.element : fieldType(type, name);
    result.children.set(element, ensureNamedFields(child, below));
  }
  return result;
}
