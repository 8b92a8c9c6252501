import { isLongInteger, isObject, type Obj } from '../json/json.ts';
import { fieldType, itemElement, itemProblem, type MergeType } from './types.ts';

/** Everything that keeps an applied object from being merged: fields that no schema declares, values of another type. */
export function appliedProblems(applied: Obj, type: MergeType): string[] {
  const problems: string[] = [];
  checkMap(applied, type, '', problems);
  return problems.sort();
}

function checkMap(object: Obj, type: MergeType, path: string, problems: string[]): void {
  for (const [key, value] of Object.entries(object)) {
    const place = `${path}.${key}`;
    if (!type.open && !type.field(key)) problems.push(`${place}: field not declared in schema`);
    else check(value, fieldType(type, key), place, problems);
  }
}

function check(value: unknown, type: MergeType, path: string, problems: string[]): void {
  if (value === null) return;
  switch (type.shape) {
    case 'map':
      if (isObject(value)) checkMap(value, type, path, problems);
      else problems.push(`${path}: expected map, got ${shown(value)}`);
      break;
    case 'list':
      if (Array.isArray(value)) checkList(value as unknown[], type, path, problems);
      else problems.push(`${path}: expected list, got ${shown(value)}`);
      break;
    case 'scalar':
      if (!isScalar(value, type.scalar))
        problems.push(`${path}: expected ${type.scalar ?? 'scalar'}, got ${shown(value)}`);
      break;
    case 'untyped':
      break;
  }
}

function checkList(list: unknown[], type: MergeType, path: string, problems: string[]): void {
  const seen = new Set<string>();
  list.forEach((item, i) => {
    if (type.atomic) return check(item, type.element, `${path}[${i}]`, problems);
    const problem = itemProblem(type, item);
    if (problem) return void problems.push(`${path}: element ${i}: ${problem}`);
    const element = itemElement(type, item);
    if (seen.has(element)) problems.push(`${path}: duplicate entries for key ${showItem(element)}`);
    seen.add(element);
    return check(item, type.element, `${path}${showItem(element)}`, problems);
  });
}

/** An item as paths show it: `[name="a"]`, or `[="a"]` in a set. */
export function showItem(element: string): string {
  if (element.startsWith('v:')) return `[=${element.slice(2)}]`;
  const keys = Object.entries(JSON.parse(element.slice(2)) as Obj);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
}

function isScalar(value: unknown, kind: string | undefined): boolean {
  const isNumber = typeof value === 'number' || isLongInteger(value);
  if (kind === 'string' || kind === 'boolean') return typeof value === kind;
  if (kind === 'numeric') return isNumber;
  return isNumber || typeof value === 'string' || typeof value === 'boolean';
}

const shown = (value: unknown): string =>
  `&value.valueUnstructured{Value:${typeof value === 'string' ? value : JSON.stringify(value)}}`;
