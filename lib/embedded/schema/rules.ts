import type { KubeObject } from '../api/object.ts';
import type { Schema, ValidationRule } from '../api/resource.ts';
import { duplicate, fieldForbidden, invalidValue, required, type Cause } from '../api/status.ts';
import type { Expression } from '../cel/ast.ts';
import { checkSupported, evaluate } from '../cel/evaluate.ts';
import { parseRule } from '../cel/parser.ts';
import { equal, isObject } from '../json/json.ts';
import { childSchema } from './prune.ts';

interface Compiled {
  readonly rule: ValidationRule;
  readonly expression: Expression;
  readonly message: Expression | undefined;
  readonly isTransition: boolean;
}

const compiled = new WeakMap<Schema, readonly Compiled[]>();
const withRules = new WeakMap<Schema, boolean>();
const NAMES = ['self', 'oldSelf'];

/** What the rules (x-kubernetes-validations) of a schema refuse. Rules that this server cannot read are not evaluated. */
export function checkRules(object: KubeObject, schema: Schema, old?: KubeObject): Cause[] {
  if (!hasRules(schema)) return [];
  const causes: Cause[] = [];
  walk({ value: object, old, path: '' }, schema, causes);
  return causes;
}

/** Whether there is any rule in a schema or below it. */
export function hasRules(schema: Schema): boolean {
  let known = withRules.get(schema);
  if (known === undefined)
    withRules.set(schema, (known = JSON.stringify(schema).includes('"x-kubernetes-validations"')));
  return known;
}

interface Place {
  readonly value: unknown;
  readonly old: unknown;
  readonly path: string;
}

function walk(place: Place, schema: Schema, causes: Cause[]): void {
  const { value, old, path } = place;
  if (value === undefined || value === null) return;
  for (const each of rulesOf(schema)) causes.push(...check(each, place));
  if (isObject(value)) {
    const before = isObject(old) ? old : {};
    for (const [key, item] of Object.entries(value)) {
      const known = childSchema(schema, key);
      if (known) walk({ value: item, old: before[key], path: path ? `${path}.${key}` : key }, known, causes);
    }
  } else if (Array.isArray(value) && schema.items) {
    const { items } = schema;
    (value as unknown[]).forEach((item, i) =>
      walk({ value: item, old: correlated(item, old, schema), path: `${path}[${i}]` }, items, causes),
    );
  }
}

/** The same item of a keyed list before; items of other lists have no past. */
function correlated(item: unknown, old: unknown, schema: Schema): unknown {
  if (schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(old) || !isObject(item)) return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return (old as unknown[]).find((each) => isObject(each) && keys.every((key) => equal(each[key], item[key])));
}

function rulesOf(schema: Schema): readonly Compiled[] {
  if (!schema['x-kubernetes-validations']) return [];
  let rules = compiled.get(schema);
  if (!rules) compiled.set(schema, (rules = schema['x-kubernetes-validations'].flatMap(compile)));
  return rules;
}

function compile(rule: ValidationRule): Compiled[] {
  if (rule.optionalOldSelf) return [];
  try {
    const expression = parseRule(rule.rule);
    checkSupported(expression, NAMES);
    const isTransition = /\boldSelf\b/.test(rule.rule);
    return [{ rule, expression, isTransition, message: messageOf(rule) }];
  } catch {
    return [];
  }
}

function messageOf({ messageExpression }: ValidationRule): Expression | undefined {
  if (messageExpression === undefined) return undefined;
  try {
    const expression = parseRule(messageExpression);
    checkSupported(expression, NAMES);
    return expression;
  } catch {
    return undefined;
  }
}

function check({ rule, expression, isTransition, message }: Compiled, { value, old, path }: Place): Cause[] {
  if (isTransition && old === undefined) return [];
  // What did not change is not judged again: a new rule does not lock old objects.
  if (!isTransition && old !== undefined && equal(value, old)) return [];
  const scope = { self: value, oldSelf: old };
  try {
    if (evaluate(expression, scope) === true) return [];
    const text = (message && String(evaluate(message, scope))) ?? rule.message ?? `failed rule: ${rule.rule}`;
    return [causeOf(rule, value, `${path}${rule.fieldPath ?? ''}`, text)];
  } catch (error) {
    return [invalidValue(path || '<nil>', value, `rule evaluation error: ${(error as Error).message}`)];
  }
}

function causeOf(rule: ValidationRule, value: unknown, path: string, text: string): Cause {
  switch (rule.reason) {
    case 'FieldValueForbidden':
      return fieldForbidden(path, text);
    case 'FieldValueRequired':
      return required(path, text);
    case 'FieldValueDuplicate':
      return duplicate(path, value);
    default:
      return invalidValue(path || '<nil>', value, text);
  }
}
