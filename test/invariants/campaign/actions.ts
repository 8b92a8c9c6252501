import type { ObjectKey } from '../../../lib/model/api.ts';
import type { Random } from '../../support/faults/random.ts';
import { apis, NAMESPACES, type ApiName } from './setup.ts';

/** What people do, and what goes wrong at a chosen place. All parameters are in it, so that any part of a history can be left out. */
export interface Action {
  /** Milliseconds since the beginning. */
  readonly at: number;
  readonly what: What;
  readonly consumer: string;
  readonly api: ApiName;
  readonly key: ObjectKey;
  readonly value: number;
}

const kinds = [
  'create', 'create', 'create', 'create', 'edit', 'edit', 'edit', 'remove field', 'delete', 'delete', 'delete', 'recreate', 'orphan', 'no orphan',
  'foreign create', 'foreign delete', 'edit copy', 'delete copy', 'strip markers', 'strip one marker', 'provider status', 'provider status', 'provider finalizer', 'provider unfinalizer',
  'delete binding', 'create binding', 'create binding', 'recreate binding', 'namespaced binding', 'delete namespaced binding', 'adopt', 'fail', 'edit apis',
  'delete connection', 'create connection', 'recreate connection', 'break secret', 'restore secret', 'restore secret', 'rotate', 'delete crd', 'unexport', 'export', 'provider away', 'provider back',
  'edit foreign', 'usurp', 'usurp before apply', 'usurp before delete', 'foreign before create',
  'relate', 'relate', 'make source', 'make source', 'delete source', 'auto bind', 'no auto bind', 'own namesake',
  'reads of the copy fail', 'address leads elsewhere', 'queue refuses', 'kill forwarder', 'watch of copies fails', 'delete before create', 'unbind after read',
] as const; // prettier-ignore

const relatedKinds = [
  'relate', 'relate namespaced', 'make source', 'edit source', 'delete source', 'unlabel source', 'make target', 'delete target', 'edit related copy', 'usurp before related write', 'usurp before related delete', 'unrelate before create',
] as const; // prettier-ignore

export type What = (typeof kinds)[number] | (typeof relatedKinds)[number];

/** What belongs together: most races need two steps of one theme on one object, within milliseconds. */
const themes = {
  life: ['create', 'create', 'edit', 'remove field', 'remove field', 'delete', 'recreate', 'edit copy', 'provider status', 'provider finalizer', 'provider unfinalizer', 'strip one marker'],
  usurpers: ['create', 'create', 'edit', 'edit', 'foreign create', 'foreign delete', 'foreign delete', 'usurp', 'usurp before apply', 'usurp before apply', 'usurp before delete', 'usurp before delete', 'foreign before create', 'edit foreign', 'strip markers', 'strip one marker', 'adopt', 'fail'],
  bindings: ['create', 'create', 'edit', 'delete', 'delete binding', 'create binding', 'recreate binding', 'namespaced binding', 'delete namespaced binding', 'delete connection', 'create connection', 'recreate connection'],
  credentials: ['create', 'edit', 'edit', 'delete', 'break secret', 'restore secret', 'rotate', 'provider away', 'provider back', 'unexport', 'export'],
  related: ['relate', 'relate', 'relate namespaced', 'namespaced binding', 'make source', 'make source', 'make source', 'make source', 'edit source', 'edit source', 'delete source', 'unlabel source', 'make target', 'make target', 'delete target', 'edit related copy', 'usurp before related write', 'usurp before related delete', 'unrelate before create', 'recreate binding', 'delete binding', 'create binding'],
  exports: ['create', 'edit', 'delete', 'auto bind', 'no auto bind', 'own namesake', 'unexport', 'unexport', 'export', 'export', 'recreate connection', 'delete connection', 'create connection', 'delete binding', 'create binding'],
  places: ['create', 'create', 'edit', 'edit', 'delete', 'provider status', 'recreate binding', 'create binding', 'reads of the copy fail', 'reads of the copy fail', 'address leads elsewhere', 'queue refuses', 'queue refuses', 'kill forwarder', 'watch of copies fails', 'delete before create', 'delete before create', 'unbind after read'],
} as const satisfies Readonly<Record<string, readonly What[]>>; // prettier-ignore
type Theme = keyof typeof themes;

const NAMES = ['a', 'b'] as const;
/** Last digit 7: the OpenAPI source; 8 or 9: Auto. A two before it: autoBind ({@link flavourOf}). */
const PLAIN = 1;
const UNUSUAL = [7, 8, 9, 21, 27, 28];

/** What kind of Connection a value stands for. */
export const flavourOf = (value: number): { source: 'CRD' | 'OpenAPI' | 'Auto'; autoBind: boolean } => ({
  source: value % 10 === 7 ? 'OpenAPI' : value % 10 > 7 ? 'Auto' : 'CRD',
  autoBind: Math.floor(value / 10) % 10 === 2,
});

/** A random history; the first steps make something that the others can spoil. */
export function randomHistory(
  random: Random,
  options: { actions: number; consumers: readonly string[]; pauseMs: number },
): Action[] {
  let at = 2_000;
  const actions: Action[] = [];
  const theme = random.chance(0.7) ? random.pick(Object.keys(themes) as Theme[]) : undefined;
  const unusual = theme === 'exports' ? 0.8 : theme === 'related' ? 0.2 : 0.1;
  const flavour = random.chance(unusual) ? random.pick(UNUSUAL) : PLAIN;
  const add = (what: What, fixed: Partial<Action> = {}): void => {
    const api = random.chance(0.75) ? 'widgets.example.org' : 'gizmos.example.org';
    const name = theme === undefined || theme === 'related' ? random.pick(NAMES) : NAMES[0];
    const namespace = theme === undefined || random.chance(0.2) ? random.pick(NAMESPACES) : NAMESPACES[0];
    const key = apis[api].namespaced ? { namespace, name } : { name };
    const value = what.endsWith('e connection') ? flavour : random.below(1_000_000);
    actions.push({ at, what, consumer: random.pick(options.consumers), api, key, value, ...fixed });
    at += random.chance(0.3) ? random.below(50) : random.below(options.pauseMs);
  };
  for (const consumer of options.consumers) {
    add('create connection', { consumer });
    if (flavourOf(flavour).autoBind && random.chance(0.7)) continue;
    add(random.chance(0.75) ? 'create binding' : 'namespaced binding', { consumer });
    if (theme === 'related') add('relate', { consumer });
  }
  // Most histories let the API arrive before the first instance is made.
  at += random.pick([0, 4_000, 8_000]);
  for (let index = 0; index < 3; index += 1) add(theme === 'related' ? 'make source' : 'create');
  const steps = theme === undefined ? kinds : themes[theme];
  for (let index = 0; index < options.actions; index += 1) add(random.pick<What>(steps));
  return actions;
}
