import { isMap, jsonEqual } from '../../lib/kube/json.ts';

/** True when `whole` has everything that `part` has: maps may have more members, at every depth; lists are equal. */
export function jsonContains(whole: unknown, part: unknown): boolean {
  if (!isMap(part)) return jsonEqual(whole, part);
  return (
    isMap(whole) &&
    Object.keys(part)
      .filter((key) => part[key] !== undefined)
      .every((key) => Object.hasOwn(whole, key) && jsonContains(whole[key], part[key]))
  );
}
