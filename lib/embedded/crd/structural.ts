import type { Schema } from '../api/resource.ts';
import { fieldForbidden, invalidValue, required, unsupported, type Cause } from '../api/status.ts';
import { isObject } from '../json/json.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const JUNCTORS = ['allOf', 'anyOf', 'oneOf'] as const;
const LIST_TYPES = ['atomic', 'map', 'set'];

/** Why a schema is not structural, or cannot be evaluated. */
export function structuralProblems(schema: Schema, field: string): Cause[] {
  const causes: Cause[] = [];
  if (schema.type !== 'object') {
    causes.push(
      schema.type
        ? invalidValue(`${field}.type`, schema.type, 'must be object at the root')
        : required(`${field}.type`, 'must not be empty at the root'),
    );
  }
  if (schema.nullable) causes.push(fieldForbidden(`${field}.nullable`, 'must not be true at the root'));
  check(schema, field, causes, 'root');
  return causes;
}

type Place = 'root' | 'field' | 'items' | 'additional';

function check(schema: Schema, field: string, causes: Cause[], place: Place): void {
  checkType(schema, field, causes, place);
  checkForbidden(schema, field, causes);
  checkList(schema, field, causes);
  if (schema.properties && typeof schema.additionalProperties === 'object') {
    causes.push(
      fieldForbidden(`${field}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    );
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (place === 'root' && name === 'metadata') checkMetadata(property, `${field}.properties[metadata]`, causes);
    else check(property, `${field}.properties[${name}]`, causes, 'field');
  }
  if (typeof schema.additionalProperties === 'object')
    check(schema.additionalProperties, `${field}.additionalProperties`, causes, 'additional');
  if (schema.items) check(schema.items, `${field}.items`, causes, 'items');
  for (const junctor of JUNCTORS) checkJunctor(schema, junctor, field, causes);
  if (isObject(schema['not'])) checkValidation(schema['not'], `${field}.not`, causes);
}

const WHERE: Record<Place, string> = {
  root: 'at the root',
  field: 'for specified object fields',
  items: 'for specified array items',
  additional: 'for specified object fields',
};

function checkType(schema: Schema, field: string, causes: Cause[], place: Place): void {
  const { type } = schema;
  const free = schema['x-kubernetes-preserve-unknown-fields'] || schema['x-kubernetes-int-or-string'];
  if (!type && !free && place !== 'root') causes.push(required(`${field}.type`, `must not be empty ${WHERE[place]}`));
  if (type && !TYPES.includes(type)) causes.push(unsupported(`${field}.type`, type, TYPES));
  if (type && schema['x-kubernetes-int-or-string'])
    causes.push(fieldForbidden(`${field}.type`, 'must be empty if x-kubernetes-int-or-string is true'));
  if (type === 'array' && !schema.items) causes.push(required(`${field}.items`, 'must be specified'));
  if (schema['x-kubernetes-embedded-resource'] && type !== 'object')
    causes.push(invalidValue(`${field}.type`, type ?? '', 'must be object if x-kubernetes-embedded-resource is true'));
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    causes.push(invalidValue(`${field}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
}

function checkForbidden(schema: Schema, field: string, causes: Cause[]): void {
  for (const keyword of [
    'definitions',
    'dependencies',
    'deprecated',
    'discriminator',
    'patternProperties',
    'additionalItems',
    'id',
    '$ref',
  ]) {
    if (schema[keyword] !== undefined)
      causes.push(fieldForbidden(`${field}.${keyword}`, `${keyword} is not supported`));
  }
  if (schema['uniqueItems'] === true)
    causes.push(
      fieldForbidden(
        `${field}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  if (schema.additionalProperties === false)
    causes.push(fieldForbidden(`${field}.additionalProperties`, 'additionalProperties cannot be set to false'));
  if (schema.pattern !== undefined && !compiles(schema.pattern))
    causes.push(invalidValue(`${field}.pattern`, schema.pattern, 'must be a valid regular expression'));
}

function compiles(pattern: string): boolean {
  try {
    RegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

function checkList(schema: Schema, field: string, causes: Cause[]): void {
  const kind = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'];
  if (kind !== undefined && schema.type !== 'array')
    causes.push(
      invalidValue(`${field}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'),
    );
  if (kind !== undefined && !LIST_TYPES.includes(kind))
    causes.push(unsupported(`${field}.x-kubernetes-list-type`, kind, LIST_TYPES));
  if (kind === 'map' && !keys?.length)
    causes.push(required(`${field}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'));
  if (keys !== undefined && kind !== 'map')
    causes.push(
      invalidValue(
        `${field}.x-kubernetes-list-type`,
        kind ?? null,
        'must be map if x-kubernetes-list-map-keys is non-empty',
      ),
    );
  for (const key of keys ?? []) {
    const property = schema.items?.properties?.[key];
    if (kind !== 'map') continue;
    if (!property)
      causes.push(
        invalidValue(`${field}.x-kubernetes-list-map-keys`, key, 'entries must all be names of item properties'),
      );
    else if (property.default === undefined && !schema.items?.required?.includes(key)) {
      causes.push(
        required(
          `${field}.items.properties[${key}].default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      );
    }
  }
}

function checkMetadata(schema: Schema, field: string, causes: Cause[]): void {
  if (schema.type !== 'object') causes.push(invalidValue(`${field}.type`, schema.type ?? '', 'must be object'));
  const allowed = new Set(['name', 'generateName']);
  for (const name of Object.keys(schema.properties ?? {})) {
    if (!allowed.has(name))
      causes.push(
        fieldForbidden(
          field,
          'must not specify anything other than name and generateName, but metadata is implicitly specified',
        ),
      );
  }
}

function checkJunctor(schema: Schema, junctor: string, field: string, causes: Cause[]): void {
  const parts = schema[junctor];
  if (!Array.isArray(parts)) return;
  parts.forEach((part: unknown, i) => {
    if (schema['x-kubernetes-int-or-string']) return;
    checkValidation(part as Schema, `${field}.${junctor}[${i}]`, causes);
  });
}

// Below a junctor only values are judged; what shapes an object belongs outside.
function checkValidation(schema: Schema, field: string, causes: Cause[]): void {
  for (const keyword of ['description', 'type', 'default', 'additionalProperties', 'nullable', 'title']) {
    if (schema[keyword] !== undefined && schema[keyword] !== '')
      causes.push(fieldForbidden(`${field}.${keyword}`, 'must be empty to be structural'));
  }
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkValidation(property, `${field}.properties[${name}]`, causes);
  if (schema.items) checkValidation(schema.items, `${field}.items`, causes);
  for (const junctor of JUNCTORS) {
    const parts = schema[junctor];
    if (Array.isArray(parts))
      parts.forEach((part: unknown, i) => checkValidation(part as Schema, `${field}.${junctor}[${i}]`, causes));
  }
}
