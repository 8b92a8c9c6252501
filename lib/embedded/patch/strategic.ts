import type { Schema } from '../api/resource.ts';
import { clone, equal, isObject, put, type Obj } from '../json/json.ts';
import { childSchema } from '../schema/prune.ts';
import { PatchProblem } from './jsonpatch.ts';

const DIRECTIVE = '$patch';
const DELETE_FROM = '$deleteFromPrimitiveList/';
const ORDER = '$setElementOrder/';
const RETAIN = '$retainKeys';

/** Applies a strategic merge patch to a copy: lists with a merge strategy are merged by key, as the schema says. */
export function applyStrategicPatch(document: Obj, patch: Obj, schema: Schema): Obj {
  if (patch[DIRECTIVE] === 'replace') {
    const { [DIRECTIVE]: _directive, ...rest } = patch;
    return clone(rest);
  }
  if (patch[DIRECTIVE] === 'delete') return {};
  const result = retain(clone(document), patch);
  for (const [key, value] of Object.entries(patch)) {
    if (key === DIRECTIVE || key === RETAIN) continue;
    if (key.startsWith(ORDER)) orderList(result, key.slice(ORDER.length), value, schema);
    else if (key.startsWith(DELETE_FROM)) deleteFromList(result, key.slice(DELETE_FROM.length), value);
    else patchField(result, key, value, childSchema(schema, key) ?? {});
  }
  return result;
}

function retain(document: Obj, patch: Obj): Obj {
  const keys = patch[RETAIN];
  if (!Array.isArray(keys)) return document;
  return Object.fromEntries(Object.entries(document).filter(([key]) => keys.includes(key)));
}

function patchField(result: Obj, key: string, value: unknown, schema: Schema): void {
  const before = Object.hasOwn(result, key) ? result[key] : undefined;
  if (value === null) delete result[key];
  else if (isObject(value)) {
    const merged = applyStrategicPatch(isObject(before) ? before : {}, value, schema);
    if (value[DIRECTIVE] === 'delete') delete result[key];
    else put(result, key, merged);
  } else if (Array.isArray(value) && schema['x-kubernetes-patch-strategy'] === 'merge') {
    put(result, key, mergeList(Array.isArray(before) ? (before as unknown[]) : [], value as unknown[], schema));
  } else put(result, key, clone(value));
}

function mergeList(before: unknown[], patch: unknown[], schema: Schema): unknown[] {
  const key = schema['x-kubernetes-patch-merge-key'];
  if (!key) return [...before, ...patch.filter((item) => !before.some((known) => equal(known, item)))];
  let result = [...before];
  for (const item of patch) {
    if (!isObject(item)) throw new PatchProblem('expected an object in a list that is merged by key');
    if (item[DIRECTIVE] === 'replace') return patch.filter((each) => each !== item).map(clone);
    if (item[key] === undefined)
      throw new PatchProblem(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    const same = (known: unknown): boolean => isObject(known) && equal(known[key], item[key]);
    const index = result.findIndex(same);
    if (item[DIRECTIVE] === 'delete') result = result.filter((known) => !same(known));
    else if (index < 0) result.push(clone(item));
    else result[index] = applyStrategicPatch(result[index] as Obj, item, schema.items ?? {});
  }
  return result;
}

function deleteFromList(result: Obj, key: string, values: unknown): void {
  const before = result[key];
  if (!Array.isArray(before) || !Array.isArray(values)) return;
  put(
    result,
    key,
    before.filter((item) => !values.some((value) => equal(value, item))),
  );
}

function orderList(result: Obj, key: string, order: unknown, schema: Schema): void {
  const list = result[key];
  if (!Array.isArray(list) || !Array.isArray(order)) return;
  const mergeKey = childSchema(schema, key)?.['x-kubernetes-patch-merge-key'];
  const rank = (item: unknown): number => {
    const index = order.findIndex((each: unknown) =>
      mergeKey && isObject(each) && isObject(item) ? equal(each[mergeKey], item[mergeKey]) : equal(each, item),
    );
    return index < 0 ? order.length : index;
  };
  put(
    result,
    key,
    [...(list as unknown[])].sort((a, b) => rank(a) - rank(b)),
  );
}
