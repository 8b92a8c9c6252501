import { isMap, isRawNumber, jsonEqual } from '../kube/json.ts';
import type { OpenApiSchema } from './openapi-document.ts';

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

/** An integer that a server printed as a float (1.20 does: `9.007e+15`), as long as nothing of it was lost. */
export function asInteger(value: unknown): unknown {
  const number = isRawNumber(value) ? numeric(value) : undefined;
  return number !== undefined && Number.isSafeInteger(number) ? number : value;
}

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

/** A pattern is run only where no value can keep it busy: a hostile one that is not costs its own API alone. */
const MAX_QUANTIFIERS = 3;
const MAX_MATCHED = 64;

function matches(text: string, pattern: unknown): boolean {
  const compiled = typeof pattern === 'string' ? asRegExp(pattern) : undefined;
  if (compiled === undefined) return true;
  const { source } = compiled;
  const quantifiers = source.match(/[*+?{]/g)?.length ?? 0;
  if (quantifiers > MAX_QUANTIFIERS || /\)[*+?{]/.test(source) || text.length > MAX_MATCHED) return true;
  return compiled.test(text);
}

/**
 * Whether the API server would take a value as the default of a structural schema. Formats, CEL rules and costly patterns
 * are taken to hold: a default that is lost makes rules fail that rely on it.
 */
export function fits(value: unknown, schema: OpenApiSchema): boolean {
  if (value === null || value === undefined || !holds(value, schema)) return false;
  if (schema[INT_OR_STRING] === true) return typeof value === 'string' || Number.isSafeInteger(value);
  switch (schema['type']) {
    case 'string':
      return typeof value === 'string';
    case 'integer':
      return isRawNumber(value) ? /^-?\d+$/.test(JSON.stringify(value)) : Number.isSafeInteger(value);
    case 'number':
      return isNumber(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return Array.isArray(value) && listFits(value, schema);
    case 'object':
      return isMap(value) && objectFits(value, schema);
    default:
      return false;
  }
}

/** The value validations of a schema or of a part of a junctor, for values of whatever type they are about. */
function holds(value: unknown, schema: OpenApiSchema): boolean {
  const { enum: among } = schema;
  if (Array.isArray(among) && !among.some((one) => jsonEqual(one, value))) return false;
  if (typeof value === 'string' && !stringHolds(value, schema)) return false;
  if (isNumber(value) && !inRange(value, schema)) return false;
  if (Array.isArray(value) && !within(value.length, schema['minItems'], schema['maxItems'])) return false;
  if (isMap(value) && !fieldsHold(value, schema)) return false;
  return junctorsHold(value, schema);
}

const partsOf = (schema: OpenApiSchema, junctor: string): readonly OpenApiSchema[] =>
  Array.isArray(schema[junctor]) ? (schema[junctor] as readonly unknown[]).filter(isMap) : [];

function junctorsHold(value: unknown, schema: OpenApiSchema): boolean {
  const passing = (junctor: string): number => partsOf(schema, junctor).filter((part) => partHolds(value, part)).length;
  const { not } = schema;
  return (
    passing('allOf') === partsOf(schema, 'allOf').length &&
    (schema['anyOf'] === undefined || passing('anyOf') > 0) &&
    (schema['oneOf'] === undefined || passing('oneOf') === 1) &&
    !(isMap(not) && partHolds(value, not))
  );
}

/** A part of a junctor looks into fields and items by itself; in a schema they are looked at one by one. */
function partHolds(value: unknown, part: OpenApiSchema): boolean {
  if (!holds(value, part)) return false;
  const { items, properties } = part;
  if (Array.isArray(value)) return !isMap(items) || value.every((item) => partHolds(item, items));
  if (!isMap(value) || !isMap(properties)) return true;
  return Object.entries(properties).every(
    ([name, field]) => !Object.hasOwn(value, name) || !isMap(field) || partHolds(value[name], field),
  );
}

const within = (count: number, min: unknown, max: unknown): boolean =>
  count >= (min === undefined ? 0 : Number(min)) && count <= (max === undefined ? Infinity : Number(max));

const stringHolds = (value: string, schema: OpenApiSchema): boolean =>
  matches(value, schema['pattern']) && within(Array.from(value).length, schema['minLength'], schema['maxLength']);

function inRange(value: unknown, schema: OpenApiSchema): boolean {
  const number = numeric(value);
  const { minimum = -Infinity, maximum = Infinity, multipleOf } = schema;
  if (multipleOf !== undefined && !Number.isInteger(number / numeric(multipleOf))) return false;
  if (schema['exclusiveMinimum'] === true && number <= numeric(minimum)) return false;
  if (schema['exclusiveMaximum'] === true && number >= numeric(maximum)) return false;
  return number >= numeric(minimum) && number <= numeric(maximum);
}

function fieldsHold(value: OpenApiSchema, schema: OpenApiSchema): boolean {
  const { required } = schema;
  if (!within(Object.keys(value).length, schema['minProperties'], schema['maxProperties'])) return false;
  return !Array.isArray(required) || required.every((name) => Object.hasOwn(value, String(name)));
}

function listFits(value: readonly unknown[], schema: OpenApiSchema): boolean {
  const { items } = schema;
  const kind = schema['x-kubernetes-list-type'];
  const unique = kind === 'set' || kind === 'map';
  // Whether several are different takes keys and defaults to tell.
  if (unique && value.length > 1 && !areDifferent(value)) return false;
  return isMap(items) && value.every((item) => fits(item, items));
}

const areDifferent = (value: readonly unknown[]): boolean =>
  value.every((item) => typeof item === 'string') && new Set(value).size === value.length;

function objectFits(value: OpenApiSchema, schema: OpenApiSchema): boolean {
  const fields = isMap(schema['properties']) ? schema['properties'] : {};
  return Object.keys(value).every((name) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : schema['additionalProperties'];
    if (!isMap(field)) return schema[PRESERVE] === true;
    return field[PRESERVE] === true && field['type'] === undefined ? true : fits(value[name], field);
  });
}
