import { stringify } from 'yaml';
import type { Terminal } from './terminal.ts';
import type { Exit } from './exit-codes.ts';

export const formats = ['table', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

/** What a command answers with. */
export interface Answer {
  /** For json and yaml; docs/cli-schema.json describes it. */
  readonly data: unknown;
  /** For people. */
  readonly text: string;
  /** One a line. */
  readonly names: readonly string[];
  readonly exit?: Exit | undefined;
}

export function print({ out }: Pick<Terminal, 'out'>, format: Format, { data, text, names }: Answer): void {
  out.write(`${textOf(format, { data, text, names })}\n`);
}

function textOf(format: Format, { data, text, names }: Answer): string {
  switch (format) {
    case 'json':
      return JSON.stringify(data, undefined, 2);
    case 'yaml':
      return stringify(data).trimEnd();
    case 'name':
      return names.join('\n');
    default:
      return text;
  }
}

/** Columns, left-aligned, under headings; nothing is cut. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], empty: string): string {
  if (rows.length === 0) return empty;
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => visibleLength(row[column] ?? ''))),
  );
  return [headings, ...rows].map((row) => line(row, widths)).join('\n');
}

function line(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - visibleLength(cell)));
  return padded.join('  ').trimEnd();
}

// oxlint-disable-next-line no-control-regex -- colours are what is looked for
const COLOURS = /\u001B\[\d+m/g;
const visibleLength = (text: string): number => text.replaceAll(COLOURS, '').length;

/** `3m`, `2h`, `5d`: how kubectl says ages. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

const DURATION = /^(\d+)(s|m|h|d)$/;
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Seconds of `90s`, `15m`, `2h`, `7d`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * SECONDS[unit as keyof typeof SECONDS];
}
