import type { Schema } from '../api/resource.ts';
import { isLongInteger, isObject, type Obj } from '../json/json.ts';
import { childSchema } from './prune.ts';

/**
 * Finds the first value that Go could not decode: anywhere in a built-in kind, and in the metadata of a custom one
 * (whose other fields are judged by validation).
 */
export function typeProblem(object: Obj, schema: Schema, custom: boolean): string | undefined {
  if (!custom) return mapProblem(object, schema, String(object['kind']));
  const meta = schema.properties?.['metadata'];
  const metadata = object['metadata'];
  if (metadata === undefined || metadata === null || !meta) return undefined;
  return valueProblem(metadata, meta, 'ObjectMeta');
}

function mapProblem(object: Obj, schema: Schema, path: string): string | undefined {
  for (const [key, value] of Object.entries(object)) {
    const known = childSchema(schema, key);
    const isField = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
    const problem = known && valueProblem(value, known, isField ? `${path}.${key}` : path);
    if (problem) return problem;
  }
  return undefined;
}

function valueProblem(value: unknown, schema: Schema, path: string): string | undefined {
  if (value === null || schema.type === undefined) return undefined;
  if (!fits(value, schema))
    return `json: cannot unmarshal ${goName(value)} into Go struct field ${path} of type ${goType(schema)}`;
  if (isObject(value)) return mapProblem(value, schema, path);
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = schema.items && valueProblem(item, schema.items, path);
      if (problem) return problem;
    }
  }
  return typeof value === 'string' ? formatProblem(value, schema) : undefined;
}

function fits(value: unknown, schema: Schema): boolean {
  switch (schema.type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return isLongInteger(value) || Number.isInteger(value);
    case 'number':
      return isLongInteger(value) || typeof value === 'number';
    default:
      return typeof value === schema.type;
  }
}

const MICRO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

function formatProblem(text: string, schema: Schema): string | undefined {
  const cannotParse = (layout: string): string =>
    `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(text)} as ${JSON.stringify('2006')}`;
  if (schema.format === 'micro-time' && !MICRO_TIME.test(text)) return cannotParse('2006-01-02T15:04:05.000000Z07:00');
  if (schema.format === 'date-time' && !TIME.test(text)) return cannotParse('2006-01-02T15:04:05Z07:00');
  if (schema.format === 'byte') {
    const bad = text.replace(/=+$/, '').search(/[^A-Za-z0-9+/]/);
    if (bad >= 0 || text.length % 4 !== 0)
      return `illegal base64 data at input byte ${bad >= 0 ? bad : text.length - (text.length % 4)}`;
  }
  return undefined;
}

function goName(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return isLongInteger(value) ? 'number' : typeof value;
}

function goType(schema: Schema): string {
  switch (schema.type) {
    case 'object':
      return typeof schema.additionalProperties === 'object'
        ? `map[string]${goType(schema.additionalProperties)}`
        : 'struct';
    case 'array':
      return `[]${goType(schema.items ?? {})}`;
    case 'integer':
      return schema.format ?? 'int64';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    default:
      return schema.format === 'byte' ? '[]uint8' : 'string';
  }
}
