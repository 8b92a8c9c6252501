import type { RawNumber } from '../model/api.ts';

/** An object of JSON. */
export type JsonMap = Readonly<Record<string, unknown>>;

/** What Node 24 adds to JSON and TypeScript's libraries do not declare yet. */
interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
}
const json = JSON as unknown as RawJson;

/** A number by its text, printed as it stands. */
export const rawNumber = (text: string): RawNumber => json.rawJSON(text);

/** True for what {@link rawNumber} made. A copy by spread or structuredClone is no longer one. */
export const isRawNumber = (value: unknown): value is RawNumber => json.isRawJSON(value);

/** True for an object: neither list nor null, and no number that is kept as one. */
export const isMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);

const TOKEN = /["\-\d]/g;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BACKSLASH = 0x5c;

/** Where the string that begins there has ended. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Valid JSON in which every number that would print differently is a string, its text behind the marker. */
function markNumbers(text: string, marker: string): string {
  const parts: string[] = [];
  let copied = 0;
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    const at = token.index;
    if (token[0] === '"') {
      TOKEN.lastIndex = endOfString(text, at);
      continue;
    }
    NUMBER.lastIndex = at;
    const [number = '-'] = NUMBER.exec(text) ?? [];
    TOKEN.lastIndex = at + number.length;
    if (String(Number(number)) === number) continue;
    parts.push(text.slice(copied, at), '"', marker, number, '"');
    copied = at + number.length;
  }
  return [...parts, text.slice(copied)].join('');
}

/** A text that no string of the document begins with. Who escapes letters might fake one, and gets the number it asks for. */
function markerFor(text: string): string {
  for (let attempt = 0; ; attempt += 1) {
    const marker = `number${attempt}:`;
    if (!text.includes(`"${marker}`)) return marker;
  }
}

/**
 * JSON.parse that keeps the text of every number that would print differently: four times slower. Not by a reviver, which
 * is slower still and whose recursion a user's deeply nested object would overflow, and with it every page that it is on.
 * @throws SyntaxError for what is no JSON
 */
export function parseKeepingNumbers(text: string): unknown {
  JSON.parse(text); // what follows takes the text for valid
  const marker = markerFor(text);
  const root = { document: JSON.parse(markNumbers(text, marker)) as unknown };
  const open: Record<string, unknown>[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const key of Object.keys(node)) {
      const value = node[key];
      if (typeof value === 'object' && value !== null) open.push(value as Record<string, unknown>);
      else if (typeof value === 'string' && value.startsWith(marker)) node[key] = rawNumber(value.slice(marker.length));
    }
  }
  return root.document;
}
