import { describe, expect, it } from 'vitest';
import { matchesLabels, requirementsOf, selectorText } from '../../../lib/model/label-selector.ts';
import { entriesOf, isSelected, routes, selectsAll, sourceQueries } from '../../../lib/model/related.ts';
import type { KubeObject, MetaObject } from '../../../lib/model/api.ts';
import type { AnyBinding, LabelSelector, RelatedResource } from '../../../lib/model/kinds.ts';
import { contentHash, contentOf, mustReplace, ownContentOf } from '../../../lib/reconcile/related/what-to-copy.ts';
import { toPrune, whatToDo } from '../../../lib/reconcile/related/what-to-do.ts';
import { whoMade } from '../../../lib/reconcile/related/who-made-it.ts';
import {
  collisionMessage,
  emptyReport,
  firstFew,
  relatedRemarks,
  withCollisions,
  withDenials,
} from '../../../lib/reconcile/related/report.ts';

const expression = (
  key: string,
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist',
  values?: string[],
): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }],
});

describe('label selectors', () => {
  const rows: readonly [string, LabelSelector | undefined, string, readonly object[], readonly object[]][] = [
    ['none takes all', undefined, '', [{}, { a: 'b' }], []],
    ['an empty one takes all', {}, '', [{}], []],
    [
      'matchLabels',
      { matchLabels: { app: 'w', tier: '' } },
      'app=w,tier=',
      [{ app: 'w', tier: '' }],
      [{ app: 'w' }, {}],
    ],
    ['In', expression('app', 'In', ['a', 'b']), 'app in (a,b)', [{ app: 'b' }], [{ app: 'c' }, {}]],
    [
      'NotIn takes what lacks the label',
      expression('app', 'NotIn', ['a']),
      'app notin (a)',
      [{ app: 'b' }, {}],
      [{ app: 'a' }],
    ],
    ['Exists', expression('x.io/app', 'Exists'), 'x.io/app', [{ 'x.io/app': '' }], [{}]],
    ['DoesNotExist', expression('app', 'DoesNotExist'), '!app', [{}], [{ app: '' }]],
  ];
  it.each(rows)('%s', (...[, selector, text, matching, others]) => {
    const requirements = requirementsOf(selector);
    if ('problem' in requirements) throw new Error(requirements.problem);
    expect(selectorText(requirements)).toBe(text);
    for (const labels of matching) expect(matchesLabels(requirements, labels as Record<string, string>)).toBe(true);
    for (const labels of others) expect(matchesLabels(requirements, labels as Record<string, string>)).toBe(false);
  });

  const broken: readonly [string, LabelSelector][] = [
    ['In without values', expression('app', 'In')],
    ['Exists with values', expression('app', 'Exists', ['a'])],
    ['a key that says more', { matchLabels: { 'app,other': 'x' } }],
    ['a value that says more', { matchLabels: { app: 'a),other in (b' } }],
    ['a value that is too long', { matchLabels: { app: 'a'.repeat(64) } }],
    ['a prefix in upper case', { matchLabels: { 'X.io/app': 'a' } }],
    ['an empty name', { matchLabels: { 'x.io/': 'a' } }],
  ];
  it.each(broken)('%s is refused', (_name, selector) => {
    expect(requirementsOf(selector)).toHaveProperty('problem');
  });
});

const bindingOf = (relatedResources: readonly unknown[], kind: AnyBinding['kind'] = 'ClusterBinding'): AnyBinding =>
  ({ kind, metadata: { name: 'b', namespace: 'n' }, spec: { relatedResources } }) as unknown as AnyBinding;
const secretEntry = (selector?: RelatedResource['selector']): RelatedResource => ({
  group: '',
  resource: 'secrets',
  direction: 'FromProvider',
  ...(selector === undefined ? {} : { selector }),
});
const [fromProvider] = routes;
if (fromProvider === undefined) throw new Error('no route');
const entries = (...related: RelatedResource[]) => entriesOf(bindingOf(related), fromProvider);

type Metadata = Partial<MetaObject['metadata']>;
const meta = (metadata: Metadata = {}): MetaObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', ...metadata },
});
const NOT_COPIES = 'core.kbind.io/managed!=true';

