import { isRawNumber, jsonEqual } from '../kube/json.ts';
import { isRecord, type OpenApiSchema } from './openapi-document.ts';

/**
 * The plain members of a schema: which of them a CustomResourceDefinition takes as they stand, and whether a default fits
 * the schema that it is for. Documents come from strangers, so every value is looked at.
 */
export const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
export const INT_OR_STRING = 'x-kubernetes-int-or-string';
export const EMBEDDED = 'x-kubernetes-embedded-resource';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isNumber: Check = (value) => typeof value === 'number' || isRawNumber(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

/** Values are compared and printed by functions that recurse. */
const MAX_VALUE_DEPTH = 16;
const isShallow = (value: unknown, depth = 0): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (depth < MAX_VALUE_DEPTH && Object.values(value).every((one) => isShallow(one, depth + 1)));

/** Looks into nothing and says nothing about values. */
const ANNOTATIONS: Readonly<Record<string, Check>> = { description: isText, title: isText, nullable: isFlag };

/** Value validations: these may also stand inside allOf, anyOf, oneOf and not. */
const VALUE_CHECKS: Readonly<Record<string, Check>> = {
  format: isText,
  enum: (value) => Array.isArray(value) && value.length > 0 && value.every((one) => isShallow(one)),
  maximum: isNumber,
  exclusiveMaximum: isFlag,
  minimum: isNumber,
  exclusiveMinimum: isFlag,
  multipleOf: (value) => isNumber(value) && numeric(value) > 0,
  maxLength: isCount,
  minLength: isCount,
  pattern: (value) => typeof value === 'string' && asRegExp(value) !== undefined,
  maxItems: isCount,
  minItems: isCount,
  maxProperties: isCount,
  minProperties: isCount,
};
const CHECKS: Readonly<Record<string, Check>> = { ...ANNOTATIONS, ...VALUE_CHECKS };

export const valueMembers: readonly string[] = Object.keys(VALUE_CHECKS);
export const plainMembers: readonly string[] = Object.keys(CHECKS);

/** Those members that are there and well formed. A default is no plain member: {@link fits}. */
export function pickPlain(schema: OpenApiSchema, members: readonly string[] = plainMembers): OpenApiSchema {
  return Object.fromEntries(
    members.filter((member) => CHECKS[member]?.(schema[member]) === true).map((member) => [member, schema[member]]),
  );
}

/** Printed as text, a raw number gives its digits. */
const numeric = (value: unknown): number => Number(isRawNumber(value) ? JSON.stringify(value) : value);

/** API servers compile patterns with RE2: no look-around, no back references, at most 1,000 repetitions. */
const NOT_IN_RE2 = /\(\?(?:[=!>]|<[=!])|\\[1-9k]/;
const MAX_REPETITIONS = 1_000;

/** The pattern as JavaScript's, or undefined where RE2 might refuse it. */
function asRegExp(pattern: string): RegExp | undefined {
  const counts = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].flatMap(([, from, to]) => [Number(from), Number(to)]);
  if (NOT_IN_RE2.test(pattern) || counts.some((count) => count > MAX_REPETITIONS)) return undefined;
  const ours = pattern
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\(\?[imsU]+\)/g, '')
    .replaceAll(/\(\?[imsU]+:/g, '(?:');
  try {
    return new RegExp(ours);
  } catch {
    return undefined;
  }
}

/** Formats that the API server does not check on strings. */
const UNCHECKED_FORMATS: ReadonlySet<unknown> = new Set([undefined, 'int32', 'int64', 'float', 'double', 'string']);
/** Keywords under which a default would have to be evaluated properly: it is dropped instead. */
const JUNCTORS = ['allOf', 'anyOf', 'oneOf', 'not', 'x-kubernetes-validations'];

/** Whether the API server would take a value as the default of a structural schema. Errs on the side of no. */
export function fits(value: unknown, schema: OpenApiSchema): boolean {
  if (value === null || value === undefined || JUNCTORS.some((junctor) => schema[junctor] !== undefined)) return false;
  if (Array.isArray(schema['enum']) && !schema['enum'].some((one) => jsonEqual(one, value))) return false;
  if (schema[INT_OR_STRING] === true) return typeof value === 'string' || Number.isSafeInteger(value);
  switch (schema['type']) {
    case 'string':
      return typeof value === 'string' && stringFits(value, schema);
    case 'integer':
      return (
        (isRawNumber(value) ? /^-?\d+$/.test(JSON.stringify(value)) : Number.isSafeInteger(value)) &&
        inRange(value, schema)
      );
    case 'number':
      return isNumber(value) && inRange(value, schema);
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return Array.isArray(value) && listFits(value, schema);
    case 'object':
      return isRecord(value) && !isRawNumber(value) && objectFits(value, schema);
    default:
      return false;
  }
}

const within = (count: number, min: unknown, max: unknown): boolean =>
  count >= (min === undefined ? 0 : Number(min)) && count <= (max === undefined ? Infinity : Number(max));

function stringFits(value: string, schema: OpenApiSchema): boolean {
  const { pattern } = schema;
  // A pattern of strangers is not run here: it might take for ever.
  return (
    pattern === undefined &&
    UNCHECKED_FORMATS.has(schema['format']) &&
    within(Array.from(value).length, schema['minLength'], schema['maxLength'])
  );
}

function inRange(value: unknown, schema: OpenApiSchema): boolean {
  const number = numeric(value);
  const { minimum, maximum, multipleOf } = schema;
  if (multipleOf !== undefined || schema['exclusiveMinimum'] === true || schema['exclusiveMaximum'] === true)
    return false;
  return (minimum === undefined || number >= numeric(minimum)) && (maximum === undefined || number <= numeric(maximum));
}

function listFits(value: readonly unknown[], schema: OpenApiSchema): boolean {
  const { items } = schema;
  const kind = schema['x-kubernetes-list-type'];
  const unique = kind === 'set' || kind === 'map';
  if (!within(value.length, schema['minItems'], schema['maxItems']) || (unique && value.length > 1)) return false;
  return isRecord(items) && value.every((item) => fits(item, items));
}

function objectFits(value: OpenApiSchema, schema: OpenApiSchema): boolean {
  const { required, additionalProperties } = schema;
  const names = Object.keys(value);
  if (!within(names.length, schema['minProperties'], schema['maxProperties'])) return false;
  if (Array.isArray(required) && !required.every((name) => Object.hasOwn(value, String(name)))) return false;
  const fields = isRecord(schema['properties']) ? schema['properties'] : {};
  return names.every((name) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : additionalProperties;
    return isRecord(field) ? fits(value[name], field) : schema[PRESERVE] === true;
  });
}
