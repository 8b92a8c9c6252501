import { validateMetadata, validateMetadataUpdate } from '../api/metadata.ts';
import { groupVersion } from '../api/resource.ts';
import type { KubeObject } from '../api/object.ts';
import { badRequest, conflict, invalid, invalidValue, notFound } from '../api/status.ts';
import { parseBody } from '../http/body.ts';
import { equal, sorted } from '../json/json.ts';
import { trackUpdate } from '../ssa/fieldmanager.ts';
import { commit, isUnchanged, mayGo } from './commit.ts';
import { createObject, placeInNamespace } from './create.ts';
import { checkKind, shape } from './decode.ts';
import { managedWrite } from './managed.ts';
import { writeOptions, type WriteOptions } from './options.ts';
import { callKey, checkConversion } from './read.ts';
import { validateObject } from './validation.ts';
import { atVersion, type Answer, type Call } from './world.ts';

/** PUT of an object or of its status. */
export function update(call: Call): Answer {
  const { world, resource, info } = call;
  const options = writeOptions(call);
  if (!info.name) throw badRequest('name must be provided');
  const body = checkKind(parseBody(call.body, call.contentType, !call.resource.custom), call);
  const object = shape(body, call, options.fieldValidation);
  placeInNamespace(call, object);
  if (object.metadata.name !== info.name) {
    throw badRequest(
      object.metadata.name
        ? `the name of the object (${object.metadata.name}) does not match the name on the URL (${info.name})`
        : 'name must be provided',
    );
  }
  const live = world.store.table(resource).get(callKey(call));
  if (!live) {
    if (!resource.strategy.createOnUpdate || info.subresource) throw notFound(resource, info.name);
    return { code: 201, body: createObject(call, object, options) };
  }
  checkConversion(call);
  checkUid(call, object, live);
  const next = trackUpdate(atVersion(live, call), systemFields(object, live), managedWrite(call, options, 'Update'));
  return { code: 200, body: replace(call, { live, next, options }) };
}

function checkUid(call: Call, object: KubeObject, live: KubeObject): void {
  const { uid } = object.metadata;
  if (!uid || uid === live.metadata.uid) return;
  throw conflict(
    call.resource,
    call.info.name,
    `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid}`,
  );
}

/** What an update cannot choose, and what a status update leaves alone. */
export function systemFields(object: KubeObject, live: KubeObject): KubeObject {
  const { metadata } = object;
  const kept = { ...metadata };
  if (live.metadata.uid && !kept.uid) kept.uid = live.metadata.uid;
  if (live.metadata.generation === undefined) delete kept.generation;
  else kept.generation = live.metadata.generation;
  if (live.metadata.creationTimestamp) kept.creationTimestamp = live.metadata.creationTimestamp;
  if (live.metadata.deletionTimestamp) kept.deletionTimestamp = live.metadata.deletionTimestamp;
  else delete kept.deletionTimestamp;
  if (live.metadata.deletionGracePeriodSeconds === undefined) delete kept.deletionGracePeriodSeconds;
  else kept.deletionGracePeriodSeconds = live.metadata.deletionGracePeriodSeconds;
  delete kept.selfLink;
  return { ...object, metadata: kept };
}

/** A replacement of a stored object by one whose managedFields are set. */
export interface Replacement {
  readonly live: KubeObject;
  readonly next: KubeObject;
  readonly options: WriteOptions;
}

/** Validates and stores a new state; one that changes nothing is not stored, one that frees a deleted object removes it. */
export function replace(call: Call, { live, next, options }: Replacement): KubeObject {
  const { world, resource } = call;
  checkResourceVersion(call, next, live);
  const prepared = prepare(call, next, live);
  const causes = [
    ...validateMetadata(resource, prepared),
    ...validateMetadataUpdate(prepared, live),
    ...validateObject(call, prepared, live),
  ];
  if (causes.length > 0) throw invalid(resource, prepared.metadata.name, causes);
  if (isUnchanged(live, prepared)) {
    if (mayGo(live) && !options.dryRun) return atVersion(world.store.remove(resource, live), call);
    return atVersion(live, call);
  }
  if (mayGo(prepared)) return atVersion(options.dryRun ? prepared : world.store.remove(resource, prepared), call);
  return atVersion(commit(world, resource, prepared, options.dryRun), call);
}

function checkResourceVersion(call: Call, next: KubeObject, live: KubeObject): void {
  const { resource, info } = call;
  const { resourceVersion } = next.metadata;
  if (!resourceVersion || resourceVersion === '0') {
    const unconditional = resource.strategy.unconditionalUpdate || info.verb === 'patch';
    if (!unconditional) {
      throw invalid(resource, info.name, [
        invalidValue('metadata.resourceVersion', 0, 'must be specified for an update'),
      ]);
    }
  } else if (!/^\d+$/.test(resourceVersion)) {
    throw invalid(resource, info.name, [
      invalidValue(
        'metadata.resourceVersion',
        resourceVersion,
        `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`,
      ),
    ]);
  } else if (resourceVersion !== live.metadata.resourceVersion) throw conflict(resource, info.name);
}

function prepare(call: Call, next: KubeObject, live: KubeObject): KubeObject {
  const { resource, version, info } = call;
  const stored = resource.custom
    ? { ...next, apiVersion: groupVersion(resource.group, resource.storageVersion) }
    : next;
  const result = info.subresource === 'status' ? onlyStatus(stored, live) : stored;
  if (info.subresource !== 'status' && version.status) keepStatus(result, live);
  result.metadata = {
    ...result.metadata,
    ...(live.metadata.resourceVersion && { resourceVersion: live.metadata.resourceVersion }),
  };
  resource.strategy.prepareUpdate?.(result, live, info.subresource);
  if (resource.strategy.generation && info.subresource !== 'status' && specChanged(result, live, resource.custom)) {
    result.metadata.generation = (live.metadata.generation ?? 0) + 1;
  }
  return resource.custom ? sorted(result) : result;
}

function onlyStatus(next: KubeObject, live: KubeObject): KubeObject {
  const metadata = { ...live.metadata };
  if (next.metadata.managedFields) metadata.managedFields = next.metadata.managedFields;
  else delete metadata.managedFields;
  const result: KubeObject = { ...live, metadata };
  if (next['status'] === undefined) delete result['status'];
  else result['status'] = next['status'];
  return result;
}

function keepStatus(next: KubeObject, live: KubeObject): void {
  if (live['status'] === undefined) delete next['status'];
  else next['status'] = live['status'];
}

// Everything but metadata counts for custom resources, the spec alone for built-in ones.
function specChanged(next: KubeObject, live: KubeObject, custom: boolean): boolean {
  if (!custom) return !equal(next['spec'], live['spec']);
  const content = ({ metadata: _metadata, ...rest }: KubeObject): unknown => rest;
  return !equal(content(next), content(live));
}
