import type { Schema } from '../api/resource.ts';
import { clone, isObject, put, type Obj } from '../json/json.ts';
import { childSchema } from './prune.ts';

/** Fills in defaults, in place. Nulls where none are allowed make room for the default, or go. */
export function applyDefaults(object: Obj, schema: Schema): void {
  defaultMap(object, schema);
}

function defaultValue(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    if (!schema.items) return;
    for (const item of value) defaultValue(item, schema.items);
  } else if (isObject(value)) defaultMap(value, schema);
}

function defaultMap(object: Obj, schema: Schema): void {
  dropNulls(object, schema);
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    if (property.default !== undefined && !Object.hasOwn(object, key)) put(object, key, clone(property.default));
  }
  for (const key of Object.keys(object)) {
    const known = childSchema(schema, key);
    if (known) defaultValue(object[key], known);
  }
}

function dropNulls(object: Obj, schema: Schema): void {
  for (const key of Object.keys(object)) {
    if (object[key] !== null) continue;
    const known = childSchema(schema, key);
    if (known && !known.nullable && (known.type !== undefined || known['x-kubernetes-int-or-string']))
      delete object[key];
  }
}
