import { isRawNumber, printJson } from '../kube/json.ts';
import type { KubeObject } from '../model/api.ts';

/** One field that a write would change. Values are JSON texts. */
export interface Difference {
  /** `spec.size`, `metadata.labels["core.kbind.io/managed"]`. */
  readonly path: string;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/** Kept by the server, changed by every write: no news. */
const SERVER_FIELDS = new Set([
  'managedFields',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'uid',
  'selfLink',
]);
/** Where a Secret's contents are, its last kubectl apply included. */
const SECRET_FIELDS = new Set(['data', 'stringData']);
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MASK = '•••';

/** What differs, field by field, in the order of paths. Contents of Secrets are masked; that they differ is shown. */
export function differences(before: KubeObject | undefined, after: KubeObject | undefined): Difference[] {
  const isSecret = (before ?? after)?.kind === 'Secret';
  const left = fieldsOf(before);
  const right = fieldsOf(after);
  const shown = (path: string, text: string | undefined): string | undefined =>
    text !== undefined && isSecret && isConfidential(path) ? MASK : text;
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((path) => left.get(path) !== right.get(path))
    .sort()
    .map((path) => ({ path, before: shown(path, left.get(path)), after: shown(path, right.get(path)) }));
}

const isConfidential = (path: string): boolean =>
  path.includes(LAST_APPLIED) || SECRET_FIELDS.has(path.split(/[.[]/)[0] ?? '');

function fieldsOf(object: KubeObject | undefined): Map<string, string> {
  const fields = new Map<string, string>();
  if (object === undefined) return fields;
  const { metadata, ...rest } = object;
  const told = Object.entries(metadata).filter(([name]) => !SERVER_FIELDS.has(name));
  collect('', { ...rest, metadata: Object.fromEntries(told) }, fields);
  return fields;
}

function collect(path: string, value: unknown, fields: Map<string, string>): void {
  if (value === undefined) return;
  const children = childrenOf(value);
  if (children === undefined || children.length === 0) fields.set(path, printJson(value));
  else for (const [step, child] of children) collect(join(path, step), child, fields);
}

function childrenOf(value: unknown): [string | number, unknown][] | undefined {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return undefined;
  return Array.isArray(value) ? [...value.entries()] : Object.entries(value);
}

function join(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (!/^[A-Za-z_][\w-]*$/.test(step)) return `${path}[${JSON.stringify(step)}]`;
  return path === '' ? step : `${path}.${step}`;
}
