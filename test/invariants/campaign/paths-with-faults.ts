import {
  CONFIGMAP_OF_CONSUMER,
  connected,
  path,
  related,
  SECRET_OF_PROVIDER,
  step,
  synced,
  type Path,
} from './crash-points.ts';
import type { Action } from './actions.ts';

/**
 * Short histories with a fault at a chosen place, each of which meets one guard that a random draw seldom meets. No kills are
 * tried on them. The numbers choose what {@link Action.value} chooses: its last digit the step that meets the fault, the others
 * which fault, and how often.
 */
const EDIT = 0;
const DELETE = 2;
const tens = (digit: number): number => digit * 10;
const hundreds = (digit: number): number => digit * 100;
const thousands = (digit: number): number => digit * 1_000;
/** Digits of `reads of the copy fail`. */
const PLAIN_404 = tens(0);
const ERROR_500 = tens(2);
const ERROR_503 = tens(3);
const FOUR_TIMES = hundreds(3);
const THRICE = hundreds(2);
const FOR_A_MINUTE = thousands(9);
const SWEEP = tens(8);
const TWICE = thousands(1);

const readsFail = (at: number, value: number): Action => step(at, 'reads of the copy fail', { value });
const named = (name: string): Pick<Action, 'key'> => ({ key: { namespace: 'team-a', name } });
/** A Binding of another namespace has brought the API. */
const apiIsThere = [step(2_000, 'create connection'), step(2_100, 'namespaced binding', { value: 11 })];

const autoBound = [step(2_000, 'create connection', { value: 21 }), step(9_000, 'create')];
const unexported = [step(20_000, 'unexport'), step(20_050, 'unexport', { api: 'gizmos.example.org' })];

const configMapsAt = (at: number, name: string): Action[] =>
  Array.from({ length: 8 }, (_, index) =>
    step(at + index * 250, 'make source', { ...CONFIGMAP_OF_CONSUMER, ...named(`${name}${index}`) }),
  );

export const pathsWithFaults: readonly Path[] = [
  path('a 404 that is none comes before a deletion', synced, readsFail(20_000, DELETE + PLAIN_404 + FOUR_TIMES)),
  path(
    'the address leads elsewhere before a deletion',
    synced,
    step(20_000, 'address leads elsewhere', { value: DELETE + tens(8) }),
    step(45_000, 'provider status'),
  ),
  path(
    'the address leads elsewhere for long, and an instance comes',
    synced,
    step(20_000, 'address leads elsewhere', { value: EDIT + tens(9) }),
    ...[34_000, 36_000, 38_000, 40_000].map((at, index) => step(at, 'create', named(`n${index}`))),
  ),
  path(
    'the address leads elsewhere for a moment, just after every container has asked where to',
    synced,
    ...Array.from({ length: 24 }, (_, index) => step(20_000 + index * 20, 'create', named(`n${index}`))),
    step(23_000, 'address leads elsewhere', { value: EDIT + tens(1) }),
  ),
  path(
    'the address leads elsewhere for a moment, and ConfigMaps are to go there',
    related,
    ...configMapsAt(20_000, 'b'),
    step(22_800, 'address leads elsewhere', { value: EDIT + tens(1) }),
    // Later than a write that was on its way, sooner than 10 s after every container has asked.
    ...configMapsAt(24_000, 'c'),
  ),
  path('the provider fails for a moment', synced, readsFail(20_000, EDIT + ERROR_500 + THRICE)),
  path('the provider is unwell for a moment', synced, readsFail(20_000, EDIT + ERROR_503 + THRICE)),
  path(
    'the provider fails again and again',
    synced,
    ...[34_000, 44_000, 54_000, 66_000, 76_000, 86_000].map((at, index) =>
      readsFail(at, EDIT + ERROR_500 + THRICE + thousands(index)),
    ),
  ),
  path('the queue does not take an event', synced, step(20_000, 'queue refuses', { value: EDIT + TWICE })),
  path(
    'the queue does not take what a binding tells',
    [...apiIsThere, step(9_000, 'create')],
    step(20_000, 'queue refuses', { value: EDIT + SWEEP }),
    // Of the API that is there already: nothing else sends a sweep.
    step(20_100, 'create binding', { value: 3 }),
  ),
  path('an instance goes while its copy is made', connected, step(20_000, 'delete before create')),
  path('the binding goes while a copy is read', synced, step(20_000, 'unbind after read', { value: EDIT })),
  path('the binding goes while a new copy is read', connected, step(20_000, 'unbind after read', { value: 3 })),
  path(
    'a watch of copies comes late',
    synced,
    step(20_000, 'watch of copies fails', { value: tens(5) }),
    step(36_000, 'provider status', { value: 9 }),
    step(60_000, 'provider away'),
    step(60_001, 'provider back'),
  ),
  path(
    'instances come while their binding turns Ready',
    apiIsThere,
    step(20_000, 'namespaced binding', { value: 10 }),
    ...Array.from({ length: 24 }, (_, index) => step(20_030 + index * 25, 'create', named(`n${index}`))),
  ),
  path('a copy loses one marker of two', synced, step(20_000, 'strip one marker'), step(21_000, 'edit', { value: 2 })),
  path('the provider fails for a minute', synced, readsFail(20_000, EDIT + ERROR_500 + FOR_A_MINUTE)),
  path(
    "somebody's Secret stands where a related copy would",
    related,
    step(12_000, 'make target', SECRET_OF_PROVIDER),
    step(16_000, 'make source', SECRET_OF_PROVIDER),
    step(40_000, 'edit source', SECRET_OF_PROVIDER),
  ),
  path(
    "somebody's Secret comes before a related write",
    [...related, step(12_000, 'make source', SECRET_OF_PROVIDER)],
    step(16_000, 'usurp before related write', { value: 16 }),
  ),
  path(
    "somebody's Secret comes before a related copy is deleted",
    [...related, step(12_000, 'make source', SECRET_OF_PROVIDER)],
    step(16_000, 'usurp before related delete', SECRET_OF_PROVIDER),
  ),
  path('the entry goes while a related copy is made', related, step(16_000, 'unrelate before create', { value: 28 })),
  path('nothing is exported for a moment', autoBound, ...unexported, step(50_000, 'export'), step(90_000, 'edit')),
  path('nothing is exported any more', autoBound, ...unexported),
];
