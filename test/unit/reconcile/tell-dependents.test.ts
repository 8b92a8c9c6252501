import { beforeEach, describe, expect, test } from 'vitest';
import type { JsonPatchOperation } from '../../../lib/kube/types.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import type { Connection } from '../../../lib/model/kinds.ts';
import { parseBinding, parseConnection } from '../../../lib/model/kinds.ts';
import type { ReconcileRequest, SweepRequest } from '../../../lib/model/request.ts';
import {
  tellBindingDependents,
  tellConnectionDependents,
  tellNewlyExported,
} from '../../../lib/reconcile/tell-dependents.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { aBinding, bindingObject, connectionObject } from '../connection/samples.ts';

type Deed = { told: string[]; change: string } | { swept: SweepRequest } | { remembered: string };
let deeds: Deed[];
let queueFails: boolean;

const FANNED_OUT = 'core.kbind.io/fanned-out';
const sentAt = { wall: 0, mono: 0 };
const believed = <T>(value: T) => Promise.resolve({ value, sentAt });

beforeEach(() => {
  deeds = [];
  queueFails = false;
});

function world(): World {
  const queue = (deed: Deed): Promise<void> => {
    if (queueFails) return Promise.reject(new Error('queue is away'));
    deeds.push(deed);
    return Promise.resolve();
  };
  const crd = (name: string, connection: string) =>
    ({ metadata: { name, annotations: { 'core.kbind.io/connection': connection } } }) as unknown as KubeObject;
  return {
    cluster: 'c',
    reads: {
      clusterBindings: () => believed([aBinding('mine'), aBinding('theirs', { connection: 'other' })]),
      bindings: () => believed([{ ...aBinding('spaced', { metadata: { namespace: 'ns' } }), kind: 'Binding' }]),
      managedCrds: () => believed([crd('a.x', 'demo'), crd('b.x', 'other')]),
    },
    tell: {
      reconcile: (requests: readonly ReconcileRequest[], change: string) =>
        queue({ told: requests.map((r) => [r.controller, r.namespace, r.name].filter(Boolean).join(' ')), change }),
      sweep: (request: SweepRequest) => queue({ swept: request }),
    },
    consumer: {
      confirmIdentity: () => Promise.resolve(),
      client: {
        patch: (_ref: unknown, _key: unknown, { operations }: { operations: readonly JsonPatchOperation[] }) => {
          const value = operations[0]?.value as string | Record<string, string>;
          const text = typeof value === 'string' ? value : (value[FANNED_OUT] ?? '');
          deeds.push({ remembered: text });
          return Promise.resolve(connectionObject('demo', { metadata: { annotations: { [FANNED_OUT]: text } } }));
        },
      },
    },
  } as unknown as World;
}

const ready = (status: string, since: string) => ({
  type: 'Ready',
  status,
  reason: 'AsExpected',
  message: '',
  lastTransitionTime: since,
});
const connection = (change: { status?: object; metadata?: object } = {}): Connection =>
  parseConnection(
    connectionObject('demo', {
      status: { secretVersion: 'v1', conditions: [ready('True', '2026-01-01T00:00:00Z')], ...change.status },
      metadata: { resourceVersion: '7', ...change.metadata },
    }),
  );
const tell = (of: Connection) => tellConnectionDependents(world(), resources.connections, of);

describe('a Connection', () => {
  test('tells its bindings and the CRDs pinned to it, and remembers it only then', async () => {
    await tell(connection());
    expect(deeds).toEqual([
      { told: ['clusterbinding mine', 'binding ns spaced', 'crd a.x'], change: 'uid-demo/7' },
      { remembered: expect.stringMatching(/^\{"hash":"sha256:[0-9a-f]{16}","apis":\[\]\}$/) as string },
    ]);
  });

  test('that was not heard by the queue remembers nothing and tells again', async () => {
    queueFails = true;
    await expect(tell(connection())).rejects.toThrow('queue is away');
    expect(deeds).toEqual([]);
  });

  const told = async (of: Connection): Promise<string> => {
    const { metadata } = await tell(of);
    deeds = [];
    return metadata.annotations?.[FANNED_OUT] ?? '';
  };
  test.each<[string, Parameters<typeof connection>[0], boolean]>([
    ['nothing', {}, false],
    ['counts and exports', { status: { exportedAPIs: [] } }, false],
    ['its generation', { metadata: { generation: 2 } }, true],
    ['that it is deleting', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, true],
    ['its readiness', { status: { conditions: [ready('False', '2026-01-01T00:00:00Z')] } }, true],
    ['when it turned Ready', { status: { conditions: [ready('True', '2026-01-01T00:00:01Z')] } }, true],
    ['its credential', { status: { secretVersion: 'v2' } }, true],
  ])('in which %s changed tells: %s', async (_name, change, tells) => {
    const text = await told(connection());
    const now = connection({ ...change, metadata: { ...change?.metadata, annotations: { [FANNED_OUT]: text } } });
    await tell(now);
    expect(deeds.length > 0).toBe(tells);
  });

  test('with an annotation that is not ours to read tells', async () => {
    await tell(connection({ metadata: { annotations: { [FANNED_OUT]: 'nonsense' } } }));
    expect(deeds).toHaveLength(2);
  });
});

describe('a binding', () => {
  test('sweeps its present and former APIs, in its namespace', async () => {
    const annotations = { [FANNED_OUT]: JSON.stringify({ hash: 'old', apis: ['gone.x', 'b.x'] }) };
    const object = bindingObject('b', {
      apis: ['b.x', 'a.x'],
      metadata: { annotations, namespace: 'ns', resourceVersion: '9' },
    });
    const binding = parseBinding(object, 'Binding');
    await tellBindingDependents(world(), resources.bindings, { binding, connection: undefined });
    expect(deeds[0]).toEqual({
      swept: {
        v: 1,
        type: 'sweep',
        cluster: 'c',
        apis: ['a.x', 'b.x', 'gone.x'],
        namespace: 'ns',
        id: 'uid-b/9',
        retry: true,
      },
    });
    expect(deeds[1]).toEqual({ remembered: expect.stringContaining('"apis":["a.x","b.x"]') as string });
  });
});

describe('exports that are new', () => {
  const exporting = (...names: string[]) => ({ exportedAPIs: names.map((name) => ({ name })) });
  const tell = (before: object, after: object): Promise<void> =>
    tellNewlyExported(
      world(),
      connection({ status: before }),
      connection({ status: after, metadata: { resourceVersion: '8' } }),
    );

  test('the bindings of this Connection that list one are told, by the change', async () => {
    await tell(exporting('b.x'), exporting('a.x', 'b.x'));
    expect(deeds).toEqual([{ told: ['clusterbinding mine', 'binding ns spaced'], change: 'uid-demo/8' }]);
  });

  test.each([
    ['nothing is new', exporting('a.x'), exporting('a.x')],
    ['nobody lists it', exporting(), exporting('c.x')],
    ['one is gone', exporting('a.x'), exporting()],
    ['the Connection turned Ready, which tells all', { ...exporting(), conditions: [] }, exporting('a.x')],
  ])('%s: nobody is told', async (_name, before, after) => {
    await tell(before, after);
    expect(deeds).toEqual([]);
  });
});
