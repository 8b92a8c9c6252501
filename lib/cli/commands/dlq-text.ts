import type { DeadGroup } from '../../replay/groups.ts';
import type { ResultOf } from '../results.ts';
import { age, table } from '../output.ts';

/** Dead letters for people. */

const SHORT_ID = 8;
const MAX_MESSAGE = 80;

const short = (text: string): string => (text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text);

export const groupsText = (groups: readonly DeadGroup[], nowMs: number): string =>
  table(
    ['ENTRIES', 'KEYS', 'ERROR', 'CLUSTER', 'API', 'NEWEST', 'OLDEST', 'EXAMPLE'],
    groups.map(({ entries, keys, error, status, cluster, api, newest, oldest, example }) => [
      String(entries),
      String(keys),
      status === undefined ? error : `${error} (${status})`,
      cluster === '' ? '-' : cluster,
      api,
      age(nowMs - newest),
      age(nowMs - oldest),
      short(example),
    ]),
    'No dead letters.',
  );

type Entry = NonNullable<ResultOf<'dlq list'>['entries']>[number];

export const entriesText = (
  entries: readonly (Entry & { readonly prospect?: string; readonly detail?: string })[],
  nowMs: number,
): string =>
  table(
    ['ID', 'KEY', 'ERROR', 'ATTEMPTS', 'LAST', 'MESSAGE', ...(entries.some(({ prospect }) => prospect) ? ['NOW'] : [])],
    entries.map(({ id, key, error, attempts, lastFailure, message, prospect, detail = '' }) => [
      id.slice(0, SHORT_ID),
      key,
      error,
      String(attempts),
      age(nowMs - lastFailure),
      short(message),
      ...(prospect === undefined ? [] : [`${prospect}: ${short(detail)}`]),
    ]),
    'No dead letters.',
  );

/** One letter, line by line. */
export function letterText(letter: ResultOf<'dlq show'>): string[] {
  const {
    id,
    queue,
    key,
    error,
    message,
    attempts,
    firstFailure,
    lastFailure,
    trace,
    versions,
    status,
    verb,
    object,
    side,
  } = letter;
  const request = [verb, object, side === undefined ? undefined : `on the ${side}`].filter(
    (part) => part !== undefined,
  );
  return [
    `  id:        ${id} (${queue})`,
    `  key:       ${key}`,
    `  error:     ${error}${status === undefined ? '' : ` (${status})`}: ${message}`,
    ...(request.length === 0 ? [] : [`  request:   ${request.join(' ')}`]),
    `  attempts:  ${attempts}, from ${new Date(firstFailure).toISOString()} to ${new Date(lastFailure).toISOString()}`,
    ...(trace.length === 0 ? [] : ['  path:', ...trace.map((line) => `    ${line}`)]),
    ...(Object.keys(versions).length === 0
      ? []
      : [
          `  versions:  ${Object.entries(versions)
            .map(([name, version]) => `${name} ${version}`)
            .join(', ')}`,
        ]),
  ];
}
