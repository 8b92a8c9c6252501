import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Schema } from '../api/resource.ts';
import { duplicate, invalidValue, required, unsupported, type Cause } from '../api/status.ts';
import { isLongInteger, isObject, type Obj } from '../json/json.ts';
import { FORMATS } from './formats.ts';

const ajv = new Ajv({
  allErrors: true,
  strict: false,
  validateFormats: true,
  verbose: true,
  formats: FORMATS,
  logger: false,
});
const compiled = new WeakMap<Schema, ValidateFunction>();

/** Everything that an object's values break in its schema. */
export function validate(object: Obj, schema: Schema): Cause[] {
  let check = compiled.get(schema);
  if (!check) compiled.set(schema, (check = ajv.compile(valueSchema(schema) as Obj)));
  const causes: Cause[] = [];
  if (!check(plain(object))) for (const error of check.errors ?? []) causes.push(...causeOf(error));
  return [...dedupe(causes), ...duplicates(object, schema, '')];
}

/** Ajv counts in doubles; digits do not matter for what schemas say about numbers. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (isLongInteger(value)) return Number(value.rawJSON);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

const VALUE_KEYWORDS = [
  'type', 'format', 'nullable', 'enum', 'required', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems',
  'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'multipleOf',
] as const; // prettier-ignore

/** A JSON schema with what Ajv should check and nothing else. */
function valueSchema(schema: Schema): unknown {
  const result: Obj = {};
  for (const keyword of VALUE_KEYWORDS) if (schema[keyword] !== undefined) result[keyword] = schema[keyword];
  exclusive(result, schema, 'Minimum');
  exclusive(result, schema, 'Maximum');
  if (schema['x-kubernetes-int-or-string']) result['type'] = ['integer', 'string'];
  if (schema.nullable && result['enum']) result['enum'] = [...(result['enum'] as unknown[]), null];
  if (schema.nullable && result['type'] === undefined) delete result['nullable'];
  if (schema.properties) result['properties'] = mapValues(schema.properties);
  if (typeof schema.additionalProperties === 'object')
    result['additionalProperties'] = valueSchema(schema.additionalProperties);
  if (schema.items) result['items'] = valueSchema(schema.items);
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const parts = schema[keyword];
    if (Array.isArray(parts) && !schema['x-kubernetes-int-or-string'])
      result[keyword] = parts.map((part) => valueSchema(part as Schema));
  }
  if (isObject(schema['not'])) result['not'] = valueSchema(schema['not']);
  return result;
}

function exclusive(result: Obj, schema: Schema, which: 'Minimum' | 'Maximum'): void {
  const limit = which.toLowerCase();
  if (schema[`exclusive${which}`] !== true || result[limit] === undefined) return;
  result[`exclusive${which}`] = result[limit];
  delete result[limit];
}

const mapValues = (properties: Record<string, Schema>): Obj =>
  Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, valueSchema(schema)]));

const quoted = (path: string): string => path;

/** `/spec/list/0/name` as Kubernetes writes it: `spec.list[0].name`. */
function fieldPath(pointer: string): string {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return parts.reduce(
    (path, part) => (/^\d+$/.test(part) && path ? `${path}[${part}]` : path ? `${path}.${part}` : part),
    '',
  );
}

function causeOf(error: ErrorObject): Cause[] {
  const path = fieldPath(error.instancePath);
  const params = error.params as Obj;
  const bad = (text: string, value: unknown = error.data): Cause[] => [invalidValue(path || '<nil>', value, text)];
  const body = `${quoted(path)} in body`;
  switch (error.keyword) {
    case 'type':
      return bad(
        `${body} must be of type ${[params['type']].flat().join(',')}: ${JSON.stringify(typeName(error.data))}`,
        typeName(error.data),
      );
    case 'required':
      return [required(path ? `${path}.${String(params['missingProperty'])}` : String(params['missingProperty']), '')];
    case 'enum':
      return [unsupported(path, error.data, error.schema as unknown[])];
    case 'pattern':
      return bad(`${body} should match '${String(params['pattern'])}'`);
    case 'format':
      return bad(`${body} must be of type ${String(params['format'])}: ${JSON.stringify(error.data)}`);
    default:
      return limitCause(error, path, bad);
  }
}

function limitCause(error: ErrorObject, path: string, bad: (text: string, value?: unknown) => Cause[]): Cause[] {
  const limit = String((error.params as Obj)['limit']);
  const body = `${path} in body`;
  const long = (what: string, unit: string): Cause[] => [
    {
      reason: what === 'Too long' ? 'FieldValueTooLong' : 'FieldValueTooMany',
      message: `${what}: ${unit}`,
      field: path,
    },
  ];
  switch (error.keyword) {
    case 'minimum':
      return bad(`${body} should be greater than or equal to ${limit}`);
    case 'maximum':
      return bad(`${body} should be less than or equal to ${limit}`);
    case 'minLength':
      return bad(`${body} should be at least ${limit} chars long`);
    case 'maxLength':
      return long('Too long', `may not be more than ${limit} bytes`);
    case 'minItems':
      return bad(`${body} should have at least ${limit} items`, (error.data as unknown[]).length);
    case 'maxItems':
      return long('Too many', `${(error.data as unknown[]).length}: must have at most ${limit} items`);
    case 'oneOf':
      return [
        {
          reason: 'FieldValueInvalid',
          message: `Invalid value: ${JSON.stringify(error.data)}: "${path}" must validate one and only one schema (oneOf). Found none valid`,
          field: path || '<nil>',
        },
      ];
    case 'anyOf':
      return bad(`"${path}" must validate at least one schema (anyOf)`, error.data);
    case 'allOf':
    case 'if':
      return [];
    default:
      return bad(`${body} ${error.message ?? error.keyword}`);
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? (Number.isInteger(value) ? 'integer' : 'number') : typeof value;
}

// Branches of oneOf and anyOf report each on their own; one line a field is what people can read.
function dedupe(causes: Cause[]): Cause[] {
  return [...new Map(causes.map((cause) => [`${cause.field} ${cause.message}`, cause])).values()];
}

/** Items of set and map lists that are there twice. */
function duplicates(value: unknown, schema: Schema, path: string): Cause[] {
  if (Array.isArray(value)) return listDuplicates(value as unknown[], schema, path);
  if (!isObject(value)) return [];
  const causes: Cause[] = [];
  for (const [key, item] of Object.entries(value)) {
    const extra = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    const below = schema.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : extra;
    if (below) causes.push(...duplicates(item, below, path ? `${path}.${key}` : key));
  }
  return causes;
}

function listDuplicates(list: unknown[], schema: Schema, path: string): Cause[] {
  const causes: Cause[] = [];
  const kind = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const seen = new Set<string>();
  list.forEach((item, i) => {
    if (schema.items) causes.push(...duplicates(item, schema.items, `${path}[${i}]`));
    if (kind !== 'set' && kind !== 'map') return;
    const identity =
      kind === 'map' && isObject(item)
        ? Object.fromEntries(keys.filter((key) => key in item).map((key) => [key, item[key]]))
        : item;
    const text = JSON.stringify(identity);
    if (seen.has(text)) causes.push(duplicate(`${path}[${i}]`, identity));
    seen.add(text);
  });
  return causes;
}
