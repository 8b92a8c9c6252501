import { keyOf, type KubeObject } from '../api/object.ts';
import { badRequest, conflict, notFound } from '../api/status.ts';
import { parseYamlBody } from '../http/body.ts';
import { groupVersion } from '../api/resource.ts';
import { clone, isObject, textAt, type Obj } from '../json/json.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { prune } from '../schema/prune.ts';
import { applyManaged, checkApplied } from '../ssa/fieldmanager.ts';
import { fresh, placeInNamespace, storeNew } from './create.ts';
import { managedWrite } from './managed.ts';
import { writeOptions, type WriteOptions } from './options.ts';
import { callKey, checkConversion } from './read.ts';
import { checkIdentity } from './identity.ts';
import { replace, systemFields } from './update.ts';
import { tidyMetadata } from '../api/metadata.ts';
import { atVersion, type Answer, type Call } from './world.ts';
import { checkAppliedTypes } from './applytypes.ts';

/** PATCH with an applied configuration: creates what is not there. */
export function applyPatch(call: Call): Answer {
  const { world, resource, info } = call;
  const options = writeOptions(call, true);
  const applied = readApplied(call, options);
  const live = world.store.table(resource).get(callKey(call));
  if (!live) {
    if (info.subresource) throw notFound(resource, info.name);
    return { code: 201, body: createApplied(call, applied, options) };
  }
  checkConversion(call);
  const shown = atVersion(live, call);
  const write = { ...managedWrite(call, options, 'Apply'), force: options.force ?? false };
  const merged = settle(call, applyManaged(shown, applied, write));
  checkIdentity(call, merged, live);
  return { code: 200, body: replace(call, { live, next: systemFields(merged, live), options }) };
}

function readApplied(call: Call, options: WriteOptions): KubeObject {
  const { resource, version, info } = call;
  const body = parseYamlBody(call.body);
  if (!isObject(body))
    throw badRequest(
      'error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal into Go value of type map[string]interface {}',
    );
  const expected = groupVersion(resource.group, version.name);
  const [given, kind] = [textAt(body, 'apiVersion'), textAt(body, 'kind')];
  if (given !== expected || kind !== resource.kind)
    throw badRequest(`invalid object type: ${given || '/'}, Kind=${kind}`);
  if (!isObject(body['metadata'])) body['metadata'] = {};
  const applied = body as KubeObject;
  checkApplied(applied);
  if (!applied.metadata.name) {
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  }
  checkAppliedTypes(applied, call);
  placeInNamespace(call, applied);
  pruneApplied(applied, call, options);
  return applied;
}

// A custom resource's unknown fields are pruned from what is applied before anybody owns them.
function pruneApplied(applied: KubeObject, call: Call, options: WriteOptions): void {
  const copy = clone(applied) as Obj;
  const unknown = prune(copy, call.version.schema);
  if (unknown.length === 0 || options.fieldValidation === 'Ignore') return;
  if (options.fieldValidation === 'Warn')
    call.warnings.push(...unknown.map((path) => `unknown field ${JSON.stringify(path)}`));
}

/** Gives a merged object the shape that every stored object has. */
function settle(call: Call, merged: KubeObject): KubeObject {
  const object = clone(merged);
  const { managedFields } = object.metadata;
  prune(object, call.version.schema);
  applyDefaults(object, call.version.schema);
  object.metadata = tidyMetadata(object.metadata as unknown as Obj);
  if (managedFields) object.metadata.managedFields = managedFields;
  return object;
}

function createApplied(call: Call, applied: KubeObject, options: WriteOptions): KubeObject {
  const { resource, info, world } = call;
  const { uid } = applied.metadata;
  if (uid)
    throw conflict(
      resource,
      info.name,
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    );
  checkConversion(call);
  const empty = { apiVersion: applied.apiVersion, kind: applied.kind, metadata: {} } as unknown as KubeObject;
  const write = { ...managedWrite(call, options, 'Apply'), force: options.force ?? false };
  const merged = settle(call, applyManaged(empty, applied, write));
  checkIdentity(call, merged, merged);
  const { managedFields } = merged.metadata;
  const next = fresh(call, merged);
  if (managedFields) next.metadata.managedFields = managedFields;
  return storeNew(
    call,
    next,
    options,
    world.store.table(resource).get(keyOf(resource.namespaced ? info.namespace : '', info.name)),
  );
}
