import { describe, expect, test } from 'vitest';
import type { Discovered, ServedResource } from '../../../lib/kube/discovery.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { errorClasses, KbindError, type ErrorClass } from '../../../lib/model/errors.ts';
import { graceLeft } from '../../../lib/reconcile/connection/delete.ts';
import { exportsFrom, isOffered } from '../../../lib/reconcile/connection/exports.ts';
import { leaseName, microTime, whichLeaseStep } from '../../../lib/reconcile/connection/heartbeat.ts';
import { schemaInSync } from '../../../lib/reconcile/connection/schemas.ts';
import {
  conditionsFor,
  forbiddenMessage,
  whatFailed,
  whoChanged,
  type Finding,
} from '../../../lib/reconcile/connection/what-was-found.ts';
import { wantedNames, whichAutoBinding } from '../../../lib/reconcile/connection/which-auto-binding.ts';
import { emptySinceAfter, whichSource, type SourceFacts } from '../../../lib/reconcile/connection/which-source.ts';
import { whoReleasesSecret } from '../../../lib/reconcile/connection/who-releases-secret.ts';
import { aBinding, aConnection, NOW } from './samples.ts';

const MINUTE_AGO = '2026-01-01T00:00:00Z';

describe('which source (spec §2.4)', () => {
  const facts: SourceFacts = {
    configured: 'Auto',
    active: 'CRD',
    labelled: 0,
    emptySince: MINUTE_AGO,
    bound: true,
    nowMs: Date.parse(MINUTE_AGO) + 60_000,
  };
  test.each<[string, Partial<SourceFacts>, 'CRD' | 'OpenAPI']>([
    ['CRD as configured, though the list is empty', { configured: 'CRD' }, 'CRD'],
    ['OpenAPI as configured, though there are labelled CRDs', { configured: 'OpenAPI', labelled: 3 }, 'OpenAPI'],
    ['Auto: CRD list non-empty → CRD', { labelled: 1, active: 'OpenAPI' }, 'CRD'],
    ['Auto: an empty list → OpenAPI at first sight', { active: undefined, emptySince: undefined }, 'OpenAPI'],
    ['Auto: an empty list → OpenAPI while nothing is bound', { bound: false, emptySince: undefined }, 'OpenAPI'],
    ['Auto, bound: the first empty list is not believed', { emptySince: undefined }, 'CRD'],
    ['Auto, bound: a second one after 59 s neither', { nowMs: facts.nowMs - 1 }, 'CRD'],
    ['Auto, bound: a second one 60 s later is', {}, 'OpenAPI'],
    ['Auto, bound: OpenAPI stays OpenAPI', { active: 'OpenAPI', emptySince: undefined }, 'OpenAPI'],
  ])('%s', (_name, change, expected) => {
    expect(whichSource({ ...facts, ...change })).toBe(expected);
  });

  test.each<[string, number, string | undefined, string | undefined]>([
    ['the first empty list is remembered, rounded up', 0, undefined, '2026-01-01T00:00:01Z'],
    ['a later one changes nothing', 0, MINUTE_AGO, MINUTE_AGO],
    ['a list that is not empty ends it', 1, MINUTE_AGO, undefined],
  ])('exportsEmptySince: %s', (_name, exports, before, expected) => {
    expect(emptySinceAfter(exports, before, Date.parse('2026-01-01T00:00:00.001Z'))).toBe(expected);
  });
});

describe('what failed (spec §2.2 and §2.3)', () => {
  const expected: Partial<Record<ErrorClass, Finding['is']>> = {
    credential: 'unusable kubeconfig',
    forbidden: 'forbidden',
    unauthorized: 'unreachable',
    unavailable: 'unreachable',
    unserved: 'unreachable',
    absent: 'unreachable',
    identity: 'another cluster',
  };
  test.each(errorClasses.map((errorClass) => [errorClass, expected[errorClass]] as const))(
    'class %s → %s',
    (errorClass, is) => {
      expect(whatFailed(new KbindError(errorClass, 'words'), 'Secret a/b')?.is).toBe(is);
    },
  );

  test('a refusal names verb, resource and namespace, whom to grant it to, and the server’s words', () => {
    const details = { verb: 'list', api: 'leases.coordination.k8s.io', key: { namespace: 'kbind', name: 'x' } };
    const error = new KbindError('forbidden', 'no', { ...details, side: 'provider' });
    expect(forbiddenMessage(error, ', or else')).toBe(
      "grant list on leases.coordination.k8s.io in namespace kbind to the kubeconfig's user on the provider, or else: no",
    );
    const here = new KbindError('forbidden', 'no', { verb: 'patch', api: 'secrets', side: 'consumer' });
    expect(forbiddenMessage(here)).toBe('grant patch on secrets to kbind in this cluster: no');
  });
});

