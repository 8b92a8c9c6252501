import { hashJson } from '../../kube/json.ts';
import type { SentObject } from '../../kube/types.ts';
import type { Json, KubeObject, MetaObject, ObjectKey, ResourceRef } from '../../model/api.ts';
import {
  CONSUMER_CLUSTER_UID,
  MANAGED_LABEL,
  RELATED_BINDING_ANNOTATION,
  RELATED_FIELD_MANAGER,
  TRUE,
} from '../../model/markers.ts';
import { ownedFields, type FieldSet } from '../field-ownership.ts';
import type { CopyOwner } from './who-made-it.ts';

/**
 * What travels of a Secret or ConfigMap: contents, type and immutability. Nothing of its metadata does, so that no tracking
 * label or annotation of another tool makes that tool prune the copy (field case 38). Pure.
 */
const MAPS = ['data', 'stringData', 'binaryData'] as const;

/**
 * Types that the target cluster itself acts on. A service account's token names an account that does not exist there, and
 * its controller deletes it; a bootstrap token would become a credential for the target. Their contents travel as Opaque.
 */
const INERT_HERE_ONLY: ReadonlySet<string> = new Set([
  'kubernetes.io/service-account-token',
  'bootstrap.kubernetes.io/token',
]);

/** The fields of a copy beside its metadata; empty ones are left out. */
export interface Content {
  readonly data?: StringMap;
  readonly stringData?: StringMap;
  readonly binaryData?: StringMap;
  readonly type?: string;
  readonly immutable?: true;
}

type StringMap = Readonly<Record<string, Json>>;

const mapOf = (object: Pick<KubeObject, 'metadata'>, field: string): StringMap =>
  ((object as KubeObject)[field] ?? {}) as StringMap;

function contentFrom(object: KubeObject, maps: (field: string) => StringMap, type: string | undefined): Content {
  const filled = MAPS.map((field) => [field, maps(field)] as const).filter(([, map]) => Object.keys(map).length > 0);
  return {
    ...Object.fromEntries(filled),
    ...(type === undefined ? {} : { type }),
    ...(object['immutable'] === true ? { immutable: true } : {}),
  };
}

const typeOf = (object: KubeObject): string | undefined =>
  object.kind === 'Secret' ? ((object['type'] ?? 'Opaque') as string) : undefined;

/** What a copy of this source must hold. */
export function contentOf(source: KubeObject): Content {
  const type = typeOf(source);
  const copied = type !== undefined && INERT_HERE_ONLY.has(type) ? 'Opaque' : type;
  return contentFrom(source, (field) => mapOf(source, field), copied);
}

/**
 * What a copy holds of ours: keys that our field manager owns, with their values. A key that somebody else added is theirs,
 * one that they changed is not ours any more and makes the copy differ.
 */
export function ownContentOf(copy: KubeObject): Content {
  const owned = ownedFields(copy, RELATED_FIELD_MANAGER);
  const ownKeys = (field: string): StringMap => {
    const keys = (owned[`f:${field}`] ?? {}) as FieldSet;
    return Object.fromEntries(Object.entries(mapOf(copy, field)).filter(([key]) => `f:${key}` in keys));
  };
  return contentFrom(copy, ownKeys, typeOf(copy));
}

/** For comparisons in memory only: a hash of Secret data is a fingerprint, and is neither stored nor logged. */
export const contentHash = (content: Content): string => hashJson(content);

/** Labels and annotations of a copy. */
export const copyMarkers = ({ cluster, binding }: CopyOwner) => ({
  labels: { [MANAGED_LABEL]: TRUE, [CONSUMER_CLUSTER_UID]: cluster },
  annotations: { [CONSUMER_CLUSTER_UID]: cluster, [RELATED_BINDING_ANNOTATION]: binding },
});

/** The copy as it is sent. */
export function copyOf(
  source: KubeObject,
  target: { readonly ref: ResourceRef; readonly key: ObjectKey },
  owner: CopyOwner,
): SentObject {
  const { ref, key } = target;
  return {
    apiVersion: ref.version,
    kind: ref.kind,
    metadata: { name: key.name, namespace: key.namespace, ...copyMarkers(owner) },
    ...contentOf(source),
  };
}

/** True when every marker is there; a copy made by the Go konnector lacks the label that is ours alone. */
export function carriesEveryMarker({ metadata }: MetaObject, owner: CopyOwner): boolean {
  const { labels, annotations } = copyMarkers(owner);
  const holds = (present: Readonly<Record<string, string>> | undefined, wanted: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([key, value]) => present?.[key] === value);
  return holds(metadata.labels, labels) && holds(metadata.annotations, annotations);
}

/** A copy that cannot be changed into what it must be: its data or its type cannot change, so it is made anew. */
export const mustReplace = (copy: Pick<Content, 'immutable' | 'type'>, wanted: Pick<Content, 'type'>): boolean =>
  copy.immutable === true || copy.type !== wanted.type;
