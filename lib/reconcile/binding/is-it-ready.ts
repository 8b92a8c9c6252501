import type { ConditionReason, WantedCondition } from '../../model/conditions.ts';
import type { ApiResult } from './process-apis.ts';
import type { SchemaState } from '../schema-result.ts';
import { whatStaysHere } from './what-stays-here.ts';

/** What the binding's conditions say of the requested APIs: pure. */

/** The reason of `Ready=False` for an API in that state; absent for the states over which a binding may be Ready. */
const REASONS: Partial<Readonly<Record<SchemaState, ConditionReason>>> = {
  forbidden: 'Forbidden',
  'not-exported': 'APINotExported',
  foreign: 'ForeignObjectExists',
  'owned-by-another': 'OwnedByAnother',
  refused: 'Pending',
  missing: 'Pending',
  terminating: 'Pending',
  establishing: 'Pending',
};

/** Several APIs may fail for several reasons: the first of these names the condition, the message names all. */
const PRECEDENCE: readonly ConditionReason[] = [
  'Forbidden',
  'APINotExported',
  'ForeignObjectExists',
  'OwnedByAnother',
  'Pending',
];

/** How many conflicting objects a message names. */
const NAMED_OBJECTS = 5;

/** Why a binding is not Ready; undefined: it is. */
export interface NotReady {
  readonly reason: ConditionReason;
  readonly message: string;
}

/** A Binding of which nothing can be acted on is no more Ready than one whose API is missing. */
const nothingInScope = (results: readonly ApiResult[]): boolean =>
  results.length > 0 && results.every(({ state }) => state === 'out-of-scope');

/** The question of the chart's two lower diamonds and of what spec §3 adds to them. */
export function whyNotReady(results: readonly ApiResult[]): NotReady | undefined {
  const failing = results.filter(({ state }) => REASONS[state] !== undefined);
  const reasons = new Set(failing.map(({ state }) => REASONS[state]));
  const reason = PRECEDENCE.find((candidate) => reasons.has(candidate));
  if (reason !== undefined) return { reason, message: failing.map(({ message }) => message).join('; ') };
  if (nothingInScope(results)) return { reason: 'Pending', message: results.map(({ message }) => message).join('; ') };
  return undefined;
}

/** A sentence for each API of which the consumer gets one of several versions. */
export const droppedVersions = (results: readonly ApiResult[]): string[] =>
  results.flatMap(({ api, state, droppedVersions: dropped = [] }) =>
    state === 'installed' && dropped.length > 0
      ? [`${api} is offered in one version; left out: ${dropped.join(', ')}`]
      : [],
  );

/** What a person should know although the binding is Ready. */
export function remarks(results: readonly ApiResult[], shadowed: readonly string[]): string[] {
  const said = results.flatMap(({ state, message }) =>
    (state === 'installed' || state === 'out-of-scope') && message !== '' ? [message] : [],
  );
  const staying = results.flatMap(({ state, crd }) =>
    state === 'installed' && crd !== undefined ? (whatStaysHere(crd) ?? []) : [],
  );
  return [...said, ...shadowed, ...droppedVersions(results), ...staying];
}

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

function conflictMessage({ api, conflicts }: ApiResult): string {
  const named = conflicts.slice(0, NAMED_OBJECTS).map(({ key, reason }) => `${key} (${reason})`);
  const rest = conflicts.length > named.length ? ` and ${conflicts.length - named.length} more` : '';
  return `${plural(conflicts.length, 'object')} of ${api}: ${named.join(', ')}${rest}`;
}

/** Conflicts of instances and of CRDs; the former coexist with Ready=True. */
export function conflictsCondition(results: readonly ApiResult[]): WantedCondition {
  const crds = results.filter(({ state }) => state === 'foreign' || state === 'owned-by-another');
  const counted = results.filter(({ conflicts }) => conflicts.length > 0);
  const messages = [...crds.map(({ message }) => message), ...counted.map(conflictMessage)];
  if (messages.length === 0) return condition('Conflicts', 'False', 'AsExpected', 'no object is in conflict');
  const foreign =
    crds.some(({ state }) => state === 'foreign') ||
    counted.some(({ conflicts }) => conflicts.some(({ reason }) => reason !== 'OwnedByAnother'));
  return condition('Conflicts', 'True', foreign ? 'ForeignObjectExists' : 'OwnedByAnother', messages.join('; '));
}

/** 403s, of either cluster; those that leave the API in service coexist with Ready=True. */
export function permissionCondition(results: readonly ApiResult[]): WantedCondition {
  const denied = results.flatMap(({ state, message, denied: also }) => [
    ...(state === 'forbidden' ? [message] : []),
    ...(also === undefined ? [] : [also]),
  ]);
  return denied.length === 0
    ? condition('PermissionDenied', 'False', 'AsExpected', 'every request was allowed')
    : condition('PermissionDenied', 'True', 'Forbidden', denied.join('; '));
}

/** One condition, in a line. */
export const condition = (
  type: string,
  status: WantedCondition['status'],
  reason: ConditionReason,
  message: string,
): WantedCondition => ({ type, status, reason, message });
