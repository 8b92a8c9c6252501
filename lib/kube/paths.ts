import type { ObjectKey, ResourceRef } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';

/** `apiVersion` of a resource's objects. */
export const apiVersionOf = ({ group, version }: Pick<ResourceRef, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;

const groupPath = ({ group, version }: ResourceRef): string =>
  group === '' ? `/api/${segment(version)}` : `/apis/${segment(group)}/${segment(version)}`;

/** One path segment. `.` and `..` would name another path, whatever they are encoded as. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..' || text.includes('/')) {
    throw new KbindError('invalid', 'a name that cannot stand in a URL path');
  }
  return encodeURIComponent(text);
}

/** Path of a resource, of all namespaces or of one. */
export function collectionPath(ref: ResourceRef, namespace?: string): string {
  const inside = ref.namespaced && namespace !== undefined && namespace !== '';
  return `${groupPath(ref)}${inside ? `/namespaces/${segment(namespace)}` : ''}/${segment(ref.resource)}`;
}

/** Path of one object. A namespaced resource without a namespace is a bug of the caller (class `internal`). */
export function objectPath(ref: ResourceRef, key: ObjectKey, subresource?: string): string {
  if (ref.namespaced && (key.namespace === undefined || key.namespace === '')) {
    throw new KbindError('internal', `${ref.resource} need a namespace`, { key });
  }
  const path = `${collectionPath(ref, key.namespace)}/${segment(key.name)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource)}`;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** A path with its query; undefined values are left out. */
export function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return text === '' ? path : `${path}?${text}`;
}
