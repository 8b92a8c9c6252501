import { isRawNumber, jsonEqual } from '../../kube/json.ts';
import type { Json, KubeObject } from '../../model/api.ts';
import type { InstanceApi } from './which-api.ts';

type JsonMap = Readonly<Record<string, Json | undefined>>;

const isMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);

/** The schema of one member: its own, or that of additional ones, or none where unknown ones are kept as they are. */
function memberSchema(schema: JsonMap, name: string): Json | undefined {
  const { properties, additionalProperties } = schema;
  if (isMap(properties) && Object.hasOwn(properties, name)) return properties[name];
  if (isMap(additionalProperties)) return additionalProperties;
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true || additionalProperties === true;
  return keepsUnknown ? {} : undefined;
}

const keepsEverything = (schema: JsonMap): boolean =>
  Object.keys(schema).length === 0 || schema['x-kubernetes-embedded-resource'] === true;

/**
 * A value as a server with this structural schema stores it: members that the schema does not know are dropped. Without
 * this, a status with such a member would differ from what the consumer holds for ever, and be written every time.
 */
export function prune(value: Json, schema: Json | undefined): Json {
  if (!isMap(schema) || keepsEverything(schema)) return value;
  if (Array.isArray(value)) return value.map((item: Json) => prune(item, schema['items']));
  if (!isMap(value)) return value;
  const kept = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
    const known = memberSchema(schema, name);
    return member === undefined || known === undefined ? [] : [[name, prune(member, known)]];
  });
  return Object.fromEntries(kept);
}

/** True when the API has a status at all; a server drops what its schema does not know. */
const hasStatus = ({ schema }: InstanceApi): boolean =>
  keepsEverything(schema) || memberSchema(schema, 'status') !== undefined;

/**
 * The status that the consumer object should get, whole, or undefined when there is nothing to write: the copy has none
 * (a status is never cleared), or the consumer holds it already.
 */
export function statusToCopy(api: InstanceApi, source: KubeObject, copy: KubeObject): Json | undefined {
  const { status } = copy;
  if (status === undefined || jsonEqual(status, source.status) || !hasStatus(api)) return undefined;
  const stored = prune(status, memberSchema(api.schema, 'status') ?? {});
  return jsonEqual(stored, source.status) ? undefined : status;
}
