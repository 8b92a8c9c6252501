import type { Schema } from '../api/resource.ts';
import { isObject, type Obj } from '../json/json.ts';

/** How values at one place are merged: structured-merge-diff's reading of a schema. */
export interface MergeType {
  readonly shape: 'map' | 'list' | 'scalar' | 'untyped';
  readonly atomic: boolean;
  /** Keys of a keyed list; none means a set. */
  readonly keys: readonly string[];
  field(name: string): MergeType | undefined;
  /** Of map values that are no known field, and of list items. */
  readonly element: MergeType;
  readonly fallback: unknown;
  /** Whether a map takes keys that are no known field. */
  readonly open: boolean;
  /** What a scalar has to be, where the schema tells. */
  readonly scalar?: string;
}

const NO_KEYS: readonly string[] = [];

/** Where no schema tells: maps are granular, lists atomic. */
export const UNTYPED: MergeType = {
  shape: 'untyped',
  atomic: false,
  keys: NO_KEYS,
  field: () => undefined,
  get element() {
    return UNTYPED;
  },
  fallback: undefined,
  open: true,
};

const cache = new WeakMap<Schema, MergeType>();

/** Reads a structural schema; results are cached by schema. */
export function mergeType(schema: Schema | undefined): MergeType {
  if (!schema) return UNTYPED;
  let found = cache.get(schema);
  if (!found) cache.set(schema, (found = read(schema)));
  return found;
}

function read(schema: Schema): MergeType {
  if (schema['x-kubernetes-int-or-string']) return scalar(schema);
  if (schema.type === 'array') return list(schema);
  if (schema.type === 'object' || schema.properties) return map(schema);
  return schema.type === undefined ? UNTYPED : scalar(schema);
}

function scalar(schema: Schema): MergeType {
  const kind = schema.type === 'integer' || schema.type === 'number' ? 'numeric' : schema.type;
  return {
    shape: 'scalar',
    atomic: true,
    keys: NO_KEYS,
    field: () => undefined,
    element: UNTYPED,
    fallback: schema.default,
    open: false,
    ...(kind !== undefined && { scalar: kind }),
  };
}

function list(schema: Schema): MergeType {
  const kind = schema['x-kubernetes-list-type'] ?? 'atomic';
  return {
    shape: 'list',
    atomic: kind === 'atomic',
    keys: kind === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? NO_KEYS) : NO_KEYS,
    field: () => undefined,
    get element() {
      return mergeType(schema.items);
    },
    fallback: schema.default,
    open: false,
  };
}

function map(schema: Schema): MergeType {
  const extra = schema.additionalProperties;
  return {
    shape: 'map',
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    keys: NO_KEYS,
    field(name) {
      const property =
        schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
      return property && mergeType(property);
    },
    get element() {
      return typeof extra === 'object' ? mergeType(extra) : UNTYPED;
    },
    fallback: schema.default,
    open: extra !== undefined || schema['x-kubernetes-preserve-unknown-fields'] === true,
  };
}

/** How a value is walked: by its type when they agree, by its own shape otherwise. */
export function shapeOf(type: MergeType, value: unknown): 'map' | 'list' | 'leaf' {
  if (type.shape === 'scalar') return 'leaf';
  if (type.shape === 'map') return isObject(value) && !type.atomic ? 'map' : 'leaf';
  if (type.shape === 'list') return Array.isArray(value) && !type.atomic ? 'list' : 'leaf';
  return isObject(value) ? 'map' : 'leaf';
}

/** The type of one entry of a map. */
export const fieldType = (type: MergeType, name: string): MergeType => type.field(name) ?? type.element;

/** Which item of a list this is, in serialized form. */
export function itemElement(type: MergeType, item: unknown): string {
  if (type.keys.length === 0) return `v:${JSON.stringify(item)}`;
  const entry = isObject(item) ? item : {};
  const keys: Obj = {};
  for (const key of [...type.keys].sort()) {
    const value = entry[key] ?? type.element.field(key)?.fallback;
    if (value !== undefined) keys[key] = value;
  }
  return `k:${JSON.stringify(keys)}`;
}

/** Why a list cannot be merged item by item, or undefined. */
export function itemProblem(type: MergeType, item: unknown): string | undefined {
  if (type.keys.length === 0) {
    if (isObject(item)) return "associative list without keys has an element that's a map type";
    if (Array.isArray(item)) return 'not supported: associative list with lists as elements';
    return item === null ? "associative list without keys has an element that's an explicit null" : undefined;
  }
  if (item === null) return 'associative list with keys may not have a null element';
  if (!isObject(item)) return 'associative list with keys may not have non-map elements';
  if (itemElement(type, item) !== 'k:{}') return undefined;
  const keys = type.keys.map((key) => JSON.stringify(key)).join(' ');
  return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`;
}
