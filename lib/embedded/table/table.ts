import type { KubeObject } from '../api/object.ts';
import type { Column } from '../api/resource.ts';
import { isObject } from '../json/json.ts';
import { age } from './age.ts';
import { evaluateJsonPath } from './jsonpath.ts';

/** Which part of the object a row carries. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

const NAME: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
};
const AGE: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'CreationTimestamp is a timestamp representing the server time when this object was created.',
};

/** The columns of a resource: those of its author after the name, or name and age. */
export function columnsOf(columns: readonly Column[]): Column[] {
  if (columns[0]?.value) return [...columns];
  return [NAME, ...(columns.length > 0 ? columns : [AGE])];
}

/** Objects as a Table, which is what kubectl prints. */
export function tableOf(
  objects: readonly KubeObject[],
  columns: readonly Column[],
  include: IncludeObject,
): Record<string, unknown> {
  const all = columnsOf(columns);
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: {},
    columnDefinitions: all.map(({ name, type, format = '', description = '', priority = 0 }) => ({
      name,
      type,
      format,
      description,
      priority,
    })),
    rows: objects.map((object) => ({
      cells: all.map((column) => cell(object, column)),
      ...rowObject(object, include),
    })),
  };
}

function rowObject(object: KubeObject, include: IncludeObject): Record<string, unknown> {
  if (include === 'None') return {};
  return { object: include === 'Object' ? object : partial(object) };
}

/** An object's metadata alone. */
export function partial(object: KubeObject): KubeObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}

function cell(object: KubeObject, column: Column): unknown {
  if (column.value) return column.value(object) ?? null;
  if (column.name === 'Name' && !column.jsonPath) return object.metadata.name;
  const values = evaluateJsonPath(object, column.jsonPath ?? '');
  const [value] = values;
  if (value === undefined || value === null) return null;
  if (column.type === 'date') return age(typeof value === 'string' ? value : undefined);
  if (column.type === 'string') return values.map(printable).join(',');
  return fits(value, column.type) ? value : null;
}

function fits(value: unknown, type: string): boolean {
  if (type === 'boolean') return typeof value === 'boolean';
  return typeof value === 'number' || isObject(value);
}

const printable = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
