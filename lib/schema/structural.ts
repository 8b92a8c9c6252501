import { isRecord, type OpenApiDocument, type OpenApiSchema } from './openapi-document.ts';

/**
 * Turns any OpenAPI schema into a structural one, which is what a CustomResourceDefinition may hold
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema).
 * What cannot be said structurally becomes more permissive, never stricter: the provider validates again.
 */
export interface Structural {
  readonly schema: OpenApiSchema;
  /** Something was opened up (a cycle, an unresolvable `$ref`): rules that look inside would not compile. */
  readonly opened: boolean;
}

/** Deeper nesting than any real API has; beyond it a schema is opened up. */
const MAX_DEPTH = 64;
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
const INT_OR_STRING = 'x-kubernetes-int-or-string';
const EMBEDDED = 'x-kubernetes-embedded-resource';

const anything: OpenApiSchema = { [PRESERVE]: true };
const anyObject: OpenApiSchema = { type: 'object', [PRESERVE]: true };

/** Members that a structural schema takes as they are. */
const PLAIN = [
  'description',
  'title',
  'format',
  'default',
  'nullable',
  'enum',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'multipleOf',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'maxProperties',
  'minProperties',
] as const;

/** Value validations: the only members that may stand inside allOf, anyOf, oneOf and not. */
const VALIDATIONS: ReadonlySet<string> = new Set([
  ...PLAIN.filter((member) => !['description', 'title', 'default', 'nullable'].includes(member)),
  'required',
  'properties',
  'items',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
]);

interface Context {
  readonly document: OpenApiDocument;
  /** `$ref`s that are being resolved on this path: meeting one again is a cycle. */
  readonly path: readonly string[];
  readonly depth: number;
}

/** Normalizes a schema of `document`. Total: whatever comes in, something that a CRD may hold comes out. */
export function toStructural(schema: unknown, document: OpenApiDocument): Structural {
  return normalize(schema, { document, path: [], depth: 0 });
}

function normalize(schema: unknown, context: Context): Structural {
  if (!isRecord(schema) || context.depth > MAX_DEPTH) return { schema: anything, opened: true };
  const reference = referenceOf(schema);
  if (reference !== undefined) return resolve(reference, schema, context);
  if (isIntOrString(schema))
    return { schema: { ...plainMembers(schema, ['description']), [INT_OR_STRING]: true }, opened: false };
  switch (schema['type']) {
    case 'object':
      return objectSchema(schema, context);
    case 'array':
      return arraySchema(schema, context);
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return {
        schema: { type: schema['type'], ...plainMembers(schema), ...junctors(schema), ...rules(schema, false) },
        opened: false,
      };
    default:
      return isRecord(schema['properties'])
        ? objectSchema(schema, context)
        : { schema: { ...plainMembers(schema, ['description', 'nullable']), ...anything }, opened: false };
  }
}

/** `$ref` itself, or the only member of an `allOf` (how version 3 puts a description or a default beside a reference). */
function referenceOf(schema: OpenApiSchema): string | undefined {
  if (typeof schema['$ref'] === 'string') return schema['$ref'];
  const all = schema['allOf'];
  if (!Array.isArray(all) || all.length !== 1 || schema['type'] !== undefined) return undefined;
  const [only] = all as unknown[];
  return isRecord(only) && typeof only['$ref'] === 'string' ? only['$ref'] : undefined;
}

function resolve(reference: string, beside: OpenApiSchema, context: Context): Structural {
  const target = context.document.byRef.get(reference);
  const description = plainMembers(beside, ['description', 'nullable']);
  if (target === undefined || context.path.includes(reference))
    return { schema: { ...description, ...anyObject }, opened: true };
  const resolved = normalize(target, { ...context, path: [...context.path, reference], depth: context.depth + 1 });
  return { schema: { ...resolved.schema, ...description }, opened: resolved.opened };
}

const typesOf = (alternatives: unknown): string =>
  Array.isArray(alternatives)
    ? alternatives
        .map((alternative: unknown) => (isRecord(alternative) ? String(alternative['type']) : ''))
        .toSorted((a, b) => a.localeCompare(b))
        .join()
    : '';

/** The forms in which documents write a value that is an integer or a string. */
function isIntOrString(schema: OpenApiSchema): boolean {
  if (schema[INT_OR_STRING] === true || schema['format'] === 'int-or-string') return true;
  return (
    schema['type'] === undefined && [schema['anyOf'], schema['oneOf']].some((any) => typesOf(any) === 'integer,string')
  );
}

function objectSchema(schema: OpenApiSchema, context: Context): Structural {
  const inner = { ...context, depth: context.depth + 1 };
  const own = schema[EMBEDDED] === true ? withoutMetadata(schema) : schema;
  const fields = properties(own, inner);
  const values = isRecord(own['properties']) ? undefined : mapValues(own, inner);
  const opened = fields.opened || (values?.opened ?? false);
  const bare = fields.schema['properties'] === undefined && values === undefined;
  const preserve = own[PRESERVE] === true || own['additionalProperties'] === true || (bare && own[EMBEDDED] === true);
  return {
    schema: {
      type: 'object',
      ...plainMembers(own),
      ...fields.schema,
      ...(values === undefined ? {} : { additionalProperties: values.schema }),
      ...(preserve && values === undefined ? { [PRESERVE]: true } : {}),
      ...(own[EMBEDDED] === true ? { [EMBEDDED]: true } : {}),
      ...oneOfWords(own, 'x-kubernetes-map-type', ['atomic', 'granular']),
      ...junctors(own),
      ...rules(own, opened),
    },
    opened,
  };
}

