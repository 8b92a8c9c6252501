import { hashJson } from '../../kube/json.ts';
import type { SentObject } from '../../kube/types.ts';
import type { KubeObject, MetaObject, ObjectKey, ResourceRef } from '../../model/api.ts';
import {
  APPLIED_HASH_ANNOTATION,
  CONSUMER_CLUSTER_UID,
  CONSUMER_OBJECT_UID,
  MANAGED_LABEL,
  TRUE,
} from '../../model/markers.ts';
import type { Owner } from './who-owns-it.ts';

/** Hash of a consumer object's spec as it is recorded on the copy. An absent spec has one as well. */
export const specHash = (source: KubeObject): string => hashJson(source.spec ?? null);

/** Labels and annotations of ours on a copy; nothing of the consumer's metadata travels. */
export interface CopyMarkers {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Everything that we write into a copy's metadata. */
export const copyMarkers = (owner: Owner, hash: string): CopyMarkers => ({
  labels: { [MANAGED_LABEL]: TRUE, [CONSUMER_CLUSTER_UID]: owner.cluster },
  annotations: {
    [CONSUMER_CLUSTER_UID]: owner.cluster,
    [CONSUMER_OBJECT_UID]: owner.object,
    [APPLIED_HASH_ANNOTATION]: hash,
  },
});

/** The copy as it is sent: spec, markers, nothing else. */
export function copyOf(
  source: KubeObject,
  target: { readonly ref: ResourceRef; readonly key: ObjectKey },
  owner: Owner,
): SentObject {
  const { ref, key } = target;
  return {
    apiVersion: ref.group === '' ? ref.version : `${ref.group}/${ref.version}`,
    kind: ref.kind,
    metadata: {
      name: key.name,
      ...(key.namespace === undefined ? {} : { namespace: key.namespace }),
      ...copyMarkers(owner, specHash(source)),
    },
    ...(source.spec === undefined ? {} : { spec: source.spec }),
  };
}

/** Takes every marker of ours off a copy again: what an Adopt whose source went away needs. */
export const withoutMarkers = {
  labels: { [MANAGED_LABEL]: undefined, [CONSUMER_CLUSTER_UID]: undefined },
  annotations: {
    [CONSUMER_CLUSTER_UID]: undefined,
    [CONSUMER_OBJECT_UID]: undefined,
    [APPLIED_HASH_ANNOTATION]: undefined,
  },
} as const;

/** True when every marker but the hash is there; a copy made by the Go konnector lacks those that are ours alone. */
export function carriesEveryMarker(target: MetaObject, owner: Owner): boolean {
  const { labels, annotations } = target.metadata;
  return (
    labels?.[MANAGED_LABEL] === TRUE &&
    labels[CONSUMER_CLUSTER_UID] === owner.cluster &&
    annotations?.[CONSUMER_CLUSTER_UID] === owner.cluster &&
    annotations[CONSUMER_OBJECT_UID] === owner.object
  );
}
