import { keyOf, type KubeObject, type ResourceRef } from '../model/api.ts';
import type { JsonPatchOperation, KubeClient, WriteOptions } from '../kube/types.ts';

/**
 * Finalizers, labels, annotations and status of objects that are not ours to own: JSON patches that test uid and
 * resourceVersion (design.md, Writes). Each answers with the object as the server left it. Nothing is sent for no change.
 */

const pointer = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

const versionOf = ({ metadata }: KubeObject): { uid: string; resourceVersion: string } => ({
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
});

async function patchMetadata(
  client: KubeClient,
  target: { readonly ref: ResourceRef; readonly object: KubeObject },
  operations: readonly JsonPatchOperation[],
  options: WriteOptions = {},
): Promise<KubeObject> {
  if (operations.length === 0) return target.object;
  return client.patch(target.ref, keyOf(target.object), { read: versionOf(target.object), operations }, options);
}

/** True when the object carries the finalizer. */
export const hasFinalizer = (object: Pick<KubeObject, 'metadata'>, finalizer: string): boolean =>
  object.metadata.finalizers?.includes(finalizer) ?? false;

/** Adds a finalizer. The caller has made sure that the object is not deleting: the API server refuses it then. */
export function addFinalizer(
  client: KubeClient,
  target: { readonly ref: ResourceRef; readonly object: KubeObject },
  finalizer: string,
  options?: WriteOptions,
): Promise<KubeObject> {
  return patchMetadata(client, target, finalizerOperations(target.object, finalizer), options);
}

function finalizerOperations({ metadata }: KubeObject, finalizer: string): JsonPatchOperation[] {
  if (hasFinalizer({ metadata }, finalizer)) return [];
  return metadata.finalizers === undefined || metadata.finalizers.length === 0
    ? [{ op: 'add', path: '/metadata/finalizers', value: [finalizer] }]
    : [{ op: 'add', path: '/metadata/finalizers/-', value: finalizer }];
}

/** Removes a finalizer, by position under a resourceVersion test, so that nobody else's goes with it. */
export function removeFinalizer(
  client: KubeClient,
  target: { readonly ref: ResourceRef; readonly object: KubeObject },
  finalizer: string,
  options?: WriteOptions,
): Promise<KubeObject> {
  const index = target.object.metadata.finalizers?.indexOf(finalizer) ?? -1;
  if (index < 0) return Promise.resolve(target.object);
  const path = `/metadata/finalizers/${index}`;
  const operations: JsonPatchOperation[] = [
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ];
  return patchMetadata(client, target, operations, options);
}

/** Labels and annotations to set; `undefined` removes one. */
export interface MarkerChanges {
  readonly labels?: Readonly<Record<string, string | undefined>>;
  readonly annotations?: Readonly<Record<string, string | undefined>>;
}

/** The operations that bring a map of strings from what it is to what is wanted; none where nothing changes. */
function mapOperations(
  path: '/metadata/labels' | '/metadata/annotations',
  present: Readonly<Record<string, string>> | undefined,
  changes: Readonly<Record<string, string | undefined>> = {},
): JsonPatchOperation[] {
  const changed = Object.entries(changes).filter(([key, value]) => present?.[key] !== value);
  if (changed.length === 0) return [];
  if (present === undefined) {
    return [{ op: 'add', path, value: Object.fromEntries(changed.filter(([, value]) => value !== undefined)) }];
  }
  return changed.map(([key, value]) =>
    value === undefined
      ? { op: 'remove', path: `${path}/${pointer(key)}` }
      : { op: 'add', path: `${path}/${pointer(key)}`, value },
  );
}

const markerOperations = ({ metadata }: KubeObject, { labels, annotations }: MarkerChanges): JsonPatchOperation[] => [
  ...mapOperations('/metadata/labels', metadata.labels, labels),
  ...mapOperations('/metadata/annotations', metadata.annotations, annotations),
];

/** True where {@link setMarkers} would write: an object that carries the markers already is left alone. */
export const changesMarkers = (object: KubeObject, changes: MarkerChanges): boolean =>
  markerOperations(object, changes).length > 0;

/** Sets and removes our markers on an object, with a finalizer to add in the same write where one is named. */
export function setMarkers(
  client: KubeClient,
  target: { readonly ref: ResourceRef; readonly object: KubeObject },
  changes: MarkerChanges & { readonly finalizer?: string },
  options?: WriteOptions,
): Promise<KubeObject> {
  const operations = [
    ...markerOperations(target.object, changes),
    ...(changes.finalizer === undefined ? [] : finalizerOperations(target.object, changes.finalizer)),
  ];
  return patchMetadata(client, target, operations, options);
}

/** Replaces the status of one of our own kinds (Connection, bindings) whole. The caller compares first. */
export function writeStatus(
  client: KubeClient,
  target: { readonly ref: ResourceRef; readonly object: KubeObject },
  status: unknown,
  options?: WriteOptions,
): Promise<KubeObject> {
  return client.patch(
    target.ref,
    keyOf(target.object),
    {
      read: versionOf(target.object),
      operations: [{ op: 'add', path: '/status', value: status }],
      subresource: 'status',
    },
    options,
  );
}
