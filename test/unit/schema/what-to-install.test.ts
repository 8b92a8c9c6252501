import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../lib/model/api.ts';
import { pullPolicies, updatePolicies } from '../../../lib/model/kinds.ts';
import {
  isInService,
  whatIsInstalled,
  whatToDoWithForeign,
  whatToInstall,
  type Installed,
  type InstallStep,
} from '../../../lib/reconcile/what-to-install.ts';

const crd = (metadata: object, status: object = {}): KubeObject =>
  ({
    metadata: { name: 'widgets.example.org', uid: 'u', resourceVersion: '1', ...metadata },
    status,
  }) as unknown as KubeObject;

const label = { 'core.kbind.io/managed': 'true' };
const pin = (connection: string): Record<string, string> => ({ 'core.kbind.io/connection': connection });

describe('what is installed', () => {
  test.each<[string, KubeObject | undefined, Installed]>([
    ['nothing', undefined, { is: 'absent' }],
    [
      'one that is being deleted, whoever owns it',
      crd({ deletionTimestamp: 'x', labels: label, annotations: pin('demo') }),
      { is: 'deleting' },
    ],
    [
      'pinned to another Connection',
      crd({ labels: label, annotations: pin('other') }),
      { is: 'pinned elsewhere', connection: 'other' },
    ],
    [
      'pinned to another, without the label',
      crd({ annotations: pin('other') }),
      { is: 'pinned elsewhere', connection: 'other' },
    ],
    [
      'both markers',
      crd({ labels: label, annotations: { ...pin('demo'), 'core.kbind.io/schema-hash': 'h' } }),
      { is: 'ours', hash: 'h' },
    ],
    ['both markers, no hash', crd({ labels: label, annotations: pin('demo') }), { is: 'ours', hash: undefined }],
    ['the label alone', crd({ labels: label }), { is: 'unmarked' }],
    ['the annotation alone', crd({ annotations: pin('demo') }), { is: 'unmarked' }],
    [
      'the label with another value',
      crd({ labels: { 'core.kbind.io/managed': 'yes' }, annotations: pin('demo') }),
      { is: 'unmarked' },
    ],
    ['no marker', crd({}), { is: 'unmarked' }],
  ])('%s', (_name, present, installed) => {
    expect(whatIsInstalled(present, 'demo')).toEqual(installed);
  });
});

const states: Record<string, Installed> = {
  absent: { is: 'absent' },
  deleting: { is: 'deleting' },
  elsewhere: { is: 'pinned elsewhere', connection: 'other' },
  same: { is: 'ours', hash: 'offered' },
  outdated: { is: 'ours', hash: 'old' },
  unhashed: { is: 'ours', hash: undefined },
  unmarked: { is: 'unmarked' },
};

/** One row per state: [None], [Bound or All, Always], [Bound or All, Once]. */
const table: Record<string, [none: InstallStep, always: InstallStep, once: InstallStep]> = {
  absent: ['wait until somebody installs it', 'create', 'create'],
  deleting: ['wait until it is gone', 'wait until it is gone', 'wait until it is gone'],
  elsewhere: ['leave it to its owner', 'leave it to its owner', 'leave it to its owner'],
  same: ['keep', 'keep', 'keep'],
  outdated: ['keep', 'replace', 'keep'],
  unhashed: ['keep', 'replace', 'keep'],
  unmarked: ['stamp', 'compare', 'compare'],
};

const rows = Object.entries(table).flatMap(([state, [none, always, once]]) =>
  pullPolicies.flatMap((pullPolicy) =>
    updatePolicies.map((updatePolicy) => {
      const want = pullPolicy === 'None' ? none : updatePolicy === 'Always' ? always : once;
      return { state, pullPolicy, updatePolicy, want };
    }),
  ),
);

describe('the install table', () => {
  test.each(rows)(
    '$state, pullPolicy $pullPolicy, updatePolicy $updatePolicy → $want',
    ({ state, want, ...policy }) => {
      const installed = states[state] ?? { is: 'absent' };
      expect(whatToInstall(installed, policy, policy.pullPolicy === 'None' ? undefined : 'offered')).toBe(want);
    },
  );

  test.each([
    [true, 'Fail', 'stamp'],
    [true, 'Adopt', 'stamp'],
    [false, 'Fail', 'conflict'],
    [false, 'Adopt', 'replace'],
  ] as const)('unmarked, equal spec %s, conflictPolicy %s → %s', (equal, policy, want) => {
    expect(whatToDoWithForeign(equal, policy)).toBe(want);
  });
});

describe('whether it is in service', () => {
  const conditions = (...pairs: [string, string][]): object => ({
    conditions: pairs.map(([type, status]) => ({ type, status, message: 'clash' })),
  });
  test.each([
    ['no status yet', {}, { is: 'not yet' }],
    ['established', conditions(['NamesAccepted', 'True'], ['Established', 'True']), { is: 'established' }],
    ['names accepted only', conditions(['NamesAccepted', 'True']), { is: 'not yet' }],
    [
      'names refused',
      conditions(['NamesAccepted', 'False'], ['Established', 'False']),
      { is: 'names refused', message: 'clash' },
    ],
    [
      'names refused by an update',
      conditions(['NamesAccepted', 'False'], ['Established', 'True']),
      { is: 'names refused', message: 'clash' },
    ],
  ])('%s', (_name, status, want) => {
    expect(isInService(crd({}, status))).toEqual(want);
  });
});
