import { isMap } from '../kube/json.ts';
import type { OpenApiDocument, OpenApiSchema } from './openapi-document.ts';
import { junctors } from './structural-junctors.ts';
import { asInteger, EMBEDDED, fits, INT_OR_STRING, pickPlain, plainMembers, PRESERVE } from './structural-members.ts';

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

export interface StructuralOptions {
  /** Schemas that may still be written, over all calls that share it: a few `$ref`s can stand for billions. */
  readonly budget?: { left: number };
  /** False leaves descriptions out: most of a large schema. */
  readonly descriptions?: boolean;
}

/** Deeper nesting than any real API has; beyond it a schema is opened up. */
const MAX_DEPTH = 64;
/** Schemas in one CRD: several times the largest known one, and about what an API server takes. */
export const MAX_SCHEMAS = 30_000;

const anything: OpenApiSchema = { [PRESERVE]: true };
const anyObject: OpenApiSchema = { type: 'object', [PRESERVE]: true };

interface Context {
  readonly document: OpenApiDocument;
  /** `$ref`s that are being resolved on this path: meeting one again is a cycle. */
  readonly path: readonly string[];
  readonly depth: number;
  readonly budget: { left: number };
  readonly members: readonly string[];
  /** False inside a list whose kind was lost: rules about former values would have nothing to be compared with. */
  readonly rules: boolean;
}

/** Normalizes a schema of `document`. Total: whatever comes in, something that a CRD may hold comes out. */
export function toStructural(schema: unknown, document: OpenApiDocument, options: StructuralOptions = {}): Structural {
  const { budget = { left: MAX_SCHEMAS }, descriptions = true } = options;
  const members = descriptions ? plainMembers : plainMembers.filter((member) => member !== 'description');
  return normalize(schema, { document, path: [], depth: 0, budget, members, rules: true });
}

function normalize(schema: unknown, context: Context): Structural {
  context.budget.left -= 1;
  if (!isMap(schema) || context.depth > MAX_DEPTH || context.budget.left < 0) {
    return { schema: anything, opened: true };
  }
  const reference = referenceOf(schema);
  if (reference !== undefined) return resolve(reference, schema, context);
  if (isIntOrString(schema)) {
    const own = { ...plain(schema, context, ['description', 'nullable']), [INT_OR_STRING]: true };
    return { schema: withDefault(own, schema), opened: false };
  }
  const { type, nullable } = typeOf(schema);
  const own = nullable ? { ...schema, nullable } : schema;
  switch (type) {
    case 'object':
      return objectSchema(own, context);
    case 'array':
      return arraySchema(own, context);
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return finish({ type, ...plain(own, context) }, own, { context, opened: false });
    default:
      return isMap(schema['properties']) ? objectSchema(own, context) : untyped(own, context);
  }
}

/** Of no known type. Rules around it see nothing of it, unless it said so itself. */
const untyped = (schema: OpenApiSchema, context: Context): Structural => ({
  schema: { ...plain(schema, context, ['description', 'nullable']), ...anything },
  opened: schema[PRESERVE] !== true,
});

/** `type`, also in the form of OpenAPI 3.1: a list with `null` in it. */
function typeOf({ type }: OpenApiSchema): { readonly type: unknown; readonly nullable: boolean } {
  if (!Array.isArray(type)) return { type, nullable: false };
  const types = type.filter((one) => one !== 'null');
  return { type: types.length === 1 ? types[0] : undefined, nullable: types.length < type.length };
}

/** `$ref` itself, or the only member of an `allOf` (how version 3 puts a description or a default beside a reference). */
function referenceOf(schema: OpenApiSchema): string | undefined {
  if (typeof schema['$ref'] === 'string') return schema['$ref'];
  const all = schema['allOf'];
  if (!Array.isArray(all) || all.length !== 1 || schema['type'] !== undefined) return undefined;
  const [only] = all as unknown[];
  return isMap(only) && typeof only['$ref'] === 'string' ? only['$ref'] : undefined;
}

/** A default beside a reference is left out: documents of Go types give every struct one. */
function resolve(reference: string, beside: OpenApiSchema, context: Context): Structural {
  const target = context.document.byRef.get(reference);
  const own = plain(beside, context, ['description', 'nullable']);
  if (target === undefined || context.path.includes(reference))
    return { schema: { ...own, ...anyObject }, opened: true };
  const resolved = normalize(target, { ...context, path: [...context.path, reference], depth: context.depth + 1 });
  return { schema: { ...resolved.schema, ...own }, opened: resolved.opened };
}

const typesOf = (alternatives: unknown): string =>
  Array.isArray(alternatives)
    ? alternatives
        .map((alternative: unknown) =>
          isMap(alternative) && typeof alternative['type'] === 'string' ? alternative['type'] : '',
        )
        .sort()
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
  const embedded = schema[EMBEDDED] === true;
  const own = embedded ? withoutTypeMeta(schema) : schema;
  const fields = properties(own, inner);
  const hasFields = Object.keys(fields.schema).length > 0;
  const values = hasFields || embedded ? undefined : mapValues(own, inner);
  const required = requiredOf(own, hasFields ? fields.schema : undefined);
  // Values beside fields cannot be said structurally, and a bare object may mean any (a Go RawExtension).
  const open = own[PRESERVE] === true || isAdditional(own['additionalProperties']) || !hasFields;
  const structural = {
    type: 'object',
    ...plain(own, context),
    ...(hasFields ? { properties: fields.schema } : {}),
    ...(required.length === 0 ? {} : { required }),
    ...(values === undefined ? {} : { additionalProperties: values.schema }),
    ...(open && values === undefined ? { [PRESERVE]: true } : {}),
    ...(embedded ? { [EMBEDDED]: true } : {}),
    ...oneOfWords(own, 'x-kubernetes-map-type', ['atomic', 'granular']),
  };
  return finish(structural, own, { context, opened: fields.opened || (values?.opened ?? false) });
}

