import { equal, isObject, type Obj } from '../json/json.ts';
import { FieldSet } from './fieldset.ts';
import { fieldType, itemElement, shapeOf, type MergeType } from './types.ts';

/** Which fields a change added, removed and modified. */
export interface Comparison {
  added: FieldSet;
  removed: FieldSet;
  modified: FieldSet;
}

/** Compares two objects of one type. */
export function compare(before: Obj, after: Obj, type: MergeType): Comparison {
  const result = { added: new FieldSet(), removed: new FieldSet(), modified: new FieldSet() };
  new Walk(result).maps(before, after, type, []);
  return result;
}

class Walk {
  readonly #result: Comparison;
  constructor(result: Comparison) {
    this.#result = result;
  }

  /** One place; a side that lacks it is undefined. */
  compare(left: unknown, right: unknown, type: MergeType, path: string[]): void {
    if (left === right) return;
    const shapes = [left, right]
      .filter((side) => side !== undefined && side !== null)
      .map((side) => shapeOf(type, side));
    const leaf = shapes.length === 0 || shapes.includes('leaf') || new Set(shapes).size > 1;
    if (leaf || (isEmpty(left) && isEmpty(right))) return this.#leaf(left, right, path);
    if (shapes[0] === 'map') this.maps(asMap(left), asMap(right), type, path);
    else this.#lists(asList(left), asList(right), type, path);
    if (left === undefined) this.#result.added.insert(path);
    else if (right === undefined) this.#result.removed.insert(path);
  }

  maps(left: Obj, right: Obj, type: MergeType, path: string[]): void {
    for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
      this.compare(own(left, key), own(right, key), fieldType(type, key), [...path, `f:${key}`]);
    }
  }

  #leaf(left: unknown, right: unknown, path: string[]): void {
    if (left === undefined) this.#result.added.insert(path);
    else if (right === undefined) this.#result.removed.insert(path);
    else if (!equal(left, right)) this.#result.modified.insert(path);
  }

  #lists(left: unknown[], right: unknown[], type: MergeType, path: string[]): void {
    const before = index(left, type);
    const after = index(right, type);
    for (const element of new Set([...before.keys(), ...after.keys()])) {
      const [was = [], is = []] = [before.get(element), after.get(element)];
      const place = [...path, element];
      if (was.length <= 1 && is.length <= 1) this.compare(was[0], is[0], type.element, place);
      else this.#duplicates(was, is, type, place);
    }
  }

  // Duplicates, which only updates can bring in, are owned together, as if they were atomic.
  #duplicates(was: unknown[], is: unknown[], type: MergeType, place: string[]): void {
    if (was.length >= 2 && is.length >= 2) {
      if (!equal(was, is)) this.#result.modified.insert(place);
    } else if (was.length >= 2) {
      if (is.length > 0) this.compare(undefined, is[0], type.element, place);
      this.#result.removed.insert(place);
    } else {
      if (was.length > 0) this.compare(was[0], undefined, type.element, place);
      this.#result.added.insert(place);
    }
  }
}

function index(list: unknown[], type: MergeType): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const item of list) {
    const element = itemElement(type, item);
    found.set(element, [...(found.get(element) ?? []), item]);
  }
  return found;
}

const own = (object: Obj, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);
const asMap = (value: unknown): Obj => (isObject(value) ? value : {});
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

/** Every field that an object holds, which is what an apply of it claims. */
export function fieldsOf(object: Obj, type: MergeType): FieldSet {
  const set = new FieldSet();
  collectMap(object, type, set);
  return set;
}

function collectMap(object: Obj, type: MergeType, set: FieldSet): void {
  for (const [key, value] of Object.entries(object)) {
    const known = type.field(key);
    const element = `f:${key}`;
    collect(value, known ?? type.element, set, element);
    const bare = value === null || (isObject(value) && Object.keys(value).length === 0);
    if (bare || !known) set.members.add(element);
  }
}

function collect(value: unknown, type: MergeType, set: FieldSet, element: string): void {
  const shape = shapeOf(type, value);
  if (shape === 'leaf') {
    // A null where a granular map or list belongs claims nothing below it; the caller claims the place itself.
    if (value !== null || type.atomic || type.shape === 'untyped') set.members.add(element);
  } else if (shape === 'map') {
    if (Object.keys(value as Obj).length > 0) collectMap(value as Obj, type, set.child(element));
  } else collectList(value as unknown[], type, set.child(element));
}

function collectList(list: unknown[], type: MergeType, set: FieldSet): void {
  const items = index(list, type);
  for (const [element, same] of items) {
    if (same.length === 1) collect(same[0], type.element, set, element);
    set.members.add(element);
  }
}
