import type { ConditionReason, WantedCondition } from '../../model/conditions.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { entriesOf, routes, selectsAll } from '../../model/related.ts';

/** What a pass over related resources has to say. */
export interface RelatedReport {
  /** Entries that cannot be asked for: the binding is not Ready (issue 12). */
  readonly invalid: string[];
  /** Targets that are not ours: shown in `Conflicts`, not counted in `conflictCount` (L5). */
  readonly collisions: Collision[];
  /** Requests that were forbidden; the rest went on (C7). */
  readonly denied: string[];
  /** Objects that the target refuses for what they are, or alters. */
  readonly refused: string[];
  /** Something is on its way out: a namespace, a copy that is to be replaced. */
  waiting: boolean;
  written: number;
  deleted: number;
}

export interface Collision {
  /** `Secret default/a of the consumer`. */
  readonly object: string;
  readonly reason: Extract<ConditionReason, 'ForeignObjectExists' | 'OwnedByAnother'>;
}

export const emptyReport = (): RelatedReport => ({
  invalid: [],
  collisions: [],
  denied: [],
  refused: [],
  waiting: false,
  written: 0,
  deleted: 0,
});

/** How many objects or refusals a message names. */
const NAMED = 5;

/** The first few, in a stable order, and how many more: a message that changes without news is a needless write. */
export function firstFew(texts: readonly string[]): string {
  const all = [...new Set(texts)].sort();
  const more = all.length > NAMED ? ` and ${all.length - NAMED} more` : '';
  return `${all.slice(0, NAMED).join(', ')}${more}`;
}

/** For the trace and nothing else. */
export const summary = ({ written, deleted, collisions }: RelatedReport): string =>
  `${written} written, ${deleted} deleted, ${collisions.length} in the way`;

/** `Conflicts` with the targets that are not ours. */
export function withCollisions(condition: WantedCondition, { collisions }: RelatedReport): WantedCondition {
  if (collisions.length === 0) return condition;
  const clashes = condition.status === 'True';
  const foreign = collisions.some(({ reason }) => reason === 'ForeignObjectExists');
  return {
    type: condition.type,
    status: 'True',
    reason: clashes ? condition.reason : foreign ? 'ForeignObjectExists' : 'OwnedByAnother',
    message: [...(clashes ? [condition.message] : []), collisionMessage(collisions)].join('; '),
  };
}

/** Names the objects and what to do about them. */
export function collisionMessage(collisions: readonly Collision[]): string {
  const count = collisions.length === 1 ? '1 related object is' : `${collisions.length} related objects are`;
  const named = firstFew(collisions.map(({ object, reason }) => `${object} (${reason})`));
  return `${count} not copied, because the target is not ours and is left alone: ${named}. Delete or rename what is there, or select less`;
}

/** `PermissionDenied` with what was forbidden here. */
export function withDenials(condition: WantedCondition, { denied }: RelatedReport): WantedCondition {
  if (denied.length === 0) return condition;
  const messages = [...(condition.status === 'True' ? [condition.message] : []), firstFew(denied)];
  return { type: condition.type, status: 'True', reason: 'Forbidden', message: messages.join('; ') };
}

/** What a person should know although the binding is Ready: refusals, and Secrets that are taken without a selector (L7). */
export function relatedRemarks(binding: AnyBinding, { refused }: RelatedReport): string[] {
  const scope = binding.kind === 'Binding' ? `namespace ${binding.metadata.namespace ?? ''}` : 'all namespaces';
  const everything = routes
    .filter(({ ref }) => ref.resource === 'secrets')
    .flatMap((route) => entriesOf(binding, route).filter(selectsAll))
    .map(({ title }) => `warning: ${title} has no selector and copies every Secret of ${scope}, kubeconfigs included`);
  return [...everything, ...(refused.length === 0 ? [] : [firstFew(refused)])];
}
