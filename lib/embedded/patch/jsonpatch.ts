import { clone, equal, isObject, put, type Obj } from '../json/json.ts';

/** A patch that does not fit the document. */
export class PatchProblem extends Error {}

interface Step {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

const NEEDS_VALUE = new Set(['add', 'replace', 'test']);

/** Checks the form of a patch (RFC 6902). */
export function readSteps(body: unknown): Step[] {
  if (!Array.isArray(body))
    throw new SyntaxError('json: cannot unmarshal object into Go value of type jsonpatch.Patch');
  return (body as unknown[]).map((step) => {
    if (!isObject(step)) throw new SyntaxError('json: cannot unmarshal into Go value of type jsonpatch.Operation');
    return step as unknown as Step;
  });
}

/**
 * Applies a patch to a copy. This is not fast-json-patch, because that copies through JSON text and so rounds long
 * integers, and because the refusals must be those of Go's evanphx/json-patch.
 */
export function applyJsonPatch(document: Obj, steps: readonly Step[]): Obj {
  const holder: Obj = { root: clone(document) };
  for (const step of steps) applyStep(holder, step);
  if (!isObject(holder['root'])) throw new PatchProblem('the result is no object');
  return holder['root'];
}

function applyStep(holder: Obj, step: Step): void {
  const { op, path } = step;
  if (typeof path !== 'string') throw new PatchProblem(`missing value: ${op} operation does not have a path`);
  if (NEEDS_VALUE.has(op) && !Object.hasOwn(step, 'value') && op !== 'test') {
    throw new PatchProblem(`${op} operation does not apply: doc is missing value`);
  }
  switch (op) {
    case 'add':
      return add(holder, path, clone(step.value));
    case 'remove':
      return void remove(holder, path, op);
    case 'replace':
      return replace(holder, path, clone(step.value));
    case 'test':
      return test(holder, path, step.value);
    case 'move':
      return add(holder, path, remove(holder, step.from ?? '', op));
    case 'copy':
      return add(holder, path, clone(mustRead(holder, step.from ?? '', op)));
    default:
      throw new PatchProblem(`Unexpected kind: ${op}`);
  }
}

type Container = Obj | unknown[];

const decodePart = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');

/** The container and the last key of a pointer; undefined where the way there ends. */
function locate(holder: Obj, pointer: string): { container: Container; key: string } | undefined {
  const keys = ['root', ...pointer.split('/').slice(1).map(decodePart)];
  let container: unknown = holder;
  for (const key of keys.slice(0, -1)) container = entry(container, key);
  const key = keys.at(-1) ?? '';
  return isObject(container) || Array.isArray(container) ? { container: container as Container, key } : undefined;
}

function entry(container: unknown, key: string): unknown {
  if (Array.isArray(container)) return (container as unknown[])[indexOf(key, container.length)];
  return isObject(container) && Object.hasOwn(container, key) ? container[key] : undefined;
}

function indexOf(key: string, length: number): number {
  if (!/^-?\d+$/.test(key)) return -1;
  const index = Number(key);
  return index < 0 ? length + index : index;
}

const missing = (op: string, path: string): PatchProblem =>
  new PatchProblem(`${op} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`);

function add(holder: Obj, path: string, value: unknown): void {
  const place = locate(holder, path);
  if (!place) throw missing('add', path);
  const { container, key } = place;
  if (!Array.isArray(container)) return put(container, key, value);
  const index = key === '-' ? container.length : indexOf(key, container.length);
  if (index < 0 || index > container.length)
    throw new PatchProblem(
      `add operation does not apply: error in add for path: '${path}': unable to access invalid index: ${key}: invalid index referenced`,
    );
  container.splice(index, 0, value);
}

function remove(holder: Obj, path: string, op: string): unknown {
  const place = locate(holder, path);
  if (!place) throw missing(op, path);
  const { container, key } = place;
  if (Array.isArray(container)) {
    const index = indexOf(key, container.length);
    if (index < 0 || index >= container.length)
      throw new PatchProblem(
        `${op} operation does not apply: error in remove for path: '${path}': Unable to access invalid index: ${key}: invalid index referenced`,
      );
    return container.splice(index, 1)[0];
  }
  if (!Object.hasOwn(container, key))
    throw new PatchProblem(
      `${op} operation does not apply: error in remove for path: '${path}': Unable to remove nonexistent key: ${key}: missing value`,
    );
  const value = container[key];
  delete container[key];
  return value;
}

function replace(holder: Obj, path: string, value: unknown): void {
  const place = locate(holder, path);
  if (!place) throw missing('replace', path);
  const { container, key } = place;
  // In an object, this is an add: that is how Go's library reads the RFC, and clients have come to rely on it.
  if (!Array.isArray(container)) return put(container, key, value);
  const index = indexOf(key, container.length);
  if (index < 0 || index >= container.length) throw missing('replace', path);
  container[index] = value;
}

function test(holder: Obj, path: string, value: unknown): void {
  const place = locate(holder, path);
  const found = place && entry(place.container, place.key);
  // A path that is not there equals null.
  if (!equal(found ?? null, value ?? null)) throw new PatchProblem(`testing value ${path} failed: test failed`);
}

function mustRead(holder: Obj, path: string, op: string): unknown {
  const place = locate(holder, path);
  const found = place && entry(place.container, place.key);
  if (found === undefined) throw missing(op, path);
  return found;
}

/** Applies a merge patch (RFC 7386) to a copy. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return clone(patch);
  const result: Obj = isObject(document) ? clone(document) : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else put(result, key, isObject(value) ? applyMergePatch(result[key], value) : clone(value));
  }
  return result;
}