describe('what an entry selects', () => {
  const rows: readonly [string, RelatedResource, Metadata, boolean][] = [
    ['no selector: everything', secretEntry(), {}, true],
    ['an empty list of names is none', secretEntry({ names: [] }), {}, true],
    ['a name that is listed', secretEntry({ names: ['a', 'b'] }), {}, true],
    ['a name that is not', secretEntry({ names: ['b'] }), {}, false],
    ['both apply: label lacking', secretEntry({ names: ['a'], labelSelector: { matchLabels: { x: 'y' } } }), {}, false],
    [
      'both apply',
      secretEntry({ names: ['a'], labelSelector: { matchLabels: { x: 'y' } } }),
      { labels: { x: 'y' } },
      true,
    ],
    ['what is deleting is no source', secretEntry(), { deletionTimestamp: '2026-01-01T00:00:00Z' }, false],
    ['a copy by its label is no source', secretEntry(), { labels: { 'core.kbind.io/managed': 'true' } }, false],
    [
      'a copy by its annotation is no source',
      secretEntry(),
      { annotations: { 'core.kbind.io/related-binding': 'x' } },
      false,
    ],
    ['an invalid selector: nothing', secretEntry({ labelSelector: { matchLabels: { '!': '' } } }), {}, false],
  ];
  it.each(rows)('%s', (_name, entry, metadata, expected) => {
    expect(isSelected(entries(entry), meta(metadata))).toBe(expected);
  });

  it('entries act as a union', () => {
    const both = entries(secretEntry({ names: ['b'] }), secretEntry({ names: ['a'] }));
    expect(isSelected(both, meta())).toBe(true);
  });

  it('asks for no more than it selects, and never for copies', () => {
    const [labelled, named, all, impossible] = entries(
      secretEntry({ labelSelector: { matchLabels: { x: 'y' } } }),
      secretEntry({ names: ['a', 'b', 'a'] }),
      secretEntry(),
      secretEntry({ names: ['no,such=name'] }),
    ).map(sourceQueries);
    expect(labelled).toEqual([{ labelSelector: `x=y,${NOT_COPIES}` }]);
    expect(named?.map(({ fieldSelector }) => fieldSelector)).toEqual(['metadata.name=a', 'metadata.name=b']);
    expect(all).toEqual([{ labelSelector: NOT_COPIES }]);
    expect(impossible).toEqual([]);
    expect(entries(secretEntry({ names: ['no,such=name'] })).some(selectsAll)).toBe(false);
  });
});

const owner = { cluster: 'c', binding: 'b' };
const marked = (binding: string, cluster?: string): Metadata => ({
  labels: { 'core.kbind.io/managed': 'true', 'core.kbind.io/consumer-cluster-uid': 'c' },
  annotations: {
    'core.kbind.io/related-binding': binding,
    ...(cluster === undefined ? {} : { 'core.kbind.io/consumer-cluster-uid': cluster }),
  },
});

describe('what is done about a source', () => {
  const makers: readonly [string, Metadata | undefined, ReturnType<typeof whoMade>][] = [
    ['nothing there', undefined, 'absent'],
    ['this binding’s copy', marked('b', 'c'), 'ours'],
    ['this binding’s copy that lost the cluster annotation', marked('b'), 'ours'],
    ['another binding’s copy', marked('x', 'c'), 'another'],
    ['a copy for another consumer', marked('b', 'x'), 'another'],
    ['a managed label alone', { labels: { 'core.kbind.io/managed': 'true' } }, 'unmarked'],
    ['somebody’s', {}, 'unmarked'],
  ];
  it.each(makers)('%s', (_name, metadata, expected) => {
    expect(whoMade(metadata === undefined ? undefined : meta(metadata), owner)).toBe(expected);
  });

  const source = { key: { namespace: 'n', name: 'a' }, hash: 'h' };
  const todos: readonly [string, Metadata | undefined, string | undefined, ReturnType<typeof whatToDo>][] = [
    ['nothing there → create', undefined, undefined, 'create'],
    ['same contents, every marker → nothing', marked('b', 'c'), 'h', 'nothing'],
    ['other contents → update', marked('b', 'c'), 'x', 'update'],
    ['contents unknown → update', marked('b', 'c'), undefined, 'update'],
    ['a marker missing → update', marked('b'), 'h', 'update'],
    ['ours, deleting → wait', { ...marked('b', 'c'), deletionTimestamp: '2026-01-01T00:00:00Z' }, 'h', 'wait'],
    ['somebody’s → collision', {}, undefined, 'collision'],
    ['another binding’s → collision', marked('x', 'c'), 'h', 'collision'],
  ];
  it.each(todos)('%s', (_name, metadata, hash, expected) => {
    const object = metadata === undefined ? undefined : meta(metadata);
    const target = object === undefined ? { object: undefined } : { object, hash };
    expect(whatToDo(source, target, owner)).toBe(expected);
  });

  it('prunes this binding’s copies without a source, and nobody else’s', () => {
    const copy = (name: string, metadata: Metadata) =>
      [`n/${name}`, { key: { namespace: 'n', name }, object: meta({ ...metadata, name }), hash: 'h' }] as const;
    const copies = [
      copy('a', marked('b', 'c')),
      copy('old', marked('b', 'c')),
      copy('other', marked('x', 'c')),
      copy('user', {}),
    ];
    const pruned = toPrune(copies, new Map([['n/a', source]]), owner);
    expect(pruned.map(({ key }) => key.name)).toEqual(['old']);
  });
});

