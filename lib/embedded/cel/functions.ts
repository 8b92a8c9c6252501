import { equal, isLongInteger, isObject } from '../json/json.ts';
import { EvaluationError } from './ast.ts';

type Implementation = (...args: unknown[]) => unknown;

function fail(what: string): never {
  throw new EvaluationError(what);
}

const number = (value: unknown): number => {
  if (isLongInteger(value)) return Number(value.rawJSON);
  return typeof value === 'number' ? value : fail('no such overload: expected a number');
};
const text = (value: unknown): string =>
  typeof value === 'string' ? value : fail('no such overload: expected a string');
const list = (value: unknown): unknown[] =>
  Array.isArray(value) ? (value as unknown[]) : fail('no such overload: expected a list');

// CEL counts code points.
const characters = (value: string): string[] => Array.from(value);

/** How many characters, items or entries a value has. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return characters(value).length;
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : fail('no such overload: size');
}

function compare(left: unknown, right: unknown): number {
  if (typeof left === 'string') return left < text(right) ? -1 : Number(left > text(right));
  return Math.sign(number(left) - number(right));
}

function add(left: unknown, right: unknown): unknown {
  if (typeof left === 'string') return left + text(right);
  if (Array.isArray(left)) return [...(left as unknown[]), ...list(right)];
  return number(left) + number(right);
}

function divide(left: unknown, right: unknown): number {
  const [a, b] = [number(left), number(right)];
  if (!Number.isInteger(a) || !Number.isInteger(b)) return a / b;
  return b === 0 ? fail('divide by zero') : Math.trunc(a / b);
}

function includes(item: unknown, container: unknown): boolean {
  if (Array.isArray(container)) return container.some((each) => equal(each, item));
  return isObject(container) ? Object.hasOwn(container, text(item)) : fail('no such overload: in');
}

function at(container: unknown, index: unknown): unknown {
  if (Array.isArray(container)) {
    const i = number(index);
    return i >= 0 && i < container.length ? (container as unknown[])[i] : fail('index out of bounds');
  }
  return isObject(container) && Object.hasOwn(container, text(index))
    ? container[text(index)]
    : fail(`no such key: ${text(index)}`);
}

const matches = (value: unknown, pattern: unknown): boolean => new RegExp(text(pattern), 'u').test(text(value));

const OPERATORS: Record<string, Implementation> = {
  '_==_': equal,
  '_!=_': (left, right) => !equal(left, right),
  '_<_': (left, right) => compare(left, right) < 0,
  '_<=_': (left, right) => compare(left, right) <= 0,
  '_>_': (left, right) => compare(left, right) > 0,
  '_>=_': (left, right) => compare(left, right) >= 0,
  '_+_': add,
  '_-_': (left, right) => number(left) - number(right),
  '_*_': (left, right) => number(left) * number(right),
  '_/_': divide,
  '_%_': (left, right) => number(left) % number(right),
  _in_: includes,
  '_[_]': at,
  '!_': (value) => (typeof value === 'boolean' ? !value : fail('no such overload: !')),
  '-_': (value) => -number(value),
};

const METHODS: Record<string, Implementation> = {
  size: sizeOf,
  startsWith: (value, prefix) => text(value).startsWith(text(prefix)),
  endsWith: (value, suffix) => text(value).endsWith(text(suffix)),
  contains: (value, part) => text(value).includes(text(part)),
  matches,
  lowerAscii: (value) => text(value).toLowerCase(),
  upperAscii: (value) => text(value).toUpperCase(),
  trim: (value) => text(value).trim(),
  split: (value, separator) => text(value).split(text(separator)),
  join: (value, separator = '') => list(value).map(text).join(text(separator)),
  replace: (value, from, to) => text(value).replaceAll(text(from), text(to)),
  indexOf: (value, part) => text(value).indexOf(text(part)),
  substring: (value, start, end) =>
    characters(text(value))
      .slice(number(start), end === undefined ? undefined : number(end))
      .join(''),
  isSorted: (value) => list(value).every((item, i, all) => i === 0 || compare(all[i - 1], item) <= 0),
  sum: (value) => list(value).reduce<number>((sum, item) => sum + number(item), 0),
  min: (value) => list(value).reduce((least, item) => (compare(item, least) < 0 ? item : least)),
  max: (value) => list(value).reduce((most, item) => (compare(item, most) > 0 ? item : most)),
};

const GLOBALS: Record<string, Implementation> = {
  ...OPERATORS,
  size: sizeOf,
  matches,
  string: (value) => (typeof value === 'string' ? value : JSON.stringify(value)),
  int: (value) => (typeof value === 'string' ? Number.parseInt(value, 10) : Math.trunc(number(value))),
  double: (value) => (typeof value === 'string' ? Number.parseFloat(value) : number(value)),
  bool: (value) => (typeof value === 'string' ? value === 'true' : Boolean(value)),
  dyn: (value) => value,
};

const own = (table: Record<string, Implementation>, name: string): Implementation | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** A function of the language, called with a target or without, or undefined. */
export const functionOf = (name: string, onTarget: boolean): Implementation | undefined =>
  own(onTarget ? METHODS : GLOBALS, name);
