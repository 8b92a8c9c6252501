import { isObject, put, type Obj } from '../json/json.ts';

/**
 * A set of field paths, as in structured-merge-diff. Path elements are kept in their serialized form: `f:name` for a
 * field, `k:{…}` for an item of a keyed list, `v:…` for an item of a set.
 */
export class FieldSet {
  readonly members = new Set<string>();
  readonly children = new Map<string, FieldSet>();

  get empty(): boolean {
    if (this.members.size > 0) return false;
    for (const child of this.children.values()) if (!child.empty) return false;
    return true;
  }

  insert(path: readonly string[]): void {
    const last = path.at(-1);
    if (last === undefined) return;
    const parent = path.slice(0, -1).reduce<FieldSet>((set, element) => set.child(element), this);
    parent.members.add(last);
  }

  /** The subset below an element, made when it is missing. */
  child(element: string): FieldSet {
    let child = this.children.get(element);
    if (!child) this.children.set(element, (child = new FieldSet()));
    return child;
  }

  has(path: readonly string[]): boolean {
    const parent = path.slice(0, -1).reduce<FieldSet | undefined>((set, element) => set?.children.get(element), this);
    return parent?.members.has(path.at(-1) ?? '') ?? false;
  }

  union(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const set of [this, other]) {
      for (const member of set.members) result.members.add(member);
      for (const [element, child] of set.children) {
        const known = result.children.get(element);
        result.children.set(element, known ? known.union(child) : child);
      }
    }
    return result;
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const member of this.members) if (other.members.has(member)) result.members.add(member);
    for (const [element, child] of this.children) {
      const theirs = other.children.get(element);
      if (theirs) result.#adopt(element, child.intersection(theirs));
    }
    return result;
  }

  difference(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const member of this.members) if (!other.members.has(member)) result.members.add(member);
    for (const [element, child] of this.children) {
      const theirs = other.children.get(element);
      result.#adopt(element, theirs ? child.difference(theirs) : child);
    }
    return result;
  }

  /** The difference that also takes away everything below the other set's members. */
  recursiveDifference(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const member of this.members) if (!other.members.has(member)) result.members.add(member);
    for (const [element, child] of this.children) {
      if (other.members.has(element)) continue;
      const theirs = other.children.get(element);
      result.#adopt(element, theirs ? child.recursiveDifference(theirs) : child);
    }
    return result;
  }

  equals(other: FieldSet): boolean {
    return this.difference(other).empty && other.difference(this).empty;
  }

  /** Every member's path, in order. */
  paths(prefix: readonly string[] = []): string[][] {
    const result: string[][] = [];
    const elements = new Set([...this.members, ...this.children.keys()]);
    for (const element of [...elements].sort()) {
      if (this.members.has(element)) result.push([...prefix, element]);
      const child = this.children.get(element);
      if (child) result.push(...child.paths([...prefix, element]));
    }
    return result;
  }

  #adopt(element: string, child: FieldSet): void {
    if (!child.empty) this.children.set(element, child);
  }
}

const SELF = '.';

/** Reads `fieldsV1`. */
export function decodeFields(fields: unknown): FieldSet {
  const set = new FieldSet();
  if (!isObject(fields)) throw new Error('fieldsV1 is not an object');
  for (const [element, below] of Object.entries(fields)) {
    if (element === SELF) continue;
    if (!/^[fkvi]:/.test(element)) throw new Error(`unknown path element ${JSON.stringify(element)}`);
    const child = decodeFields(below);
    const leaf = isObject(below) && (SELF in below || Object.keys(below).length === 0);
    if (leaf) set.members.add(element);
    if (!child.empty) set.children.set(element, child);
  }
  return set;
}

/** Writes `fieldsV1`. */
export function encodeFields(set: FieldSet): Obj {
  const result: Obj = {};
  const elements = new Set([...set.members, ...set.children.keys()]);
  for (const element of [...elements].sort()) {
    const child = set.children.get(element);
    if (!child || child.empty) {
      if (set.members.has(element)) put(result, element, {});
      continue;
    }
    put(result, element, { ...(set.members.has(element) && { [SELF]: {} }), ...encodeFields(child) });
  }
  return result;
}

/** A path as messages show it: `.spec.ports[port=80].name`. */
export function showPath(path: readonly string[]): string {
  return path.map(showElement).join('');
}

function showElement(element: string): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('v:')) return `[=${text}]`;
  if (element.startsWith('i:')) return `[${text}]`;
  const keys = JSON.parse(text) as Record<string, unknown>;
  return `[${Object.entries(keys)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(',')}]`;
}