const isAdditional = (value: unknown): boolean => value === true || isMap(value);

/** What every object has is the API server's: a schema may say nothing of it. */
export function withoutTypeMeta(schema: OpenApiSchema): OpenApiSchema {
  if (!isMap(schema['properties'])) return schema;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...fields } = schema['properties'];
  return { ...schema, properties: fields };
}

function properties(schema: OpenApiSchema, context: Context): Structural {
  if (!isMap(schema['properties'])) return { schema: {}, opened: false };
  const normalized = Object.entries(schema['properties']).map(
    ([name, property]) => [name, normalize(property, context)] as const,
  );
  return {
    schema: Object.fromEntries(normalized.map(([name, property]) => [name, property.schema])),
    opened: normalized.some(([, { opened }]) => opened),
  };
}

function requiredOf({ required }: OpenApiSchema, fields: OpenApiSchema | undefined): readonly string[] {
  if (!Array.isArray(required)) return [];
  const names = required.filter((name): name is string => typeof name === 'string');
  return [...new Set(names)].filter((name) => fields === undefined || Object.hasOwn(fields, name));
}

function mapValues(schema: OpenApiSchema, context: Context): Structural | undefined {
  return isMap(schema['additionalProperties']) ? normalize(schema['additionalProperties'], context) : undefined;
}

function arraySchema(schema: OpenApiSchema, context: Context): Structural {
  const inner = { ...context, depth: context.depth + 1 };
  const first = normalize(schema['items'], inner);
  const kind = listType(schema, first.schema);
  const lost = schema['x-kubernetes-list-type'] === 'map' && kind['x-kubernetes-list-type'] === undefined;
  const items = lost && context.rules ? normalize(schema['items'], { ...inner, rules: false }) : first;
  const structural = { type: 'array', ...plain(schema, context), items: items.schema, ...kind };
  return finish(structural, schema, { context, opened: items.opened });
}

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean']);

/** Keeps a list type only where the API server would accept it: map keys required or defaulted, sets of scalars. */
function listType(schema: OpenApiSchema, items: OpenApiSchema): OpenApiSchema {
  const kind = schema['x-kubernetes-list-type'];
  if (kind === 'atomic') return { 'x-kubernetes-list-type': kind };
  if (items['nullable'] === true) return {};
  const atomic = items['x-kubernetes-map-type'] === 'atomic' || items['x-kubernetes-list-type'] === 'atomic';
  if (kind === 'set' && (SCALARS.has(items['type']) || atomic)) return { 'x-kubernetes-list-type': kind };
  const keys = schema['x-kubernetes-list-map-keys'];
  if (kind !== 'map' || !Array.isArray(keys) || keys.length === 0 || new Set(keys).size < keys.length) return {};
  return keys.every((key) => isMapKey(key, items))
    ? { 'x-kubernetes-list-type': kind, 'x-kubernetes-list-map-keys': keys }
    : {};
}

function isMapKey(key: unknown, items: OpenApiSchema): boolean {
  const fields = isMap(items['properties']) ? items['properties'] : {};
  if (typeof key !== 'string' || !Object.hasOwn(fields, key)) return false;
  const field = fields[key];
  if (!isMap(field) || !SCALARS.has(field['type']) || field['nullable'] === true) return false;
  return (Array.isArray(items['required']) && items['required'].includes(key)) || field['default'] !== undefined;
}

const plain = (schema: OpenApiSchema, { members }: Context, among?: readonly string[]): OpenApiSchema =>
  pickPlain(schema, among === undefined ? members : members.filter((member) => among.includes(member)));

function oneOfWords(schema: OpenApiSchema, member: string, words: readonly string[]): OpenApiSchema {
  const value = schema[member];
  return typeof value === 'string' && words.includes(value) ? { [member]: value } : {};
}

function withDefault(structural: OpenApiSchema, source: OpenApiSchema): OpenApiSchema {
  const value = structural['type'] === 'integer' ? asInteger(source['default']) : source['default'];
  return fits(value, structural) ? { ...structural, default: value } : structural;
}

/** Adds the default, the junctors and the rules, which depend on what became of the rest. */
function finish(
  structural: OpenApiSchema,
  source: OpenApiSchema,
  { context, opened }: { readonly context: Context; readonly opened: boolean },
): Structural {
  const whole = { ...structural, ...junctors(source, structural), ...rules(source, context.rules && !opened) };
  return { schema: withDefault(whole, source), opened };
}

const RULE_MEMBERS = ['rule', 'message', 'messageExpression', 'reason', 'fieldPath'];

/** CEL rules, unless something that they may look into was opened up. */
function rules(schema: OpenApiSchema, wanted: boolean): OpenApiSchema {
  const present: unknown = schema['x-kubernetes-validations'];
  if (!wanted || !Array.isArray(present)) return {};
  const kept = present.flatMap((rule: unknown) =>
    isMap(rule) && typeof rule['rule'] === 'string' ? [ruleOf(rule)] : [],
  );
  return kept.length === 0 ? {} : { 'x-kubernetes-validations': kept };
}

function ruleOf(rule: OpenApiSchema): OpenApiSchema {
  const texts = RULE_MEMBERS.filter((member) => typeof rule[member] === 'string').map((member) => [
    member,
    rule[member],
  ]);
  return {
    ...Object.fromEntries(texts),
    ...(typeof rule['optionalOldSelf'] === 'boolean' ? { optionalOldSelf: rule['optionalOldSelf'] } : {}),
  };
}
