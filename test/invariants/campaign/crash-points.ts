import type { Action } from './actions.ts';
import type { Plan } from './run.ts';

/** One path of a reconcile, as a short history whose last steps, from `trigger` on, are walked by the functions. */
export interface Path {
  readonly name: string;
  readonly trigger: number;
  readonly history: readonly Action[];
}

/** Where short histories happen, if they do not say otherwise. */
const widget = {
  consumer: 'blue',
  api: 'widgets.example.org',
  key: { namespace: 'team-a', name: 'a' },
  value: 1,
} as const;
export const step = (at: number, what: Action['what'], fixed: Partial<Action> = {}): Action => ({
  ...widget,
  at,
  what,
  ...fixed,
});
export const connected = [step(2_000, 'create connection'), step(2_100, 'create binding')];
export const synced = [...connected, step(9_000, 'create'), step(12_000, 'provider status')];
/** All four kinds of related resources by label ({@link Action.value}). */
export const related = [...connected, step(8_000, 'relate', { value: 3 })];
const NOTHING = { value: 5 };
export const SECRET_OF_PROVIDER = { value: 4 };
export const CONFIGMAP_OF_CONSUMER = { value: 7 };
/** A binding whose policy is Adopt. */
const adopting = [step(2_000, 'create connection'), step(2_100, 'create binding', { value: 10 })];

export const path = (name: string, before: readonly Action[], ...steps: readonly Action[]): Path => ({
  name,
  trigger: (steps[0]?.at ?? 0) - 1,
  history: [...before, ...steps],
});

/** Every reconcile path: its instance, its binding, its Connection, its syncer. */
export const paths: readonly Path[] = [
  path(
    'the copy is usurped before an apply',
    [...synced, step(16_000, 'edit', { value: 2 })],
    step(20_000, 'usurp before apply', { value: 13 }),
  ),
  path('the copy is usurped before its deletion', synced, step(20_000, 'usurp before delete')),
  path('a foreign object comes before the copy', connected, step(9_000, 'foreign before create')),
  path('a Connection and a ClusterBinding come', [], ...connected),
  path('a Binding comes', [step(2_000, 'create connection')], step(9_000, 'namespaced binding', { value: 10 })),
  path('an instance comes', connected, step(9_000, 'create')),
  path(
    'a cluster-scoped instance comes',
    connected,
    step(9_000, 'create', { api: 'gizmos.example.org', key: { name: 'a' } }),
  ),
  path('an instance changes', synced, step(20_000, 'edit', { value: 2 })),
  path('an instance loses a field', [...connected, step(9_000, 'create', { value: 4 })], step(20_000, 'remove field')),
  path('the provider writes a status', synced, step(20_000, 'provider status', { value: 7 })),
  path('a person edits the copy', synced, step(20_000, 'edit copy')),
  path('an instance is deleted', synced, step(20_000, 'delete')),
  path('an instance is deleted and made anew', synced, step(20_000, 'recreate')),
  path(
    'an instance is deleted while its copy is held',
    [...synced, step(15_000, 'provider finalizer')],
    step(20_000, 'delete'),
    step(26_000, 'provider unfinalizer'),
  ),
  path('an orphan is deleted', [...synced, step(15_000, 'orphan')], step(20_000, 'delete')),
  path('a foreign object is adopted', [...adopting, step(8_000, 'foreign create')], step(9_000, 'create')),
  path(
    'a conflict comes and goes',
    [...connected, step(8_000, 'foreign create')],
    step(9_000, 'create'),
    step(16_000, 'foreign delete'),
  ),
  path('the last ClusterBinding goes', synced, step(20_000, 'delete binding')),
  path(
    'a Binding is drained',
    [step(2_000, 'create connection'), step(2_100, 'namespaced binding', { value: 10 }), step(9_000, 'create')],
    step(20_000, 'delete namespaced binding', { value: 10 }),
  ),
  path('a ClusterBinding is made anew', synced, step(20_000, 'recreate binding')),
  path(
    'the Connection goes with its binding',
    synced,
    step(20_000, 'delete connection'),
    step(20_050, 'delete binding'),
  ),
  path('the credential is rotated', synced, step(20_000, 'rotate', { value: 77 }), step(21_000, 'edit', { value: 2 })),
  path(
    'the Secret breaks and is mended',
    synced,
    step(20_000, 'break secret'),
    step(24_000, 'edit', { value: 2 }),
    step(32_000, 'restore secret', { value: 78 }),
  ),
  path('somebody deletes the CRD', synced, step(20_000, 'delete crd')),
  path('a related Secret comes', related, step(16_000, 'make source', SECRET_OF_PROVIDER)),
  path('a related ConfigMap of the consumer comes', related, step(16_000, 'make source', CONFIGMAP_OF_CONSUMER)),
  path(
    'a related Secret changes',
    [...related, step(12_000, 'make source', SECRET_OF_PROVIDER)],
    step(16_000, 'edit source', SECRET_OF_PROVIDER),
  ),
  path(
    'an entry of related resources is removed',
    [...related, step(12_000, 'make source', SECRET_OF_PROVIDER)],
    step(16_000, 'relate', NOTHING),
  ),
  path(
    'a binding goes with its related copies',
    [...related, step(12_000, 'make source', CONFIGMAP_OF_CONSUMER)],
    step(20_000, 'delete binding'),
  ),
  path('autoBind comes', [step(2_000, 'create connection')], step(9_000, 'auto bind')),
  path(
    'a Connection goes with the binding that autoBind made',
    [step(2_000, 'create connection', { value: 21 }), step(9_000, 'create')],
    step(20_000, 'delete connection'),
  ),
];

/** What came back after a crash had five minutes more; no ten-minute backstop helps. */
export const planOfPath = ({ history, trigger }: Path, atAwait: number): Plan => ({
  seed: 11,
  history,
  rate: 0,
  kinds: [],
  ticks: 'refresh',
  crash: { afterMs: trigger, atAwait },
  quietMs: 8 * 60_000,
});
