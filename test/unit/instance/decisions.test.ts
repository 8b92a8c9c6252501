import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../lib/kube/json.ts';
import type { Json, KubeObject, ManagedFieldsEntry } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { AnyBinding } from '../../../lib/model/kinds.ts';
import { asApplied } from '../../../lib/reconcile/field-ownership.ts';
import { needsApply } from '../../../lib/reconcile/instance/needs-apply.ts';
import { prune, statusToCopy } from '../../../lib/reconcile/instance/status-to-copy.ts';
import { copyOf } from '../../../lib/reconcile/instance/what-to-apply.ts';
import { instanceApi } from '../../../lib/reconcile/instance/which-api.ts';
import { coveringBinding } from '../../../lib/reconcile/instance/which-binding.ts';
import { whoOwns } from '../../../lib/reconcile/instance/who-owns-it.ts';
import { crd, managed } from '../binding/fake-world.ts';

const object = (metadata: object, fields: object = {}): KubeObject =>
  ({
    apiVersion: 'example.org/v1',
    kind: 'Widget',
    metadata: { name: 'w', uid: 'u', ...metadata },
    ...fields,
  }) as KubeObject;

const binding = (
  kind: AnyBinding['kind'],
  name: string,
  extra: { namespace?: string; apis?: string[]; deleting?: boolean; connection?: string } = {},
): AnyBinding => {
  const { namespace, apis = ['widgets.example.org'], deleting = false, connection = 'demo' } = extra;
  const metadata = { name, namespace, ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) };
  const spec = {
    connectionRef: { name: connection },
    apis: apis.map((api) => ({ name: api })),
    conflictPolicy: 'Fail',
    relatedResources: [],
  };
  return { kind, metadata, spec, status: {}, raw: {} } as unknown as AnyBinding;
};

describe('which binding covers an instance', () => {
  const instance = { api: 'widgets.example.org', namespaced: true, key: { namespace: 'a', name: 'w' } };
  const inA = binding('Binding', 'first', { namespace: 'a' });

  test.each<[string, AnyBinding[], AnyBinding[], string | undefined]>([
    ['a ClusterBinding before a Binding, Ready or not', [binding('ClusterBinding', 'z')], [inA], 'z'],
    ['the first by name order', [binding('ClusterBinding', 'b'), binding('ClusterBinding', 'a')], [], 'a'],
    ['not a deleting one', [binding('ClusterBinding', 'a', { deleting: true })], [inA], 'first'],
    ['not one of another API', [binding('ClusterBinding', 'a', { apis: ['gadgets.example.org'] })], [inA], 'first'],
    ['not a Binding of another namespace', [], [binding('Binding', 'x', { namespace: 'b' })], undefined],
    [
      'not one of a Connection that the CRD is not pinned to, whatever its name',
      [binding('ClusterBinding', 'a', { connection: 'auto' })],
      [inA],
      'first',
    ],
    [
      'where all are of another Connection, the first, to say so',
      [binding('ClusterBinding', 'a', { connection: 'auto' })],
      [],
      'a',
    ],
  ])('%s', (_name, clusterBindings, bindings, expected) => {
    expect(coveringBinding({ clusterBindings, bindings }, instance, 'demo')?.metadata.name).toBe(expected);
  });

  test('never a Binding for a cluster-scoped API', () => {
    const clusterScoped = { api: 'widgets.example.org', namespaced: false, key: { name: 'w' } };
    expect(coveringBinding({ clusterBindings: [], bindings: [inA] }, clusterScoped, 'demo')).toBeUndefined();
  });
});

describe('who owns a target', () => {
  const owner = { cluster: 'c', object: 'o' };
  const marked = (cluster?: string, uid?: string): KubeObject =>
    object({
      annotations: {
        ...(cluster === undefined ? {} : { 'core.kbind.io/consumer-cluster-uid': cluster }),
        ...(uid === undefined ? {} : { 'core.kbind.io/consumer-object-uid': uid }),
      },
    });
  test.each([
    ['absent', undefined, 'absent'],
    ['both markers ours', marked('c', 'o'), 'ours'],
    ['no markers at all', marked(), 'unmarked'],
    ['another object', marked('c', 'x'), 'another'],
    ['another cluster', marked('x', 'o'), 'another'],
    ['only the cluster', marked('c'), 'another'],
    ['only the object', marked(undefined, 'o'), 'another'],
    ['an empty marker', marked(''), 'another'],
    ['only our label', object({ labels: { 'core.kbind.io/consumer-cluster-uid': 'c' } }), 'unmarked'],
  ] as const)('%s → %s', (_name, target, expected) => {
    expect(whoOwns(target, owner)).toBe(expected);
  });
});

