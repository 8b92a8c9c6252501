import { randomBytes, randomUUID } from 'node:crypto';
import { validateMetadata } from '../api/metadata.ts';
import { keyOf, timestamp, type KubeObject } from '../api/object.ts';
import { groupVersion } from '../api/resource.ts';
import { alreadyExists, badRequest, forbidden, invalid, notFound, plainError } from '../api/status.ts';
import { parseBody } from '../http/body.ts';
import { sorted } from '../json/json.ts';
import { trackUpdate } from '../ssa/fieldmanager.ts';
import { commit } from './commit.ts';
import { checkKind, shape } from './decode.ts';
import { managedWrite } from './managed.ts';
import { writeOptions, type WriteOptions } from './options.ts';
import { checkConversion } from './read.ts';
import { validateObject } from './validation.ts';
import { atVersion, type Answer, type Call } from './world.ts';

const NAMESPACES = { group: '', plural: 'namespaces' };
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const MAX_GENERATED_BASE = 58;

/** POST of a new object. */
export function create(call: Call): Answer {
  const options = writeOptions(call);
  const body = checkKind(parseBody(call.body, call.contentType, !call.resource.custom), call);
  const object = shape(body, call, options.fieldValidation);
  return { code: 201, body: createObject(call, object, options) };
}

/** Creates an object that has been decoded, at the version of the call. */
export function createObject(call: Call, object: KubeObject, options: WriteOptions): KubeObject {
  const { world, resource } = call;
  checkConversion(call);
  placeInNamespace(call, object);
  if (object.metadata.resourceVersion && object.metadata.resourceVersion !== '0') {
    throw plainError('resourceVersion should not be set on objects to be created');
  }
  const tracked = trackUpdate(undefined, fresh(call, object), managedWrite(call, options, 'Update'));
  return storeNew(
    call,
    tracked,
    options,
    world.store.table(resource).get(keyOf(tracked.metadata.namespace ?? '', tracked.metadata.name)),
  );
}

/** Validates and stores a new object whose fields are owned already. */
export function storeNew(
  call: Call,
  tracked: KubeObject,
  options: WriteOptions,
  present: KubeObject | undefined,
): KubeObject {
  const { world, resource } = call;
  resource.strategy.prepareCreate?.(tracked);
  const stored = resource.custom
    ? sorted({ ...tracked, apiVersion: groupVersion(resource.group, resource.storageVersion) })
    : tracked;
  const causes = [...validateMetadata(resource, stored), ...validateObject(call, stored)];
  if (causes.length > 0) throw invalid(resource, stored.metadata.name, causes);
  checkNamespace(call, stored);
  if (present) throw alreadyExists(resource, stored.metadata.name);
  return atVersion(commit(world, resource, stored, options.dryRun), call);
}

/** The namespace of the URL, which the object may repeat but not contradict. */
export function placeInNamespace(call: Call, object: KubeObject): void {
  const { resource, info } = call;
  if (!resource.namespaced) {
    delete object.metadata.namespace;
    return;
  }
  const { namespace } = object.metadata;
  if (namespace && namespace !== info.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  }
  object.metadata.namespace = info.namespace;
}

/** Fills in what the server decides about a new object. */
export function fresh(call: Call, object: KubeObject): KubeObject {
  const { world, resource } = call;
  const metadata = { ...object.metadata };
  delete metadata.resourceVersion;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.generation;
  delete metadata.selfLink;
  if (!metadata.name && metadata.generateName) metadata.name = generateName(metadata.generateName);
  metadata.uid = randomUUID();
  metadata.creationTimestamp = timestamp(world.now());
  if (resource.strategy.generation) metadata.generation = 1;
  const next: KubeObject = { ...object, metadata };
  if (call.version.status && resource.custom) delete next['status'];
  return next;
}

function generateName(base: string): string {
  let suffix = '';
  for (const byte of randomBytes(SUFFIX_LENGTH)) suffix += SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length] ?? 'x';
  return base.slice(0, MAX_GENERATED_BASE) + suffix;
}

/** New objects need a namespace that exists and is not going away. */
function checkNamespace(call: Call, object: KubeObject): void {
  const { world, resource } = call;
  if (resource.terminating) {
    throw forbidden(
      resource,
      object.metadata.name,
      'create not allowed while custom resource definition is terminating',
    );
  }
  const { namespace } = object.metadata;
  if (!resource.namespaced || !namespace) return;
  const found = world.store.table(NAMESPACES).get(namespace);
  if (!found) throw notFound(NAMESPACES, namespace);
  if (!found.metadata.deletionTimestamp) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  throw forbidden(resource, object.metadata.name, why, [cause]);
}
