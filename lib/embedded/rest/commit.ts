import type { KubeObject, ManagedFieldsEntry } from '../api/object.ts';
import { equal } from '../json/json.ts';
import type { Resource } from '../api/resource.ts';
import { plainError } from '../api/status.ts';
import type { World } from './world.ts';

/** etcd's limit of one object. */
const MAX_OBJECT = 1.5 * 1024 * 1024;
/** Objects that are far from the limit need not be measured exactly. */
const SURE_TO_FIT = MAX_OBJECT / 8;

/** Stores an object, or shows what would be stored. */
export function commit(world: World, resource: Resource, object: KubeObject, dryRun: boolean): KubeObject {
  checkSize(object);
  return dryRun ? object : world.store.put(resource, object);
}

function checkSize(object: KubeObject): void {
  const text = JSON.stringify(object);
  if (text.length < SURE_TO_FIT) return;
  if (Buffer.byteLength(text) > MAX_OBJECT) throw plainError('etcdserver: request is too large');
}

/** Whether a write would change nothing; times of managedFields alone are no change. */
export function isUnchanged(live: KubeObject, next: KubeObject): boolean {
  if (live.metadata.managedFields === next.metadata.managedFields) return equal(live, next);
  const [before, after] = [entries(live), entries(next)];
  if (before.length !== after.length) return false;
  const timeless = (list: readonly ManagedFieldsEntry[]): unknown => list.map(({ time: _time, ...rest }) => rest);
  if (!equal(timeless(before), timeless(after))) return false;
  return equal(withoutManagers(live), withoutManagers(next));
}

const entries = (object: KubeObject): readonly ManagedFieldsEntry[] => object.metadata.managedFields ?? [];

const withoutManagers = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, managedFields: [] },
});

/** Whether an object that is being deleted may go now. */
export const mayGo = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers ?? []).length === 0;