describe('whose identity changed', () => {
  const found = { remote: 'r', local: 'l' };
  test.each<[string, Parameters<typeof whoChanged>[0], RegExp]>([
    ['nothing is pinned yet', {}, /^nobody$/],
    ['both are the pinned ones', { remoteClusterUID: 'r', localClusterUID: 'l' }, /^nobody$/],
    ['the provider', { remoteClusterUID: 'was', localClusterUID: 'l' }, /leads to cluster r now.*provider was/],
    ['the consumer', { remoteClusterUID: 'r', localClusterUID: 'was' }, /this cluster is l.*set up in was/],
  ])('%s', (_name, pinned, expected) => {
    const changed = whoChanged(pinned, found);
    expect(changed?.is === 'another cluster' ? changed.message : 'nobody').toMatch(expected);
  });
});

describe('conditions of a finding', () => {
  const message = 'why';
  const schemas = schemaInSync([]);
  test.each<[Finding, Record<string, string>]>([
    [
      { is: 'unusable kubeconfig', message },
      {
        SecretValid: 'False/SecretNotFound',
        Connected: 'Unknown/Pending',
        PermissionDenied: 'Unknown/Pending',
        Ready: 'False/SecretNotFound',
      },
    ],
    [
      { is: 'forbidden', message, identified: false },
      {
        SecretValid: 'True/AsExpected',
        Connected: 'Unknown/Pending',
        PermissionDenied: 'True/Forbidden',
        Ready: 'False/Forbidden',
      },
    ],
    [
      { is: 'forbidden', message, identified: true },
      {
        SecretValid: 'True/AsExpected',
        Connected: 'True/AsExpected',
        PermissionDenied: 'True/Forbidden',
        Ready: 'False/Forbidden',
      },
    ],
    [
      { is: 'unreachable', message },
      { SecretValid: 'True/AsExpected', Connected: 'False/Pending', Ready: 'False/Pending' },
    ],
    [
      { is: 'another cluster', message },
      {
        SecretValid: 'True/AsExpected',
        Connected: 'False/ClusterIdentityChanged',
        Ready: 'False/ClusterIdentityChanged',
      },
    ],
    [{ is: 'identified' }, { SecretValid: 'True/AsExpected', Connected: 'True/AsExpected', Ready: 'False/Pending' }],
    [
      { is: 'ready', message, schemas },
      {
        SecretValid: 'True/AsExpected',
        Connected: 'True/AsExpected',
        SchemaInSync: 'True/AsExpected',
        PermissionDenied: 'False/AsExpected',
        Ready: 'True/AsExpected',
      },
    ],
  ])('$is', (finding, expected) => {
    const said = conditionsFor(finding).map(({ type, status, reason }) => [type, `${status}/${reason}`]);
    expect(Object.fromEntries(said)).toEqual(expected);
  });
});

describe('SchemaInSync', () => {
  test.each([
    ['nothing to install', [], 'True/AsExpected'],
    ['all installed', [{ api: 'a', state: 'installed', message: '' }], 'True/AsExpected'],
    [
      'an update that was refused',
      [{ api: 'a', state: 'installed', message: '', refusedUpdate: 'words' }],
      'False/Pending',
    ],
    ['somebody else’s CRD', [{ api: 'a', state: 'foreign', message: 'words' }], 'False/ForeignObjectExists'],
    ['another Connection’s CRD', [{ api: 'a', state: 'owned-by-another', message: 'words' }], 'False/OwnedByAnother'],
    ['a 403', [{ api: 'a', state: 'forbidden', message: 'words' }], 'False/Forbidden'],
    ['one that is missing', [{ api: 'a', state: 'missing', message: 'words' }], 'False/Pending'],
  ] as const)('%s', (_name, results, expected) => {
    const { status, reason, message } = schemaInSync(results);
    expect(`${status}/${reason}`).toBe(expected);
    expect(message).toContain(status === 'True' ? 'install' : 'words');
  });
});

