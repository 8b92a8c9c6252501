import type { Json, ManagedFieldsEntry, MetaObject } from '../model/api.ts';
import { FIELD_MANAGER } from '../model/markers.ts';

/**
 * A POST records its fields as an `Update` of ours. Server-side apply removes only what an `Apply` of the same manager
 * owned before, so that fields which leave the source would stay on the copy. Hence, before the first apply,
 * the entry is turned into an `Apply` (design.md, Writes).
 */

export type FieldSet = Readonly<Record<string, Json | undefined>>;

const isOf =
  (manager: string) =>
  (entry: ManagedFieldsEntry): boolean =>
    entry.manager === manager && (entry.subresource ?? '') === '';

/** The union of two `fieldsV1` sets. */
function union(a: FieldSet, b: FieldSet): FieldSet {
  const joined: Record<string, Json | undefined> = { ...a };
  for (const [path, below] of Object.entries(b)) {
    const present = joined[path];
    joined[path] = present === undefined ? below : union(present as FieldSet, (below ?? {}) as FieldSet);
  }
  return joined;
}

const fieldsOf = (entry: ManagedFieldsEntry): FieldSet => (entry.fieldsV1 ?? {}) as FieldSet;

/**
 * The `managedFields` to write so that everything of ours is owned by `Apply`; undefined when it is already. All of our
 * entries are joined into one, because the server knows one `Apply` entry per manager.
 */
export function asApplied(
  target: MetaObject,
  manager: string = FIELD_MANAGER,
): readonly ManagedFieldsEntry[] | undefined {
  const entries = target.metadata.managedFields ?? [];
  const isOurs = isOf(manager);
  const ours = entries.filter(isOurs);
  if (!ours.some((entry) => entry.operation === 'Update')) return undefined;
  const first = ours.find((entry) => entry.operation === 'Apply') ?? ours[0];
  const joined: ManagedFieldsEntry = {
    ...first,
    operation: 'Apply',
    fieldsV1: ours.map(fieldsOf).reduce(union),
  };
  return [joined, ...entries.filter((entry) => !isOurs(entry))];
}

/** Every field that a manager owns, by Update or Apply. */
export const ownedFields = (target: MetaObject, manager: string): FieldSet =>
  (target.metadata.managedFields ?? []).filter(isOf(manager)).map(fieldsOf).reduce(union, {});
