import type { KubeObject } from '../api/object.ts';
import { invalidValue, type Cause } from '../api/status.ts';
import type { Obj } from '../json/json.ts';
import { checkRules, hasRules } from '../schema/rules.ts';
import { validate } from '../schema/validate.ts';
import type { Call } from './world.ts';

/** Everything wrong with an object beside its metadata. */
export function validateObject(call: Call, object: KubeObject, old?: KubeObject): Cause[] {
  const { resource, version } = call;
  const causes: Cause[] = [];
  if (resource.custom) {
    const { metadata: _metadata, ...rest } = object;
    causes.push(...judge(rest, bodySchema(version.schema), old));
    if (causes.length === 0) causes.push(...checkRules(object, version.schema, old));
    else if (hasRules(version.schema)) causes.push(UNCHECKED);
  }
  causes.push(...(resource.strategy.validate?.(object) ?? []));
  if (old) causes.push(...(resource.strategy.validateUpdate?.(object, old) ?? []));
  return causes;
}

const UNCHECKED = invalidValue(
  '<nil>',
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/** What is wrong now and was not before: an old fault does not stand in the way of other changes. */
function judge(object: Obj, schema: BodySchema, old: KubeObject | undefined): Cause[] {
  const causes = validate(object, schema);
  if (causes.length === 0 || !old) return causes;
  const { metadata: _metadata, ...before } = old;
  const known = new Set(validate(before, schema).map(({ field, message }) => `${field} ${message}`));
  return causes.filter(({ field, message }) => !known.has(`${field} ${message}`));
}

type BodySchema = Parameters<typeof validate>[1];
const bodies = new WeakMap<BodySchema, BodySchema>();

// Metadata has its own validation.
function bodySchema(schema: BodySchema): BodySchema {
  let body = bodies.get(schema);
  if (!body) {
    const { metadata: _metadata, ...properties } = schema.properties ?? {};
    const required = schema.required?.filter((name) => name !== 'metadata');
    bodies.set(schema, (body = { ...schema, properties, ...(required && { required }) }));
  }
  return body;
}
