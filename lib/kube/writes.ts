import type { KubeObject, ObjectKey, ResourceRef } from '../model/api.ts';
import { isError, KbindError } from '../model/errors.ts';
import { FIELD_MANAGER } from '../model/markers.ts';
import type { Call, Exchange } from './exchange.ts';
import { printForApply, printJson } from './json.ts';
import { toObject } from './objects.ts';
import { collectionPath, objectPath, type Query } from './paths.ts';
import { getObject, MAX_OBJECT_BYTES } from './reads.ts';
import { requestError } from './status.ts';
import type { JsonPatchOperation, KubeWrites, ReadVersion, SentObject, WriteOptions } from './types.ts';

const APPLY = 'application/apply-patch+yaml';
const JSON_PATCH = 'application/json-patch+json';

interface Target {
  readonly verb: string;
  readonly ref: ResourceRef;
  readonly key: ObjectKey;
}

/** The writing half of a client: the writes of design.md's table, each with its guard. */
export function createWrites(exchange: Exchange): KubeWrites {
  const write = (target: Target, call: Partial<Call>, options?: WriteOptions): Promise<KubeObject> =>
    sendWrite(exchange, target, { call, options });
  return {
    create: async (ref, object, options) => {
      const { namespace, name = '' } = object.metadata;
      const target = { verb: 'create', ref, key: { namespace, name } };
      const query = { ...queryOf(options), ...strictQuery(options) };
      return write(
        target,
        { method: 'POST', path: collectionPath(ref, namespace), query, body: printed(target, object) },
        options,
      );
    },
    apply: async (ref, object, read, options) => {
      const target = { verb: 'apply', ref, key: keyOfSent(object) };
      const { uid, resourceVersion } = complete(read, target);
      const versioned = { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
      const body = printed(target, versioned, printForApply);
      const query = { ...queryOf(options), ...strictQuery(options), force: true };
      return guarded(write(target, { method: 'PATCH', contentType: APPLY, query, body }, options));
    },
    update: async (ref, object, options) => {
      const target = { verb: 'update', ref, key: keyOfSent(object) };
      complete(object.metadata, target);
      return guarded(write(target, { method: 'PUT', query: queryOf(options), body: printed(target, object) }, options));
    },
    patch: async (ref, key, change, options) => {
      const target = { verb: 'patch', ref, key };
      const body = printed(target, [...guardsOf(change.read, target), ...change.operations]);
      const path = objectPath(ref, key, change.subresource);
      const query = queryOf(options);
      const sent = write(target, { method: 'PATCH', path, contentType: JSON_PATCH, query, body }, options);
      if (change.subresource === undefined) return guarded(sent);
      const look = { target, uid: change.read.uid, signal: options?.signal };
      return guarded(orWithoutSubresource(exchange, look, sent));
    },
    delete: async (ref, key, read, options) => sendDelete(exchange, { verb: 'delete', ref, key }, { read, options }),
  };
}

async function sendWrite(
  exchange: Exchange,
  target: Target,
  { call, options }: { readonly call: Partial<Call>; readonly options: WriteOptions | undefined },
): Promise<KubeObject> {
  const { json } = await exchange.send({
    ...target,
    method: 'POST',
    path: call.path ?? objectPath(target.ref, target.key),
    maxBytes: MAX_OBJECT_BYTES,
    belief: options?.belief,
    signal: options?.signal,
    ...call,
  });
  const { key } = target;
  return toObject(json, exchange.asked(key.name === '' ? { verb: target.verb, ref: target.ref } : target));
}

/** What a write was guarded by is gone with the object: read again (design.md, Writes). */
async function guarded(write: Promise<KubeObject>): Promise<KubeObject> {
  try {
    return await write;
  } catch (error) {
    if (!isError(error, 'absent', 'namespace-missing')) throw error;
    throw new KbindError('conflict', error.message, error.details, error);
  }
}

/**
 * A patch of a subresource that the API does not have is answered like one of an object that is gone, naming it (tried on
 * 1.20.2 and 1.37.2). Only a look at the object tells: still there → class `unserved`.
 */
async function orWithoutSubresource(
  exchange: Exchange,
  { target, uid, signal }: { readonly target: Target; readonly uid: string; readonly signal: AbortSignal | undefined },
  sent: Promise<KubeObject>,
): Promise<KubeObject> {
  try {
    return await sent;
  } catch (error) {
    if (!isError(error, 'absent')) throw error;
    const { metadata } = await getObject(exchange, { ref: target.ref, key: target.key }, { signal });
    if (metadata.uid !== uid) throw error;
    throw requestError('unserved', target, 'the API has no such subresource', error);
  }
}

async function sendDelete(
  exchange: Exchange,
  target: Target,
  { read, options }: { readonly read: ReadVersion; readonly options: WriteOptions | undefined },
): Promise<void> {
  const { uid, resourceVersion } = complete(read, target);
  // With a body, the server takes dryRun from it and not from the query.
  const body = {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: { uid, resourceVersion },
    ...(options?.dryRun === true ? { dryRun: ['All'] } : {}),
  };
  await exchange.send({
    ...target,
    method: 'DELETE',
    path: objectPath(target.ref, target.key),
    body: printJson(body),
    maxBytes: MAX_OBJECT_BYTES,
    belief: options?.belief,
    signal: options?.signal,
  });
}

/** What cannot be printed, nested too deeply for JSON.stringify, is refused for what it is. */
function printed(target: Target, value: unknown, print: (value: unknown) => string = printJson): string {
  try {
    return print(value);
  } catch (error) {
    throw requestError('invalid', target, 'the object cannot be printed as JSON', error);
  }
}

const queryOf = (options: WriteOptions | undefined): Query => ({
  fieldManager: options?.fieldManager ?? FIELD_MANAGER,
  dryRun: options?.dryRun === true ? 'All' : undefined,
});

const strictQuery = (options: { readonly strict?: boolean } | undefined): Query =>
  options?.strict === true ? { fieldValidation: 'Strict' } : {};

/** A write without its guard must not leave: printed as JSON, an undefined guard would just be missing. */
function complete(read: Partial<ReadVersion>, target: Target): ReadVersion {
  const { uid, resourceVersion } = read;
  if (uid === undefined || uid === '' || resourceVersion === undefined || resourceVersion === '') {
    throw requestError('internal', target, 'a write without uid and resourceVersion');
  }
  return { uid, resourceVersion };
}

function guardsOf(
  read: { readonly uid: string; readonly resourceVersion?: string | undefined },
  target: Target,
): JsonPatchOperation[] {
  const version = 'resourceVersion' in read && read.resourceVersion !== undefined ? read.resourceVersion : undefined;
  const { uid } = complete({ uid: read.uid, resourceVersion: version ?? 'untested' }, target);
  const uidTest: JsonPatchOperation = { op: 'test', path: '/metadata/uid', value: uid };
  if (version === undefined) return [uidTest];
  return [uidTest, { op: 'test', path: '/metadata/resourceVersion', value: version }];
}

const keyOfSent = ({ metadata: { namespace, name = '' } }: SentObject | KubeObject): ObjectKey => ({ namespace, name });
