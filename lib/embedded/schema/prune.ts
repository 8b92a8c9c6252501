import type { Schema } from '../api/resource.ts';
import { isObject, type Obj } from '../json/json.ts';

/** Removes in place what a schema does not know and returns the paths of what went, as Kubernetes prints them. */
export function prune(object: Obj, schema: Schema): string[] {
  const unknown: string[] = [];
  pruneMap(object, schema, '', unknown);
  return unknown;
}

function pruneValue(value: unknown, schema: Schema, path: string, unknown: string[]): void {
  if (Array.isArray(value)) {
    if (!schema.items) return;
    const { items } = schema;
    value.forEach((item, i) => pruneValue(item, items, `${path}[${i}]`, unknown));
  } else if (isObject(value)) pruneMap(value, schema, path, unknown);
}

function pruneMap(object: Obj, schema: Schema, path: string, unknown: string[]): void {
  const keepUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true || isAnything(schema);
  for (const key of Object.keys(object)) {
    const place = path ? `${path}.${key}` : key;
    const known = childSchema(schema, key);
    if (known) pruneValue(object[key], known, place, unknown);
    else if (!keepUnknown && !(schema['x-kubernetes-embedded-resource'] && isTypeMeta(key))) {
      delete object[key];
      unknown.push(place);
    }
  }
}

const isTypeMeta = (key: string): boolean => key === 'apiVersion' || key === 'kind' || key === 'metadata';

// A schema without a type says nothing about the value (int-or-string, for example).
const isAnything = (schema: Schema): boolean =>
  schema.additionalProperties === true ||
  (schema.type === undefined && !schema.properties && !schema.additionalProperties);

/** The schema of one entry of an object, where there is one. */
export function childSchema(schema: Schema, key: string): Schema | undefined {
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}
