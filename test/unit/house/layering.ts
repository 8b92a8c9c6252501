import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** Which folders each folder of lib may import from, beside itself (design.md, Layout). */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  kube: ['model'],
  schema: ['model', 'kube'],
  fleet: ['model', 'kube'],
  queue: ['model', 'kube'],
  reconcile: ['model', 'kube', 'schema'],
  sweep: ['model', 'kube', 'schema', 'queue', 'reconcile', 'fleet'],
  // Dead letters: beside the queue, and below whoever can try what they are about.
  replay: ['model', 'queue'],
  forwarder: ['model', 'kube', 'queue', 'reconcile', 'fleet'],
  app: ['model', 'kube', 'schema', 'fleet', 'queue', 'replay', 'reconcile', 'sweep', 'forwarder'],
  // The embedded server shares no code with what is tested against it.
  embedded: [],
  local: ['model', 'kube', 'schema', 'fleet', 'queue', 'reconcile', 'sweep', 'forwarder', 'app', 'embedded'],
  cli: ['model', 'kube', 'schema', 'fleet', 'queue', 'replay', 'reconcile', 'sweep', 'forwarder', 'app'],
};

/** Handlers parse, call lib/app and answer. */
export const FUNCTIONS_MAY_IMPORT = ['app', 'model', 'queue'];

export interface ImportEdge {
  readonly from: string;
  /** Path inside the project. */
  readonly to: string;
}

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*(['"])(\.{1,2}\/[^'"]+)\1/g;

/** All relative imports, static and dynamic, of the TypeScript files below a folder. */
export function importEdges(root: string, folder: string): ImportEdge[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const path = join(root, folder, file);
      return [...readFileSync(path, 'utf8').matchAll(IMPORT)].map((match) => ({
        from: relative(root, path),
        to: relative(root, resolve(dirname(path), match[2] ?? '')),
      }));
    });
}

/** Edges that the layering forbids, one readable line each. */
export function forbiddenEdges(edges: readonly ImportEdge[]): string[] {
  return edges.filter((edge) => !isAllowed(edge)).map(({ from, to }) => `${from} imports ${to}`);
}

function isAllowed({ from, to }: ImportEdge): boolean {
  const [fromTop, fromFolder = ''] = from.split(sep);
  const [toTop, toFolder = ''] = to.split(sep);
  if (fromTop === 'functions') return toTop === 'lib' && FUNCTIONS_MAY_IMPORT.includes(toFolder);
  // The version that log lines and leases name.
  if (to === 'package.json') return fromFolder === 'app';
  if (toTop !== 'lib') return false;
  return fromFolder === toFolder || (MAY_IMPORT[fromFolder]?.includes(toFolder) ?? false);
}
