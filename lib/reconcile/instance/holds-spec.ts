import { isMap, jsonEqual, type JsonMap } from '../../kube/json.ts';
import type { KubeObject } from '../../model/api.ts';
import { FIELD_MANAGER } from '../../model/markers.ts';

/**
 * Whether a copy's spec holds everything that its source's asks for; what the provider added beside it is its own. Lists
 * need a second look: a provider that defaults fields inside list items (a port's protocol, say) has not drifted, but
 * somebody who edits an item of an atomic list has, and only field ownership tells the two apart: the API server takes a
 * list away from our field manager when another one changes it.
 */
export function holdsSpec(copy: KubeObject, source: KubeObject): boolean {
  return source.spec === undefined || holds(copy.spec ?? null, source.spec, childOf(ownedFields(copy), 'spec'));
}

/** The same, whoever owns the lists: what differs beyond this was altered and not only added to. */
export function holdsSpecLoosely(copy: KubeObject, source: KubeObject): boolean {
  return source.spec === undefined || holds(copy.spec ?? null, source.spec, OWNED);
}

type Fields = JsonMap | undefined;

/** A leaf of `fieldsV1`: that value is ours whole. */
const OWNED: Fields = {};

/** What our field manager owns of a copy, as `fieldsV1` writes it; undefined when it owns nothing. */
function ownedFields({ metadata }: KubeObject): Fields {
  const entries = (metadata.managedFields ?? []).filter(
    ({ manager, subresource }) => manager === FIELD_MANAGER && (subresource ?? '') === '',
  );
  // An Apply entry counts before what is left of the create's: the first apply joins the two.
  const entry = entries.find(({ operation }) => operation === 'Apply') ?? entries[0];
  return isMap(entry?.fieldsV1) ? entry.fieldsV1 : undefined;
}

function childOf(fields: Fields, key: string): Fields {
  if (fields === undefined || Object.keys(fields).length === 0) return fields;
  const child = fields[`f:${key}`];
  return isMap(child) ? child : undefined;
}

function holds(whole: unknown, part: unknown, fields: Fields): boolean {
  if (jsonEqual(whole, part)) return true;
  if (isMap(part)) {
    if (!isMap(whole)) return false;
    return Object.keys(part)
      .filter((key) => part[key] !== undefined)
      .every((key) => Object.hasOwn(whole, key) && holds(whole[key], part[key], childOf(fields, key)));
  }
  if (!Array.isArray(part) || !Array.isArray(whole) || whole.length !== part.length || fields === undefined)
    return false;
  return part.every((item, index) => holds(whole[index], item, OWNED));
}
