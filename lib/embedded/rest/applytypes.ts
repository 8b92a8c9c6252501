import { StatusError } from '../api/status.ts';
import type { KubeObject } from '../api/object.ts';
import type { Schema } from '../api/resource.ts';
import { isObject, type Obj } from '../json/json.ts';
import { childSchema } from '../schema/prune.ts';
import type { Call } from './world.ts';

/** Refuses an applied configuration with fields that no schema declares: nobody could own them. */
export function fieldNotDeclared(applied: KubeObject, call: Call): StatusError | undefined {
  const path = undeclared(applied, call.version.schema, '');
  if (path === undefined) return undefined;
  const { namespace, name } = applied.metadata;
  const place = `${namespace ?? call.info.namespace}/${name ?? ''}; ${applied.apiVersion}, Kind=${applied.kind}`;
  return new StatusError(
    500,
    '',
    `failed to create typed patch object (${place}): ${path}: field not declared in schema`,
  );
}

function undeclared(value: unknown, schema: Schema, path: string): string | undefined {
  if (Array.isArray(value)) {
    if (!schema.items || (schema['x-kubernetes-list-type'] ?? 'atomic') === 'never') return undefined;
    for (const item of value) {
      const found = undeclared(item, schema.items, `${path}[]`);
      if (found) return found;
    }
    return undefined;
  }
  return isObject(value) ? undeclaredIn(value, schema, path) : undefined;
}

function undeclaredIn(object: Obj, schema: Schema, path: string): string | undefined {
  const open =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema.additionalProperties !== undefined ||
    schema.type === undefined;
  for (const [key, value] of Object.entries(object)) {
    const known = childSchema(schema, key);
    const place = `${path}.${key}`;
    if (
      !known &&
      !open &&
      !(schema['x-kubernetes-embedded-resource'] && ['apiVersion', 'kind', 'metadata'].includes(key))
    )
      return place;
    const found = known && undeclared(value, known, place);
    if (found) return found;
  }
  return undefined;
}