/** An embedded resource may say nothing of its metadata but name rules: the API server validates it by itself. */
function withoutMetadata(schema: OpenApiSchema): OpenApiSchema {
  if (!isRecord(schema['properties'])) return schema;
  const { metadata: _metadata, ...properties } = schema['properties'];
  return { ...schema, properties };
}

function properties(schema: OpenApiSchema, context: Context): Structural {
  if (!isRecord(schema['properties'])) return { schema: requiredOf(schema, undefined), opened: false };
  const normalized = Object.entries(schema['properties']).map(
    ([name, property]) => [name, normalize(property, context)] as const,
  );
  const fields = Object.fromEntries(normalized.map(([name, property]) => [name, property.schema]));
  return {
    schema: { properties: fields, ...requiredOf(schema, fields) },
    opened: normalized.some(([, { opened }]) => opened),
  };
}

function requiredOf(schema: OpenApiSchema, fields: OpenApiSchema | undefined): OpenApiSchema {
  const { required } = schema;
  if (!Array.isArray(required)) return {};
  const known = required.filter(
    (name): name is string => typeof name === 'string' && (fields === undefined || name in fields),
  );
  return known.length === 0 ? {} : { required: known };
}

function mapValues(schema: OpenApiSchema, context: Context): Structural | undefined {
  return isRecord(schema['additionalProperties']) ? normalize(schema['additionalProperties'], context) : undefined;
}

function arraySchema(schema: OpenApiSchema, context: Context): Structural {
  const items = normalize(schema['items'], { ...context, depth: context.depth + 1 });
  return {
    schema: {
      type: 'array',
      ...plainMembers(schema),
      items: items.schema,
      ...listType(schema, items.schema),
      ...junctors(schema),
      ...rules(schema, items.opened),
    },
    opened: items.opened,
  };
}

/** Keeps a list type only where the API server would accept it: map keys required or defaulted, sets of scalars. */
function listType(schema: OpenApiSchema, items: OpenApiSchema): OpenApiSchema {
  const kind = schema['x-kubernetes-list-type'];
  if (kind === 'atomic') return { 'x-kubernetes-list-type': kind };
  const scalar = items['type'] !== undefined && items['type'] !== 'object' && items['type'] !== 'array';
  if (
    kind === 'set' &&
    (scalar || items['x-kubernetes-map-type'] === 'atomic' || items['x-kubernetes-list-type'] === 'atomic')
  )
    return { 'x-kubernetes-list-type': kind };
  const keys = schema['x-kubernetes-list-map-keys'];
  if (kind !== 'map' || !Array.isArray(keys) || !isRecord(items['properties'])) return {};
  const fields = items['properties'];
  const required = Array.isArray(items['required']) ? items['required'] : [];
  const usable = keys.every((key) => {
    const field: unknown = fields[String(key)];
    return (
      isRecord(field) &&
      field['type'] !== 'object' &&
      field['type'] !== 'array' &&
      (required.includes(key) || field['default'] !== undefined)
    );
  });
  return usable ? { 'x-kubernetes-list-type': kind, 'x-kubernetes-list-map-keys': keys } : {};
}

function plainMembers(schema: OpenApiSchema, members: readonly string[] = PLAIN): OpenApiSchema {
  return Object.fromEntries(
    members.filter((member) => schema[member] !== undefined).map((member) => [member, schema[member]]),
  );
}

function oneOfWords(schema: OpenApiSchema, member: string, words: readonly string[]): OpenApiSchema {
  const value = schema[member];
  return typeof value === 'string' && words.includes(value) ? { [member]: value } : {};
}

/** Logical junctors, where they hold nothing but value validations. */
function junctors(schema: OpenApiSchema): OpenApiSchema {
  const kept = (['allOf', 'anyOf', 'oneOf', 'not'] as const).filter((member) => {
    const value: unknown = schema[member];
    const parts: readonly unknown[] = Array.isArray(value) ? value : [value];
    return value !== undefined && parts.every(isPureValidation);
  });
  return plainMembers(schema, kept);
}

function isPureValidation(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  return Object.entries(schema).every(([member, value]) => {
    if (!VALIDATIONS.has(member)) return false;
    if (member === 'properties') return isRecord(value) && Object.values(value).every(isPureValidation);
    if (member === 'allOf' || member === 'anyOf' || member === 'oneOf')
      return Array.isArray(value) && value.every(isPureValidation);
    return member === 'not' || member === 'items' ? isPureValidation(value) : true;
  });
}

/** CEL rules, unless something that they may look into was opened up. */
function rules(schema: OpenApiSchema, opened: boolean): OpenApiSchema {
  const present = schema['x-kubernetes-validations'];
  return Array.isArray(present) && !opened ? { 'x-kubernetes-validations': present } : {};
}
