import { isRawNumber, parseKeepingNumbers } from './raw-json.ts';

export { canonicalJson, hashJson, jsonEqual } from './canonical.ts';
export { MAX_DEPTH, refuseDeep } from './depth.ts';
export { isMap, isRawNumber, type JsonMap } from './raw-json.ts';

/**
 * Finds whatever could be a number whose text a double does not keep: 16 digits, a fraction, an exponent, minus zero.
 * A look-alike inside a string costs time and nothing else; the quote before a colon keeps hashes (`sha256:1e…`) from being
 * one. Each alternative is bounded, so that no text is slow to scan.
 */
const MAY_LOSE_TEXT = /(?:^|"\s*:|[,[])\s*(?:-0|-?(?:\d{16}|\d{1,15}[.eE]))/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/**
 * Parses JSON without changing a number: what a double cannot print back exactly becomes a raw number.
 * Throws a SyntaxError for what is no JSON, a TypeError for bytes that are no UTF-8.
 */
export function parseJson(json: string | Uint8Array): unknown {
  const text = typeof json === 'string' ? json : utf8.decode(json);
  return MAY_LOSE_TEXT.test(text) ? parseKeepingNumbers(text) : (JSON.parse(text) as unknown);
}

/** What YAML readers refuse or fold: server-side apply bodies are read as YAML. Only strings can hold these. */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Prints JSON, numbers as they were parsed, in a form that JSON and YAML readers take alike. */
export function printJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE_IN_YAML, escaped);
}

/** Go's YAML reader wants the colon of a plain key within 1,024 characters of the key's beginning. */
const MAX_PLAIN_KEY = 1_000;

/**
 * Prints the body of a server-side apply: JSON, but for keys too long for a YAML reader, which get YAML's explicit form
 * (`? key : value`).
 */
export function printForApply(value: unknown): string {
  return hasLongKey(value) ? printExplicit(value) : printJson(value);
}

const isTree = (value: unknown): value is object => typeof value === 'object' && value !== null && !isRawNumber(value);

function hasLongKey(value: unknown): boolean {
  if (!isTree(value)) return false;
  if (Array.isArray(value)) return value.some(hasLongKey);
  return Object.entries(value).some(([key, member]) => isLong(printJson(key)) || hasLongKey(member));
}

const isLong = (printedKey: string): boolean => printedKey.length > MAX_PLAIN_KEY;

function printExplicit(value: unknown): string {
  if (!isTree(value)) return printJson(value ?? null);
  if (Array.isArray(value)) return `[${value.map(printExplicit).join(',')}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([key, member]) => printMember(printJson(key), printExplicit(member))).join(',')}}`;
}

const printMember = (key: string, member: string): string =>
  isLong(key) ? `? ${key} : ${member}` : `${key}:${member}`;
