import type { KubeObject } from '../api/object.ts';
import { badRequest, invalid, notFound, StatusError, tooLarge, unsupportedMediaType } from '../api/status.ts';
import { parseJsonBody } from '../http/body.ts';
import { clone, isObject, type Obj } from '../json/json.ts';
import { applyJsonPatch, applyMergePatch, PatchProblem, readSteps } from '../patch/jsonpatch.ts';
import { applyStrategicPatch } from '../patch/strategic.ts';
import { trackUpdate } from '../ssa/fieldmanager.ts';
import { applyPatch } from './apply.ts';
import { shape } from './decode.ts';
import { checkIdentity } from './identity.ts';
import { managedWrite } from './managed.ts';
import { writeOptions, type WriteOptions } from './options.ts';
import { callKey, checkConversion } from './read.ts';
import { replace, systemFields } from './update.ts';
import { atVersion, type Answer, type Call } from './world.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const APPLY_PATCH = 'application/apply-patch+yaml';
const MAX_STEPS = 10_000;

/** PATCH of an object or of its status. */
export function patch(call: Call): Answer {
  const { resource, contentType } = call;
  if (!call.info.name) throw badRequest('name must be provided');
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(resource.custom ? [] : [STRATEGIC_PATCH]), APPLY_PATCH];
  if (!accepted.includes(contentType)) {
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    );
  }
  if (contentType === APPLY_PATCH) return applyPatch(call);
  const options = writeOptions(call);
  const live = call.world.store.table(resource).get(callKey(call));
  if (!live) throw notFound(resource, call.info.name);
  checkConversion(call);
  const shown = atVersion(live, call);
  const patched = patchObject(call, shown);
  const object = decodePatched(call, patched, options);
  checkIdentity(call, object, live);
  const next = trackUpdate(shown, systemFields(object, live), managedWrite(call, options, 'Update'));
  return { code: 200, body: replace(call, { live, next, options }) };
}

function patchObject(call: Call, live: KubeObject): Obj {
  const body = parseJsonBody(call.body);
  try {
    if (call.contentType === JSON_PATCH) return jsonPatch(live, body);
    if (!isObject(body))
      throw badRequest('error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}');
    if (call.contentType === MERGE_PATCH) return applyMergePatch(live, body) as Obj;
    return applyStrategicPatch(live, body, call.version.schema);
  } catch (error) {
    if (error instanceof PatchProblem) throw doesNotFit();
    throw error;
  }
}

function jsonPatch(live: Obj, body: unknown): Obj {
  let steps;
  try {
    steps = readSteps(body);
  } catch (error) {
    throw badRequest(`error decoding patch: ${(error as Error).message}`);
  }
  if (steps.length > MAX_STEPS)
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MAX_STEPS}, got ${steps.length}`);
  return applyJsonPatch(live, steps);
}

const doesNotFit = (): StatusError =>
  new StatusError(422, 'Invalid', 'the server rejected our request due to an error in our request', {});

function decodePatched(call: Call, patched: Obj, options: WriteOptions): KubeObject {
  try {
    return shape(clone(patched), call, options.fieldValidation);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const message = `Invalid value: ${JSON.stringify(JSON.stringify(patched))}: ${stripKind(error.message)}`;
    throw invalid({ group: '', kind: '' }, '', [{ reason: 'FieldValueInvalid', message, field: 'patch' }]);
  }
}

const stripKind = (message: string): string => message.replace(/^.*? cannot be handled as a \S+: /, '');
