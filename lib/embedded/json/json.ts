/** Any JSON object. Values that are integers past 2^53 are raw JSON, see {@link parseJson}. */
export interface Obj {
  [key: string]: unknown;
}

interface RawJson {
  readonly rawJSON: string;
}
type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
interface LosslessJson {
  parse(text: string, reviver?: Reviver): unknown;
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
}
const json = JSON as unknown as LosslessJson;

const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;
const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

const keepLongIntegers: Reviver = (_key, value, { source }) =>
  typeof value === 'number' && source !== undefined ? losslessNumber(source) : value;

/** A number literal as kube-apiserver would hold it: int64 exactly, everything else as a double. */
export function losslessNumber(source: string): unknown {
  const value = Number(source);
  if (Number.isSafeInteger(value) || !INTEGER.test(source)) return value;
  const exact = BigInt(source);
  return exact <= INT64_MAX && exact >= INT64_MIN ? json.rawJSON(exact.toString()) : value;
}

/** Parses JSON without losing digits of 64-bit integers. */
export function parseJson(text: string): unknown {
  return LONG_NUMBER.test(text) ? json.parse(text, keepLongIntegers) : json.parse(text);
}

/** Whether this is an integer that a double cannot hold. */
export function isLongInteger(value: unknown): value is RawJson {
  return json.isRawJSON(value);
}

/** Whether this is a JSON object, and neither a list, null, nor a long integer. */
export function isObject(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLongInteger(value);
}

/** Sets a key, also one named `__proto__`. */
export function put(target: Obj, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
}

/** A deep copy. */
export function clone<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (!isObject(value)) return value;
  const result: Obj = {};
  for (const key of Object.keys(value)) put(result, key, copy(value[key]));
  return result;
}

/** A deep copy with the keys of every object in order, which is how kube-apiserver prints custom resources. */
export function sorted<T>(value: T): T {
  return sortKeys(value) as T;
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  const result: Obj = {};
  for (const key of Object.keys(value).sort()) put(result, key, sortKeys(value[key]));
  return result;
}

/** Deep equality of JSON values. */
export function equal(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    return Array.isArray(right) && left.length === right.length && left.every((item, i) => equal(item, right[i]));
  }
  if (isLongInteger(left)) return isLongInteger(right) && left.rawJSON === right.rawJSON;
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key]));
}

/** The value at a path, or undefined where the path ends early. */
export function at(value: unknown, ...path: string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isObject(current) || !Object.hasOwn(current, key)) return undefined;
    current = current[key];
  }
  return current;
}

/** The string at a path, or the empty string. */
export function textAt(value: unknown, ...path: string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The list at a path, or an empty one. */
export function listAt(value: unknown, ...path: string[]): unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? (found as unknown[]) : [];
}

/** The object at a path, or an empty one. */
export function objectAt(value: unknown, ...path: string[]): Obj {
  const found = at(value, ...path);
  return isObject(found) ? found : {};
}
