import type { KubeObject, MetaObject, ObjectKey, ObjectMeta, ResourceRef } from '../model/api.ts';
import type { KbindError } from '../model/errors.ts';
import { isMap, type JsonMap } from './raw-json.ts';
import { apiVersionOf } from './paths.ts';
import { requestError, type Asked } from './status.ts';
import type { ListPage } from './types.ts';

/** What says 200 and is not what was asked for is no answer: a proxy's page, another server. */
const noAnswer = (asked: Asked, problem: string): KbindError => requestError('unavailable', asked, problem);

/** A question in the form of an object: it is answered and stored nowhere, so it has no name. */
const isReview = ({ ref }: Asked): boolean => ref?.group === 'authorization.k8s.io';

const TEXTS = ['namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp', 'generateName'];
const isText = (value: unknown): boolean => typeof value === 'string';
const isAbsent = (value: unknown): boolean => value === undefined || value === null;

/** Whether metadata has the types that everybody relies on: a server that lies about them must not get further than this. */
function isWellFormed(metadata: JsonMap): boolean {
  const { labels, annotations, finalizers, managedFields, ownerReferences } = metadata;
  const isTextMap = (value: unknown): boolean =>
    isAbsent(value) || (isMap(value) && Object.values(value).every(isText));
  const isListOf = (value: unknown, fits: (item: unknown) => boolean): boolean =>
    isAbsent(value) || (Array.isArray(value) && value.every(fits));
  return (
    TEXTS.every((field) => isAbsent(metadata[field]) || isText(metadata[field])) &&
    isTextMap(labels) &&
    isTextMap(annotations) &&
    isListOf(finalizers, isText) &&
    isListOf(managedFields, isMap) &&
    isListOf(ownerReferences, isMap)
  );
}

/** An answered object. Throws class `unavailable` for anything else, an object of another name included. */
export function toObject(value: unknown, asked: Asked & { readonly key?: ObjectKey | undefined }): KubeObject {
  const metadata = isMap(value) ? value['metadata'] : undefined;
  const named = isReview(asked) || (isMap(metadata) && typeof metadata['name'] === 'string');
  if (!isMap(value) || !isMap(metadata) || !named || !isWellFormed(metadata)) {
    throw noAnswer(asked, 'the answer is no object');
  }
  if (asked.key !== undefined && metadata['name'] !== asked.key.name) {
    throw noAnswer(asked, 'the answer is another object');
  }
  return value as unknown as KubeObject;
}

/** An item of a list: those of the core group carry neither apiVersion nor kind, those of metadata lists not their own. */
export function toItem(value: unknown, ref: ResourceRef, asked: Asked): KubeObject {
  const { apiVersion, kind, ...rest } = toObject(value, { verb: asked.verb, ref, side: asked.side });
  return { apiVersion: apiVersion ?? apiVersionOf(ref), kind: kind ?? ref.kind, ...rest };
}

/** The metadata of an object or of a PartialObjectMetadata, under the resource's own kind. */
export function toMetadata(value: unknown, ref: ResourceRef, asked: Asked): MetaObject {
  const { metadata } = toObject(value, { verb: asked.verb, ref, side: asked.side });
  return { apiVersion: apiVersionOf(ref), kind: ref.kind, metadata };
}

type PageHead = Pick<ListPage<never>, 'resourceVersion' | 'continue' | 'remainingItemCount'>;

/** A list's items as they came, with what its metadata says. Throws class `unavailable` for what is no list. */
export function toList(value: unknown, asked: Asked): PageHead & { readonly items: readonly unknown[] } {
  const metadata = isMap(value) ? value['metadata'] : undefined;
  // An empty list of Go's may be null, but it is never left out: what has no items is no list, and not an empty one.
  const items = isMap(value) && 'items' in value ? (value['items'] ?? []) : undefined;
  if (!isMap(metadata) || !Array.isArray(items) || typeof metadata['resourceVersion'] !== 'string') {
    throw noAnswer(asked, 'the answer is no list');
  }
  const token = metadata['continue'];
  const remaining = metadata['remainingItemCount'];
  return {
    items,
    resourceVersion: metadata['resourceVersion'],
    ...(typeof token === 'string' && token !== '' ? { continue: token } : {}),
    ...(typeof remaining === 'number' ? { remainingItemCount: remaining } : {}),
  };
}

/** The resourceVersion in the metadata of a bookmark. */
export function bookmarkVersion(value: unknown): string | undefined {
  const metadata = isMap(value) ? (value['metadata'] as Partial<ObjectMeta> | undefined) : undefined;
  return typeof metadata?.resourceVersion === 'string' ? metadata.resourceVersion : undefined;
}
