import { groupVersion } from '../api/resource.ts';
import type { KubeObject } from '../api/object.ts';
import { tidyMetadata } from '../api/metadata.ts';
import { badRequest, invalid, invalidValue } from '../api/status.ts';
import { isObject, textAt, type Obj } from '../json/json.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { prune } from '../schema/prune.ts';
import { typeProblem } from '../schema/typecheck.ts';
import type { FieldValidation } from './options.ts';
import type { Call } from './world.ts';

const kindOf = (call: Call): string => call.resource.kind;

/** Checks that a body is an object of the kind and version that its URL names. */
export function checkKind(body: unknown, call: Call): Obj {
  const { resource, version } = call;
  const expected = groupVersion(resource.group, version.name);
  if (!isObject(body))
    throw badRequest(`couldn't get version/kind; json parse error: cannot unmarshal into Go value of type struct`);
  const { apiVersion, kind } = body;
  if (typeof kind !== 'string' || !kind) {
    if (resource.custom) throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
    body['kind'] = resource.kind;
  }
  if (typeof apiVersion !== 'string' || !apiVersion) {
    if (resource.custom) throw badRequest(`Object 'apiVersion' is missing in '${JSON.stringify(body)}'`);
    body['apiVersion'] = expected;
  }
  if (body['kind'] !== resource.kind) throw wrongKind(body, call);
  if (body['apiVersion'] !== expected) throw wrongVersion(body, call, expected);
  return body;
}

function wrongKind(body: Obj, { resource, version }: Call): Error {
  const [group = '', given] = groupAndVersion(String(body['apiVersion']));
  const kind = String(body['kind']);
  if (resource.custom) {
    const name = textAt(body, 'metadata', 'name');
    return invalid({ group, kind }, name, [invalidValue('kind', kind, `must be ${resource.kind}`)]);
  }
  const from = `(${given ?? version.name}.${kind})`;
  return badRequest(
    `${kind} in version ${JSON.stringify(given)} cannot be handled as a ${resource.kind}: converting ${from} to (${resource.group.split('.')[0] || 'core'}.${resource.kind}): unknown conversion`,
  );
}

function wrongVersion(body: Obj, { resource }: Call, expected: string): Error {
  const given = String(body['apiVersion']);
  if (resource.custom)
    return badRequest(`the API version in the data (${given}) does not match the expected API version (${expected})`);
  return badRequest(
    `${resource.kind} in version ${JSON.stringify(given)} cannot be handled as a ${resource.kind}: no kind ${JSON.stringify(resource.kind)} is registered for version ${JSON.stringify(given)} in scheme "pkg/runtime/scheme.go:111"`,
  );
}

const groupAndVersion = (apiVersion: string): string[] =>
  apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];

/** Makes an object out of a body: types of known fields checked, unknown ones pruned, defaults filled in. */
export function shape(body: Obj, call: Call, validation: FieldValidation, partial = false): KubeObject {
  const { resource, version } = call;
  const problem = typeProblem(body, version.schema, resource.custom);
  if (problem)
    throw badRequest(
      `${kindOf(call)} in version ${JSON.stringify(version.name)} cannot be handled as a ${kindOf(call)}: ${problem}`,
    );
  const unknown = prune(body, version.schema);
  if (validation !== 'Ignore') reportUnknown(unknown, call, validation);
  if (!partial) applyDefaults(body, version.schema);
  if (!isObject(body['metadata'])) body['metadata'] = {};
  body['metadata'] = tidyMetadata(body['metadata'] as Obj);
  return body as KubeObject;
}

function reportUnknown(unknown: string[], call: Call, validation: FieldValidation): void {
  if (unknown.length === 0) return;
  const texts = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
  if (validation === 'Warn') {
    call.warnings.push(...texts);
    return;
  }
  throw badRequest(
    `${kindOf(call)} in version ${JSON.stringify(call.version.name)} cannot be handled as a ${kindOf(call)}: strict decoding error: ${texts.join(', ')}`,
  );
}
