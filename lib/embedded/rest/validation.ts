import type { KubeObject } from '../api/object.ts';
import type { Cause } from '../api/status.ts';
import { checkRules } from '../schema/rules.ts';
import { validate } from '../schema/validate.ts';
import type { Call } from './world.ts';

/** Everything wrong with an object beside its metadata. */
export function validateObject(call: Call, object: KubeObject, old?: KubeObject): Cause[] {
  const { resource, version } = call;
  const causes: Cause[] = [];
  if (resource.custom) {
    const { metadata: _metadata, ...rest } = object;
    causes.push(...validate(rest, bodySchema(version.schema)));
    if (causes.length === 0) causes.push(...checkRules(object, version.schema, old));
  }
  causes.push(...(resource.strategy.validate?.(object) ?? []));
  if (old) causes.push(...(resource.strategy.validateUpdate?.(object, old) ?? []));
  return causes;
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
