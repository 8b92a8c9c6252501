import { isObject, put, type Obj } from '../json/json.ts';
import { EvaluationError, Unsupported, type Expression } from './ast.ts';
import { functionOf } from './functions.ts';

/** The values of names: self, oldSelf, and what macros bind. */
export type Scope = Readonly<Record<string, unknown>>;

type Call = Extract<Expression, { kind: 'call' }>;

const MACROS = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

/** Throws {@link Unsupported} where an expression uses what is not known here. */
export function checkSupported(expression: Expression, names: readonly string[]): void {
  switch (expression.kind) {
    case 'literal':
      return;
    case 'name':
      if (!names.includes(expression.name)) throw new Unsupported(`unknown name ${expression.name}`);
      return;
    case 'select':
      checkSupported(expression.target, names);
      return;
    case 'list':
      expression.items.forEach((item) => checkSupported(item, names));
      return;
    case 'map':
      expression.entries.flat().forEach((item) => checkSupported(item, names));
      return;
    case 'call':
      checkCall(expression, names);
  }
}

function checkCall({ name, target, args }: Call, names: readonly string[]): void {
  if (target) checkSupported(target, names);
  const variable = args[0];
  if (target && MACROS.has(name) && variable?.kind === 'name') {
    args.slice(1).forEach((each) => checkSupported(each, [...names, variable.name]));
    return;
  }
  if (name === 'has' && !target && variable?.kind !== 'select') throw new Unsupported('has() of what is no field');
  const known = ['has', '_&&_', '_||_', '_?_:_'].includes(name) || functionOf(name, target !== undefined) !== undefined;
  if (!known) throw new Unsupported(`unknown function ${name}`);
  args.forEach((each) => checkSupported(each, names));
}

/** The value of an expression. */
export function evaluate(expression: Expression, scope: Scope): unknown {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'name':
      return scope[expression.name];
    case 'select':
      return select(evaluate(expression.target, scope), expression.field);
    case 'list':
      return expression.items.map((item) => evaluate(item, scope));
    case 'map': {
      const result: Obj = {};
      for (const [key, value] of expression.entries) put(result, String(evaluate(key, scope)), evaluate(value, scope));
      return result;
    }
    case 'call':
      return call(expression, scope);
    default:
      throw new Unsupported('unknown expression');
  }
}

function select(target: unknown, field: string): unknown {
  if (isObject(target) && Object.hasOwn(target, field)) return target[field];
  throw new EvaluationError(`no such key: ${field}`);
}

function call(expression: Call, scope: Scope): unknown {
  const { name, target, args } = expression;
  const [first, second, third] = args;
  if (name === '_&&_' || name === '_||_') return logical(name === '_||_', [first, second], scope);
  if (name === '_?_:_' && first && second && third)
    return evaluate(evaluate(first, scope) === true ? second : third, scope);
  if (name === 'has' && first?.kind === 'select') {
    const object = evaluate(first.target, scope);
    return isObject(object) && Object.hasOwn(object, first.field) && object[first.field] !== null;
  }
  if (target && MACROS.has(name) && first?.kind === 'name')
    return macro(name, evaluate(target, scope), { variable: first.name, bodies: args.slice(1), scope });
  const implementation = functionOf(name, target !== undefined);
  if (!implementation) throw new Unsupported(`unknown function ${name}`);
  const values = args.map((each) => evaluate(each, scope));
  return target ? implementation(evaluate(target, scope), ...values) : implementation(...values);
}

// One side that decides is enough, whatever goes wrong on the other.
function logical(decisive: boolean, sides: (Expression | undefined)[], scope: Scope): boolean {
  let failure: unknown;
  for (const side of sides) {
    if (!side) continue;
    try {
      if (evaluate(side, scope) === decisive) return decisive;
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure as Error;
  return !decisive;
}

interface Binding {
  readonly variable: string;
  readonly bodies: readonly Expression[];
  readonly scope: Scope;
}

function macro(name: string, range: unknown, { variable, bodies, scope }: Binding): unknown {
  const items = Array.isArray(range) ? (range as unknown[]) : isObject(range) ? Object.keys(range) : undefined;
  const [body, transform] = bodies;
  if (!items || !body) throw new EvaluationError(`no such overload: ${name}`);
  const bind = (expression: Expression, item: unknown): unknown => evaluate(expression, { ...scope, [variable]: item });
  const holds = (item: unknown): boolean => bind(body, item) === true;
  switch (name) {
    case 'all':
      return items.every(holds);
    case 'exists':
      return items.some(holds);
    case 'exists_one':
      return items.filter(holds).length === 1;
    case 'filter':
      return items.filter(holds);
    default:
      return transform
        ? items.filter(holds).map((item) => bind(transform, item))
        : items.map((item) => bind(body, item));
  }
}