const secret = (fields: object, owned?: object): KubeObject => ({
  ...meta(
    owned === undefined
      ? {}
      : { managedFields: [{ manager: 'kbind-konnector-related', operation: 'Apply', fieldsV1: owned as never }] },
  ),
  ...fields,
});

describe('what travels', () => {
  const rows: readonly [string, object, object][] = [
    [
      'contents and type',
      { type: 'kubernetes.io/tls', data: { a: 'x' } },
      { type: 'kubernetes.io/tls', data: { a: 'x' } },
    ],
    ['empty maps and immutable: false say nothing', { type: 'Opaque', data: {}, immutable: false }, { type: 'Opaque' }],
    ['immutable', { type: 'Opaque', immutable: true }, { type: 'Opaque', immutable: true }],
    [
      'a token of the source cluster is Opaque elsewhere',
      { type: 'kubernetes.io/service-account-token', data: { token: 'x' } },
      { type: 'Opaque', data: { token: 'x' } },
    ],
    ['a bootstrap token is no credential elsewhere', { type: 'bootstrap.kubernetes.io/token' }, { type: 'Opaque' }],
  ];
  it.each(rows)('%s', (_name, fields, expected) => {
    expect(contentOf(secret(fields))).toEqual(expected);
  });

  it('a ConfigMap has no type', () => {
    expect(contentOf({ ...secret({ binaryData: { a: 'AA==' } }), kind: 'ConfigMap' })).toEqual({
      binaryData: { a: 'AA==' },
    });
  });

  const own: readonly [string, object, object, boolean][] = [
    ['keys of ours', { type: 'Opaque', data: { a: 'x' } }, { 'f:data': { 'f:a': {} } }, true],
    [
      'a key that somebody else added is theirs',
      { type: 'Opaque', data: { a: 'x', b: 'y' } },
      { 'f:data': { 'f:a': {} } },
      true,
    ],
    [
      'a key that somebody else changed is not ours any more',
      { type: 'Opaque', data: { a: 'z' } },
      { 'f:data': {} },
      false,
    ],
    [
      'a key of ours that left the source',
      { type: 'Opaque', data: { a: 'x', b: 'y' } },
      { 'f:data': { 'f:a': {}, 'f:b': {} } },
      false,
    ],
    ['another type', { type: 'other', data: { a: 'x' } }, { 'f:data': { 'f:a': {} } }, false],
  ];
  it.each(own)('compared: %s', (_name, fields, owned, same) => {
    const wanted = contentOf(secret({ type: 'Opaque', data: { a: 'x' } }));
    expect(contentHash(ownContentOf(secret(fields, owned))) === contentHash(wanted)).toBe(same);
  });

  it('is replaced where it cannot be changed', () => {
    expect(mustReplace({ type: 'a' }, { type: 'a' })).toBe(false);
    expect(mustReplace({ type: 'a' }, { type: 'b' })).toBe(true);
    expect(mustReplace({ immutable: true }, {})).toBe(true);
  });
});

describe('what is said', () => {
  const quiet = {
    type: 'Conflicts',
    status: 'False',
    reason: 'AsExpected',
    message: 'no object is in conflict',
  } as const;
  const clash = { type: 'Conflicts', status: 'True', reason: 'OwnedByAnother', message: '1 object' } as const;
  const foreign = { object: 'Secret n/a of the consumer', reason: 'ForeignObjectExists' } as const;

  it('collisions join the condition, and leave its own reason', () => {
    expect(withCollisions(quiet, emptyReport())).toEqual(quiet);
    expect(withCollisions(quiet, { ...emptyReport(), collisions: [foreign] })).toMatchObject({
      status: 'True',
      reason: 'ForeignObjectExists',
      message: collisionMessage([foreign]),
    });
    const joined = withCollisions(clash, { ...emptyReport(), collisions: [foreign] });
    expect(joined.reason).toBe('OwnedByAnother');
    expect(joined.message).toContain('1 object; 1 related object is not copied');
  });

  it('refusals of permission are named', () => {
    const denied = withDenials({ ...quiet, type: 'PermissionDenied' }, { ...emptyReport(), denied: ['x', 'x', 'y'] });
    expect(denied).toMatchObject({ status: 'True', reason: 'Forbidden', message: 'x, y' });
  });

  it('messages name a few and count the rest, in a stable order', () => {
    expect(firstFew(['c', 'a', 'b', 'd', 'e', 'g', 'f'])).toBe('a, b, c, d, e and 2 more');
  });

  it('L7 a Secret entry without a selector is warned of', () => {
    const remark = (related: RelatedResource[]) => relatedRemarks(bindingOf(related, 'Binding'), emptyReport());
    expect(remark([secretEntry()])[0]).toContain('every Secret of namespace n');
    expect(remark([secretEntry({ names: ['a'] }), { ...secretEntry(), resource: 'configmaps' }])).toEqual([]);
  });
});