describe('exports of discovery', () => {
  const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
  const served = (resource: string, version: string, change: Partial<ServedResource> = {}): ServedResource => ({
    group: 'example.org',
    version,
    resource,
    kind: 'K',
    singular: 'k',
    namespaced: true,
    verbs,
    status: false,
    shortNames: [],
    categories: [],
    ...change,
  });
  const discovered: Discovered = {
    groups: [{ group: 'example.org', versions: ['v1', 'v1beta1'], preferredVersion: 'v1' }],
    resources: [
      served('widgets', 'v1beta1'),
      served('widgets', 'v1'),
      served('apples', 'v1', { namespaced: false }),
      served('readonly', 'v1', { verbs: ['get', 'list'] }),
      served('Unnameable', 'v1'),
    ],
    failures: [],
  };

  test('all versions in one entry, the preferred one first, sorted by name, read-only APIs left out', () => {
    expect(exportsFrom(discovered, [])).toEqual([
      { name: 'apples.example.org', group: 'example.org', resource: 'apples', scope: 'Cluster', versions: ['v1'] },
      {
        name: 'widgets.example.org',
        group: 'example.org',
        resource: 'widgets',
        scope: 'Namespaced',
        versions: ['v1', 'v1beta1'],
      },
    ]);
  });

  test('a group that could not tell keeps what it offered before', () => {
    const before = ['away.io', 'gone.io'].map((group) => ({
      name: `things.${group}`,
      group,
      resource: 'things',
      scope: 'Cluster' as const,
      versions: ['v1'],
    }));
    const failures = [{ group: 'away.io', version: 'v1', error: new KbindError('unavailable', 'x') }];
    expect(exportsFrom({ ...discovered, failures }, before).map(({ name }) => name)).toEqual([
      'apples.example.org',
      'things.away.io',
      'widgets.example.org',
    ]);
  });

  test.each([
    ['', false],
    ['apps', false],
    ['batch', false],
    ['rbac.authorization.k8s.io', false],
    ['k8s.io', false],
    ['gateway.networking.kubernetes.io', false],
    ['core.kbind.io', false],
    ['core.kcp.io', false],
    ['example.org', true],
    ['myk8s.io', true],
    ['things.k8s.io.example.org', true],
  ])('group %j is offered: %s', (group, offered) => {
    expect(isOffered(group)).toBe(offered);
  });
});