describe('what needs an apply', () => {
  const owner = { cluster: 'c', object: 'u' };
  const source = object({}, { spec: { size: 'x', n: parseJson('1.0') as Json, list: [1] } });
  const ref = { group: 'example.org', version: 'v1', resource: 'widgets', kind: 'Widget', namespaced: true };
  const sent = copyOf(source, { ref, key: { namespace: 'a', name: 'w' } }, owner);
  const copy = (change: { spec?: unknown; metadata?: object } = {}): KubeObject =>
    ({
      ...sent,
      spec: change.spec ?? sent['spec'],
      metadata: { ...sent.metadata, ...change.metadata },
    }) as unknown as KubeObject;

  test.each<[string, KubeObject, string]>([
    ['as it was sent', copy(), 'no'],
    ['with what the provider added', copy({ spec: { size: 'x', n: 1, list: [1], tier: 'basic' } }), 'no'],
    ['with a field changed', copy({ spec: { size: 'y', n: 1, list: [1] } }), 'drifted'],
    ['with a list extended', copy({ spec: { size: 'x', n: 1, list: [1, 2] } }), 'drifted'],
    ['without labels', copy({ metadata: { labels: {} } }), 'yes'],
    ['of another hash', copy({ metadata: { annotations: { 'core.kbind.io/applied-hash': 'sha256:0' } } }), 'yes'],
  ])('%s', (_name, target, expected) => {
    expect(needsApply(source, target, owner)).toBe(expected);
  });

  test('a source without a spec is sent without one, and needs no second apply', () => {
    const bare = object({});
    const bareCopy = copyOf(bare, { ref, key: { name: 'w' } }, owner);
    expect('spec' in bareCopy).toBe(false);
    expect(needsApply(bare, bareCopy as unknown as KubeObject, owner)).toBe('no');
  });
});

describe('field ownership before the first apply', () => {
  const entry = (operation: 'Apply' | 'Update', fields: Json, more: object = {}): ManagedFieldsEntry => ({
    manager: 'kbind-konnector',
    operation,
    apiVersion: 'example.org/v1',
    fieldsV1: fields,
    ...more,
  });
  const theirs: ManagedFieldsEntry = { manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': { 'f:b': {} } } };
  const ofUpdate = entry('Update', { 'f:spec': { '.': {}, 'f:a': {} } });

  test('our Update becomes an Apply, others stay', () => {
    expect(asApplied(object({ managedFields: [theirs, ofUpdate] }))).toEqual([
      { ...ofUpdate, operation: 'Apply' },
      theirs,
    ]);
  });
  test('it joins an Apply of ours', () => {
    const joined = asApplied(object({ managedFields: [entry('Apply', { 'f:spec': { 'f:c': {} } }), ofUpdate] }));
    expect(joined).toEqual([entry('Apply', { 'f:spec': { '.': {}, 'f:a': {}, 'f:c': {} } })]);
  });
  test.each([
    ['there is only an Apply', [entry('Apply', {})]],
    ['there is nothing of ours', [theirs]],
    ['only a subresource was updated', [entry('Update', {}, { subresource: 'status' })]],
    ['nothing is recorded', undefined],
  ])('nothing to write where %s', (_name, managedFields) => {
    expect(asApplied(object({ managedFields }))).toBeUndefined();
  });
});

describe('status', () => {
  const status = {
    type: 'object',
    properties: {
      phase: { type: 'string' },
      list: { type: 'array', items: { type: 'object', properties: { a: {} } } },
    },
  };
  const versions = (schema: object) => [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } },
  ];
  const api = instanceApi(crd(managed(), { versions: versions({ type: 'object', properties: { status } }) }) as never);
  const source = (value?: Json) => object({}, value === undefined ? {} : { status: value });

  test.each<[string, Json | undefined, Json | undefined, Json | undefined]>([
    ['absent on the provider: never cleared', { phase: 'Up' }, undefined, undefined],
    ['equal', { phase: 'Up' }, { phase: 'Up' }, undefined],
    ['differing: whole', { phase: 'Up' }, { phase: 'Down', list: [] }, { phase: 'Down', list: [] }],
    ['differing only in what this schema drops', { phase: 'Up' }, { phase: 'Up', extra: 1 }, undefined],
    ['empty against absent', undefined, {}, {}],
  ])('%s', (_name, here, there, expected) => {
    expect(statusToCopy(api, source(here), source(there))).toEqual(expected);
  });

  test('an API without a status gets none', () => {
    const bare = instanceApi(
      crd(managed(), { versions: versions({ type: 'object', properties: { spec: {} } }) }) as never,
    );
    expect(statusToCopy(bare, source(), source({ phase: 'Up' }))).toBeUndefined();
  });

  test('pruning follows properties, items, additional properties and preserved ones', () => {
    const schema = {
      type: 'object',
      properties: {
        map: { type: 'object', additionalProperties: { type: 'object', properties: { a: {} } } },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { in: { type: 'object' } } },
        list: { type: 'array', items: { type: 'object', properties: { a: {} } } },
        embedded: { type: 'object', 'x-kubernetes-embedded-resource': true },
      },
    };
    const value = {
      map: { k: { a: 1, b: 1 } },
      free: { x: 1, in: { y: 1 } },
      list: [{ a: 1, b: 1 }],
      embedded: { kind: 'X' },
      constructor: 1,
    };
    expect(prune(value as never, schema as never)).toEqual({
      map: { k: { a: 1 } },
      free: { x: 1, in: {} },
      list: [{ a: 1 }],
      embedded: { kind: 'X' },
    });
  });
});

test('a CRD without a served version is an error that names it', () => {
  const none = crd(managed(), { versions: [{ name: 'v1', served: false, storage: true }] });
  expect(() => instanceApi(none as never)).toThrow(KbindError);
  expect(() => instanceApi(none as never)).toThrow('widgets.example.org has no served version');
});
