import { timestamp, type KubeObject } from '../api/object.ts';
import { badRequest, conflict, forbidden, invalid, type Cause, type Status } from '../api/status.ts';
import { parseBody } from '../http/body.ts';
import { isObject, textAt } from '../json/json.ts';
import type { Resource } from '../api/resource.ts';
import { dryRunProblems, readBoolean } from './options.ts';
import { checkConversion, list, mustGet, type ListAnswer } from './read.ts';
import { atVersion, type Answer, type Call, type World } from './world.ts';

/** Finalizers that the garbage collector releases. */
export const ORPHAN = 'orphan';
export const FOREGROUND = 'foregroundDeletion';

/** What a DELETE asks for. */
export interface DeleteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: string;
  readonly dryRun: boolean;
}

const IMMORTAL = new Set(['default', 'kube-system', 'kube-public']);

/** DELETE of one object. */
export function remove(call: Call): Answer {
  const options = readDeleteOptions(call);
  const object = mustGet(call);
  checkConversion(call);
  if (call.resource.group === '' && call.resource.plural === 'namespaces' && IMMORTAL.has(object.metadata.name)) {
    throw forbidden(call.resource, object.metadata.name, 'this namespace may not be deleted');
  }
  checkPreconditions(call.resource, object, options);
  const { left } = deleteObject(call.world, call.resource, object, options);
  const code = left && (options.propagation === 'Foreground' || options.propagation === undefined) ? 200 : 200;
  return { code, body: left ? atVersion(left, call) : deletedStatus(call.resource, object) };
}

/** DELETE of a collection, object by object. */
export function removeCollection(call: Call): Answer {
  const options = readDeleteOptions(call);
  const listed = list(call).body as ListAnswer;
  const items: KubeObject[] = [];
  for (const item of listed.items) {
    const table = call.world.store.table(call.resource);
    const key = item.metadata.namespace ? `${item.metadata.namespace}/${item.metadata.name}` : item.metadata.name;
    const object = table.get(key);
    if (!object) continue;
    checkPreconditions(call.resource, object, options);
    const { left, gone } = deleteObject(call.world, call.resource, object, options);
    items.push(atVersion(left ?? gone ?? object, call));
  }
  return { code: 200, body: { ...listed, items } };
}

function deletedStatus(resource: Resource, object: KubeObject): Status {
  const { name, uid } = object.metadata;
  const details = {
    name,
    ...(resource.group && { group: resource.group }),
    kind: resource.plural,
    ...(uid && { uid }),
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}

/** What is left of a deleted object: itself, being deleted, or nothing. */
export interface Deletion {
  readonly left?: KubeObject;
  readonly gone?: KubeObject;
}

/** Deletes an object, or marks it as being deleted while finalizers hold it. */
export function deleteObject(world: World, resource: Resource, object: KubeObject, options: DeleteOptions): Deletion {
  const finalizers = propagationFinalizers(object, options.propagation);
  const marked = resource.strategy.prepareDelete?.(object, world.now()) ?? mark(object, finalizers, world.now());
  if ((marked.metadata.finalizers ?? []).length === 0 && !resource.strategy.prepareDelete) {
    if (options.dryRun) return { gone: object };
    return { gone: world.store.remove(resource, object) };
  }
  if (sameMark(object, marked)) return { left: object };
  return { left: options.dryRun ? marked : world.store.put(resource, marked) };
}

const sameMark = (before: KubeObject, after: KubeObject): boolean =>
  before.metadata.deletionTimestamp !== undefined &&
  JSON.stringify(before.metadata.finalizers) === JSON.stringify(after.metadata.finalizers);

function propagationFinalizers(object: KubeObject, propagation: string | undefined): string[] {
  const others = (object.metadata.finalizers ?? []).filter((each) => each !== ORPHAN && each !== FOREGROUND);
  const present = (object.metadata.finalizers ?? []).filter((each) => each === ORPHAN || each === FOREGROUND);
  if (propagation === undefined) return [...others, ...present];
  if (propagation === 'Orphan') return [...others, ORPHAN];
  return propagation === 'Foreground' ? [...others, FOREGROUND] : others;
}

/** The object as it is while finalizers hold it. */
export function mark(object: KubeObject, finalizers: string[], now: Date): KubeObject {
  const metadata = { ...object.metadata, finalizers };
  if (!metadata.deletionTimestamp) {
    if (metadata.generation !== undefined && metadata.generation > 0) metadata.generation += 1;
    metadata.deletionTimestamp = timestamp(now);
    metadata.deletionGracePeriodSeconds = 0;
  }
  if (finalizers.length === 0) delete (metadata as { finalizers?: string[] }).finalizers;
  return { ...object, metadata };
}

function checkPreconditions(resource: Resource, object: KubeObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = options;
  const { metadata } = object;
  if (uid !== undefined && uid !== metadata.uid) {
    throw conflict(
      resource,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      resource,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

const POLICIES = ['Foreground', 'Background', 'Orphan'];

function readDeleteOptions(call: Call): DeleteOptions {
  const { query } = call;
  const body = call.body.length > 0 ? parseBody(call.body, call.contentType) : {};
  if (!isObject(body))
    throw badRequest("couldn't get version/kind; json parse error: cannot unmarshal into Go value of type struct");
  const kind = body['kind'];
  if (kind !== undefined && kind !== 'DeleteOptions')
    throw badRequest(`decoded object cannot be converted to DeleteOptions: ${JSON.stringify(kind)}`);
  const uid = textAt(body, 'preconditions', 'uid');
  const resourceVersion = textAt(body, 'preconditions', 'resourceVersion');
  const propagation =
    textAt(body, 'propagationPolicy') ||
    query.get('propagationPolicy') ||
    orphanPolicy(body['orphanDependents'] ?? query.get('orphanDependents'));
  const dryRun = body['dryRun'] ?? query.getAll('dryRun');
  checkOptions(call, propagation, dryRun);
  return {
    ...(uid && { uid }),
    ...(resourceVersion && { resourceVersion }),
    ...(propagation && { propagation }),
    dryRun: Array.isArray(dryRun) && dryRun.includes('All'),
  };
}

function orphanPolicy(orphan: unknown): string {
  if (orphan === undefined || orphan === null) return '';
  return (typeof orphan === 'string' ? readBoolean(orphan) : orphan) ? 'Orphan' : 'Background';
}

function checkOptions(call: Call, propagation: string, dryRun: unknown): void {
  const causes: Cause[] = dryRunProblems(call.query);
  if (Array.isArray(dryRun) && dryRun.some((each) => each !== 'All'))
    causes.push({
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(dryRun)}: supported values: "All"`,
      field: 'dryRun',
    });
  if (propagation && !POLICIES.includes(propagation)) {
    causes.push({
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(propagation)}: supported values: "Background", "Foreground", "Orphan", "nil"`,
      field: 'propagationPolicy',
    });
  }
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes);
}