describe('the ClusterBinding of autoBind (spec §2.6, L20–L22, C22)', () => {
  const auto = aConnection('auto', { spec: { autoBind: true } });
  const manual = aConnection('auto');
  const ours = aBinding('auto', {
    apis: ['a.x', 'b.x'],
    metadata: {
      labels: { 'core.kbind.io/managed': 'true' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Connection', name: 'auto', uid: auto.metadata.uid }],
    },
  });
  const unlabelled = aBinding('auto', { metadata: { ownerReferences: ours.metadata.ownerReferences ?? [] } });
  const unowned = aBinding('auto', { metadata: { labels: { 'core.kbind.io/managed': 'true' } } });
  const going = { ...ours, metadata: { ...ours.metadata, deletionTimestamp: MINUTE_AGO } };
  const emptySince = (ms: number) => ({ ...auto, status: { exportsEmptySince: new Date(NOW - ms).toISOString() } });
  const facts = { connection: auto, found: ours, exports: ['a.x', 'b.x'], complete: true, nowMs: NOW };

  test.each<[string, Partial<Parameters<typeof whichAutoBinding>[0]>, string]>([
    ['off, none', { connection: manual, found: undefined }, 'none'],
    ['off, somebody’s', { connection: manual, found: unowned }, 'none'],
    ['off, ours from before', { connection: manual }, 'no longer maintained'],
    ['none and exports', { found: undefined }, 'create'],
    ['none and no exports', { found: undefined, exports: [] }, 'none'],
    ['lists every export', {}, 'keep'],
    ['lists another set', { exports: ['a.x'] }, 'update'],
    ['lacks our label', { found: unlabelled }, 'leave it to its owner'],
    ['lacks the owner reference', { found: unowned }, 'leave it to its owner'],
    [
      'somebody’s and no exports',
      { found: unowned, exports: [], connection: emptySince(600_000) },
      'leave it to its owner',
    ],
    ['on its way out', { found: going }, 'wait until it is gone'],
    ['no exports, first list', { exports: [] }, 'wait for a second empty list'],
    ['no exports, 59 s later', { exports: [], connection: emptySince(59_000) }, 'wait for a second empty list'],
    ['no exports, 60 s later', { exports: [], connection: emptySince(60_000) }, 'delete'],
    [
      'no exports in a partial list',
      { exports: [], complete: false, connection: emptySince(600_000) },
      'wait for a second empty list',
    ],
    ['a partial list that lacks one', { exports: ['a.x'], complete: false }, 'keep'],
    ['a partial list with a new one', { exports: ['a.x', 'c.x'], complete: false }, 'update'],
  ])('%s', (_name, change, expected) => {
    expect(whichAutoBinding({ ...facts, ...change })).toBe(expected);
  });

  test('a partial list takes no API away', () => {
    expect(wantedNames({ ...facts, exports: ['c.x'], complete: false })).toEqual(['a.x', 'b.x', 'c.x']);
    expect(wantedNames({ ...facts, exports: ['c.x'] })).toEqual(['c.x']);
  });
});

describe('the heartbeat Lease (spec §2.7)', () => {
  const lease = (holder: string, owner: string, renewTime?: string) =>
    ({
      metadata: { name: 'x', annotations: { 'core.kbind.io/consumer-cluster-uid': owner } },
      spec: { holderIdentity: holder, renewTime },
    }) as unknown as KubeObject;
  const at = (ageMs: number) => microTime(NOW - ageMs);
  test.each([
    ['absent', undefined, 'create'],
    ['ours, renewed 11 s ago', lease('me', 'me', at(11_000)), 'renew'],
    ['ours, renewed 9 s ago', lease('me', 'me', at(9_000)), 'fresh enough'],
    ['ours, renewed in the future', lease('me', 'me', at(-60_000)), 'renew'],
    ['ours, never renewed', lease('me', 'me'), 'renew'],
    ['ours, held by somebody', lease('you', 'me', at(0)), 'renew'],
    ['somebody else’s', lease('me', 'you', at(60_000)), "somebody else's"],
  ])('%s', (_name, found, expected) => {
    expect(whichLeaseStep(found, 'me', NOW)).toBe(expected);
  });

  test('is named after the Connection and ten characters of the local UID, and timed in microseconds', () => {
    expect(leaseName('demo', '0123456789abcdef')).toBe('demo-0123456789');
    expect(microTime(Date.parse('2026-01-01T00:00:00.5Z'))).toBe('2026-01-01T00:00:00.500000Z');
  });
});

describe('who releases the Secret (spec §2, Deleting)', () => {
  const on = (name: string, secret: string, change: { deleting?: boolean; held?: boolean } = {}) => {
    const { deleting = false, held = true } = change;
    const connection = aConnection(name, { secret });
    const metadata = {
      ...connection.metadata,
      ...(held ? { finalizers: ['core.kbind.io/cleanup'] } : {}),
      ...(deleting ? { deletionTimestamp: MINUTE_AGO } : {}),
    };
    return { ...connection, metadata };
  };
  const going = { deleting: true };
  test.each([
    ['nobody else uses it', 'b', [on('c', 'other')], { step: 'release it' }],
    ['another one lives on it', 'b', [on('c', 's')], { step: 'leave it', to: 'c' }],
    ['another one uses it without our finalizer', 'b', [on('c', 's', { held: false })], { step: 'release it' }],
    ['all go, an earlier name is left', 'b', [on('a', 's', going), on('c', 's', going)], { step: 'leave it', to: 'a' }],
    ['all go, it is the first', 'b', [on('c', 's', going)], { step: 'wait for the others', others: ['c'] }],
    ['one lives among those that go', 'b', [on('a', 's', going), on('c', 's')], { step: 'leave it', to: 'c' }],
  ])('%s', (_name, name, others, expected) => {
    const self = on(name, 's', going);
    expect(whoReleasesSecret(self, [self, ...others])).toEqual(expected);
  });
});

describe('the 8 seconds', () => {
  const deleting = { metadata: { ...aConnection('x').metadata, deletionTimestamp: MINUTE_AGO } };
  const at = Date.parse(MINUTE_AGO);
  test.each([
    ['no Date seen yet', undefined, 8_000],
    ['at the deletion', at, 8_000],
    ['7 s later', at + 7_000, 1_000],
    ['8 s later', at + 8_000, 0],
  ])('%s', (_name, serverDate, left) => {
    expect(graceLeft(deleting, serverDate)).toBe(left);
  });
});
