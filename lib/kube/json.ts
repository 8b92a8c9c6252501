import { parseKeepingNumbers } from './raw-json.ts';

export { canonicalJson, hashJson, jsonContains, jsonEqual } from './canonical.ts';
export { isRawNumber } from './raw-json.ts';

/**
 * Finds whatever could be a number whose text a double does not keep: 16 digits, a fraction, an exponent, minus zero.
 * A look-alike inside a string costs time and nothing else. Each alternative is bounded, so that no text is slow to scan.
 */
const MAY_LOSE_TEXT = /(?:^|[:,[])\s*(?:-0|-?(?:\d{16}|\d{1,15}[.eE]))/;

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
// oxlint-disable-next-line no-control-regex -- DEL and the C1 controls are what is looked for
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Prints JSON, numbers as they were parsed, in a form that JSON and YAML readers take alike. */
export function printJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE_IN_YAML, escaped);
}
