import { createHash } from 'node:crypto';
import { MAX_DEPTH, tooDeep } from './depth.ts';
import { isMap, isRawNumber, type JsonMap } from './raw-json.ts';

/** Hex digits that hashes of canonical JSON keep (spec §1). */
const HASH_DIGITS = 16;
/** Integers up to this many digits are written out; beyond, a canonical number has an exponent. */
const MAX_PLAIN_DIGITS = 40;

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** One text for all spellings of a number: `1`, `1.0` and `10e-1` are equal, big integers differ by their last digit. */
export function canonicalNumber(text: string): string {
  const match = NUMBER.exec(text);
  if (match === null) throw new TypeError('not a JSON number');
  const [, sign = '', whole = '', fraction = '', exponentText = '0'] = match;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = trimEndZeros(digits);
  if (significant === '') return '0';
  const exponent = BigInt(exponentText) + BigInt(digits.length - significant.length - fraction.length);
  if (exponent >= 0n && exponent + BigInt(significant.length) <= BigInt(MAX_PLAIN_DIGITS)) {
    return `${sign}${significant}${'0'.repeat(Number(exponent))}`;
  }
  return `${sign}${significant}e${exponent}`;
}

/** Not a regular expression: `/0+$/` takes quadratic time on hostile digits. */
function trimEndZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

const numberText = (value: unknown): string | undefined => {
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? String(value + 0) : canonicalNumber(String(value));
  return isRawNumber(value) ? canonicalNumber(value.rawJSON) : undefined;
};

const presentKeys = (map: JsonMap): string[] => Object.keys(map).filter((key) => map[key] !== undefined);

/**
 * JSON with sorted keys and canonical numbers: equal values have equal texts. Members that are `undefined` are left out.
 * Like what follows, throws class `invalid` for what is nested deeper than MAX_DEPTH.
 */
export function canonicalJson(value: unknown, depth = 0): string {
  const number = numberText(value);
  if (number !== undefined) return number;
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) throw tooDeep();
  if (Array.isArray(value))
    return `[${value.map((item: unknown) => canonicalJson(item ?? null, depth + 1)).join(',')}]`;
  if (!isMap(value)) return JSON.stringify(value ?? null);
  const members = presentKeys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key], depth + 1)}`);
  return `{${members.join(',')}}`;
}

/** `sha256:` and 16 hex digits over canonical JSON: how this product names a state (spec §1). */
export function hashJson(value: unknown): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, HASH_DIGITS)}`;
}

const scalarsEqual = (a: unknown, b: unknown): boolean => {
  const number = numberText(a);
  return number === undefined ? a === b : number === numberText(b);
};

/** Equality of JSON values: `1` is `1.0`, key order and `undefined` members do not count, null is not absence. */
export const jsonEqual = (a: unknown, b: unknown): boolean => equalAt(0, a, b);

function equalAt(depth: number, a: unknown, b: unknown): boolean {
  if (depth > MAX_DEPTH && typeof a === 'object' && a !== null && !isRawNumber(a)) throw tooDeep();
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equalAt(depth + 1, item, b[index]));
  }
  if (!isMap(a)) return scalarsEqual(a, b);
  if (!isMap(b)) return false;
  const keys = presentKeys(a);
  return (
    keys.length === presentKeys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equalAt(depth + 1, a[key], b[key]))
  );
}
