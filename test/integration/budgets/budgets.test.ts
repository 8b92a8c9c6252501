import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../lib/app/compose.ts';
import { AMPLE, UNASKED } from '../../../lib/forwarder/allowance.ts';
import { MAX_BATCH } from '../../../lib/forwarder/sink.ts';
import { resources, type ObjectKey } from '../../../lib/model/api.ts';
import {
  reconcileRequest,
  type ReconcileRequest,
  type RefreshRequest,
  type SweepRequest,
} from '../../../lib/model/request.ts';
import { reconcileMessage, workMessage } from '../../../lib/queue/queues.ts';
import { recordQueues, type RecordedQueues } from '../../support/queue/recorded.ts';
import {
  apiName,
  BenchCell,
  CONNECTION,
  describeRequests,
  FORWARDER,
  isWrite,
  messagesOf,
  PRODUCT,
  requestsOf,
  until,
  widgets,
  type Measured,
} from '../../support/bench/cell.ts';
import {
  annotate,
  createInstance,
  editSpec,
  editStatus,
  keyAt,
  layOut,
  range,
  remove,
} from '../../support/bench/instances.ts';
import { atMost } from '../../support/bench/at-most.ts';
import { batchEvent } from '../../support/bench/queues.ts';
import type { SeenRequest, ServerName } from '../../support/bench/servers.ts';

/**
 * The budgets of docs/performance.md, counted at the API servers and at the queues. Nothing here looks at a clock: a budget
 * that is exceeded is a request too many.
 */

const API = apiName(widgets);
/** Instances at rest behind the tests of sweeps, restarts and unbinding. */
const MANY = 1_000;
/** Those of them that the tests before have left. */
const LEFT = 11;
const UNBOUND = 200;
/** What all keys of a batch share. */
const SHARED = new Set(['connections', 'clusterbindings', 'bindings', 'customresourcedefinitions', 'secrets']);
const SHARED_PER_BATCH = 5;

const kinds: ServerName[] = process.env['KUBEBUILDER_ASSETS'] ? ['embedded', 'real'] : ['embedded'];

describe.each(kinds)('budgets on the %s server', (kind) => {
  let cell: BenchCell;
  let connecting: Measured;
  let binding: Measured;
  let app: App;
  let sent: RecordedQueues;
  let messages = 0;

  beforeAll(async () => {
    cell = await BenchCell.start({ server: kind, containers: 1 });
    await cell.startForwarder();
    await until('the forwarder watches', () => Promise.resolve(cell.consumer.forwarder?.running.ready()));
    // Containers that are warm: a new one asks who the clusters are, and whose the Lease is.
    await cell.tick({ atStart: true });
    await cell.settled();
    connecting = await cell.measure(async () => {
      await cell.connect();
      await cell.untilReady(resources.connections, CONNECTION);
      await cell.settled();
    });
    binding = await cell.measure(async () => {
      await cell.bind('widgets', [API]);
      await cell.untilBound('widgets');
      await cell.settled();
    });
    // At rest only then: the Connection's next refresh says that the binding's schema is installed.
    await cell.tick({ atStart: true });
    await cell.settled();
    await cell.stopForwarder();
    await cell.settled({ delayed: false });
    cell.forgetDelayed();
    sent = recordQueues();
    app = cell.compose(sent);
    // Warm: who the clusters are, and whose the Lease is.
    await createInstance(cell.consumer, 900_000, { namespace: 'default', name: 'warm' });
    await reconcile({ namespace: 'default', name: 'warm' });
  }, 180_000);
  afterAll(() => cell.stop());

  /** Runs keys as one batch in a warm container and says what the product asked for. */
  async function reconcile(...keys: readonly ObjectKey[]): Promise<{ own: SeenRequest[]; shared: SeenRequest[] }> {
    const requests = keys.map((key) => reconcileRequest(cell.consumer.uid, 'instance', key, { api: API }));
    const asked = requestsOf(await cell.measure(() => deliver(requests)), PRODUCT);
    const isShared = ({ resource }: SeenRequest): boolean => SHARED.has(resource);
    return { own: asked.filter((seen) => !isShared(seen)), shared: asked.filter(isShared) };
  }

  async function deliver(requests: readonly ReconcileRequest[]): Promise<void> {
    const batch = requests.map((request) => {
      messages += 1;
      const { message } = reconcileMessage(request, `change-${messages}`);
      return { id: `m-${messages}`, message, sentAt: Date.now(), receives: 1 };
    });
    const answer = await app.handlers.instances(batchEvent(batch), { getRemainingTimeInMillis: () => 30_000 });
    expect(answer.batchItemFailures).toEqual([]);
  }

  async function work(request: SweepRequest | RefreshRequest): Promise<Measured> {
    const held = { id: 'work', message: workMessage(request).message, sentAt: Date.now(), receives: 1 };
    return cell.measure(() => app.handlers.work(batchEvent([held]), { getRemainingTimeInMillis: () => 60_000 }));
  }
  const sweep = (): Promise<Measured> =>
    work({ v: 1, type: 'sweep', cluster: cell.consumer.uid, id: `backstop/${messages}`, retry: false });
  const refresh = (): Promise<Measured> =>
    work({ v: 1, type: 'refresh', cluster: cell.consumer.uid, id: `refresh/${messages}` });

  function expectAtMost(seen: readonly SeenRequest[], most: number, writes?: number): void {
    const counts = describeRequests(seen);
    atMost(most, seen.length, counts);
    const made = seen.filter(isWrite).length;
    expect({ writes: made, counts }).toEqual({ writes: writes ?? made, counts });
  }

  test('a first bind to Ready costs at most 50 requests, the forwarder’s among them', () => {
    const seen = requestsOf(binding);
    const ready = Math.max(
      ...seen
        .filter(({ resource, subresource }) => `${resource}/${subresource}` === 'clusterbindings/status')
        .map(({ at }) => at),
    );
    expectAtMost(
      seen.filter(({ at }) => at <= ready),
      50,
    );
    expect(binding.deadLetters).toBe(0);
  });

  test('and at most 90 until nothing happens any more, who the clusters are asked before each write among them', () => {
    expectAtMost(requestsOf(binding), 90);
  });

  // About 53 where the echoes of its writes wait together; on a slow machine one more is looked at alone, for nine requests.
  test('a new Connection costs at most 75, until nothing happens any more, 6 writes of them', () => {
    expectAtMost(requestsOf(connecting), 75, 6);
    expect(connecting.deadLetters).toBe(0);
  });

  describe('of an instance, beside at most five shared reads a batch', () => {
    const key = keyAt(900_001);
    const second = keyAt(900_002);

    test('the first of a namespace costs at most 10', async () => {
      await createInstance(cell.consumer, 900_001);
      const { own } = await reconcile(key);
      expectAtMost(own, 10);
      expect(await cell.provider.hands.find(widgets, key)).toBeDefined();
    });

    test('a new one costs at most 8, 2 writes of them', async () => {
      await createInstance(cell.consumer, 900_002);
      const { own, shared } = await reconcile(second);
      expectAtMost(own, 8, 2);
      expectAtMost(shared, SHARED_PER_BATCH, 0);
    });

    test('an unchanged one costs 2, and no write', async () => {
      expectAtMost((await reconcile(second)).own, 2, 0);
    });

    test('an annotation that somebody touched costs 2, and no write', async () => {
      await annotate(cell.consumer, second, 'yes');
      expectAtMost((await reconcile(second)).own, 2, 0);
    });

    test('a first change costs at most 5, any later one at most 3 and 1 write', async () => {
      await editSpec(cell.consumer, second, 2);
      expectAtMost((await reconcile(second)).own, 5, 2);
      await editSpec(cell.consumer, second, 3);
      expectAtMost((await reconcile(second)).own, 4, 1);
      expect(await cell.provider.hands.get(widgets, second)).toMatchObject({ spec: { size: 3 } });
    });

    test('a status costs 3, 1 of them the write', async () => {
      await editStatus(cell.provider, second, 'Ready');
      expectAtMost((await reconcile(second)).own, 3, 1);
      expect(await cell.consumer.hands.get(widgets, second)).toMatchObject({ status: { phase: 'Ready' } });
    });

    test('a change and its status together cost at most 4', async () => {
      await editSpec(cell.consumer, second, 4);
      await editStatus(cell.provider, second, 'Resized');
      expectAtMost((await reconcile(second)).own, 4, 2);
    });

    test('ten in a batch share their reads', async () => {
      const keys = [key, second];
      for (const index of range(8, 900_010)) {
        await createInstance(cell.consumer, index);
        keys.push(keyAt(index));
      }
      await reconcile(...keys);
      const { own, shared } = await reconcile(...keys);
      expectAtMost(own, 20, 0);
      expectAtMost(shared, SHARED_PER_BATCH, 0);
    });

    test('a deletion costs at most 7, 2 of them writes, and need not be looked at again', async () => {
      await remove(cell.consumer, key);
      sent.sent.length = 0;
      const { own } = await reconcile(key);
      expectAtMost(own, 7, 2);
      expect(await cell.consumer.hands.find(widgets, key)).toBeUndefined();
      expect(sent.sent).toEqual([]);
    });
  });

  test('ten deletions in a batch share the questions who both clusters are', async () => {
    const indices = range(10, 900_030);
    for (const index of indices) await createInstance(cell.consumer, index);
    await reconcile(...indices.map(keyAt));
    for (const index of indices) await remove(cell.consumer, keyAt(index));
    const { own } = await reconcile(...indices.map(keyAt));
    expectAtMost(own, 62, 20);
  });

  describe(`with ${MANY} instances at rest`, () => {
    beforeAll(() => layOut(cell, range(MANY - LEFT)), 300_000);

    test('a refresh costs at most 6, 6 per Connection and 2 per binding and API, and writes nothing but the Lease', async () => {
      await refresh();
      const measured = await refresh();
      expectAtMost(requestsOf(measured), 6 + 6 + 2);
      expect(requestsOf(measured).filter((seen) => isWrite(seen) && seen.resource !== 'leases')).toEqual([]);
      expect(requestsOf(measured).filter(isWrite).length).toBeLessThanOrEqual(1);
    });

    test('a backstop costs two lists for 500 instances and at most 8 more, and no message', async () => {
      await sweep();
      sent.sent.length = 0;
      const measured = await sweep();
      const pages = Math.ceil(MANY / 500);
      expectAtMost(requestsOf(measured), 2 * pages + 8, 0);
      expect(sent.sent).toEqual([]);
    });

    test('a restart costs one sweep: at most 50 requests, no write, one message per API', async () => {
      const { delivered } = cell.queues.work.counts;
      const measured = await cell.measure(async () => {
        await cell.startForwarder();
        await until('the sweep was given out', () => Promise.resolve(cell.queues.work.counts.delivered > delivered));
        await cell.settled({ quietMs: 1_500 });
      });
      // Looking at a Connection renews its heartbeat where that is due, restart or not.
      const own = requestsOf(measured).filter(({ resource }) => resource !== 'leases');
      expectAtMost(own, 50, 0);
      expect(measured.queues.instances.sent).toBe(0);
      expect(measured.queues.work.sent).toBe(1);
    }, 60_000);

    test('a change costs at most 4 messages, 5 the first time, and its echoes no write', async () => {
      const key = keyAt(7);
      const first = await cell.measure(async () => {
        await editSpec(cell.consumer, key, 2);
        await untilSize(key, 2);
      });
      atMost(5, messagesOf(first), first.queues);
      expectWrites(first, 2);
      const later = await cell.measure(async () => {
        await editSpec(cell.consumer, key, 3);
        await untilSize(key, 3);
      });
      atMost(4, messagesOf(later), later.queues);
      expectWrites(later, 1);
    });

    test('a status costs at most 2 messages, and its echo no write', async () => {
      const key = keyAt(8);
      const measured = await cell.measure(async () => {
        await editStatus(cell.provider, key, 'Ready');
        await until('the status is there', async () => {
          const { status } = await cell.consumer.hands.get(widgets, key);
          return (status as { phase?: string } | undefined)?.phase === 'Ready';
        });
        await cell.settled();
      });
      atMost(2, messagesOf(measured), measured.queues);
      expectWrites(measured, 1);
    });

    test('a burst never has many keys waiting before those of other clusters, and is no message dearer for that', async () => {
      const burst = range(300, 5_000);
      let most = 0;
      const { instances } = cell.queues;
      const { onMessage } = instances;
      instances.onMessage = () => {
        most = Math.max(most, instances.waiting);
        onMessage();
      };
      const measured = await cell.measure(async () => {
        await Promise.all(burst.map((index) => createInstance(cell.consumer, index)));
        await cell.settled();
      });
      instances.onMessage = onMessage;
      // What may go unasked, what there is room for, and what four lanes had under way when that was asked for.
      atMost(UNASKED + AMPLE + 4 * MAX_BATCH, most, measured.queues);
      atMost(4 * burst.length, messagesOf(measured), measured.queues);
      for (const index of burst) expect(await cell.provider.hands.find(widgets, keyAt(index))).toBeDefined();
    }, 60_000);

    const untilSize = async (key: ObjectKey, size: number): Promise<void> => {
      await until('the copy has it', async () => {
        const { spec } = await cell.provider.hands.get(widgets, key);
        return (spec as { size?: number }).size === size;
      });
      await cell.settled();
    };
    const expectWrites = (measured: Measured, writes: number): void => {
      const made = requestsOf(measured).filter(isWrite);
      expect({ writes: made.length, made }).toEqual({ writes, made });
      expect(requestsOf(measured, FORWARDER).filter(isWrite)).toEqual([]);
    };
  });
});

describe.each(kinds)('unbinding on the %s server', (kind) => {
  let cell: BenchCell;
  beforeAll(async () => {
    cell = await BenchCell.start({ server: kind, containers: 1 });
    await cell.startForwarder();
    await cell.connect();
    await cell.bind('widgets', [API]);
    await cell.untilBound('widgets');
    await cell.settled();
    await cell.stopForwarder();
    await layOut(cell, range(UNBOUND));
    await cell.startForwarder();
    await cell.settled({ quietMs: 1_500 });
  }, 180_000);
  afterAll(() => cell.stop());

  test('costs at most 6 requests an instance, and leaves no copy', async () => {
    const { hands } = cell.consumer;
    const measured = await cell.measure(async () => {
      const { uid, resourceVersion } = (await hands.get(resources.clusterBindings, { name: 'widgets' })).metadata;
      await hands.delete(resources.clusterBindings, { name: 'widgets' }, { uid, resourceVersion });
      await until(
        'the binding is gone',
        async () => (await hands.find(resources.clusterBindings, { name: 'widgets' })) === undefined,
      );
      await cell.settled();
    });
    const seen = requestsOf(measured, PRODUCT);
    const counts = [describeRequests(seen), measured.queues];
    const named = withoutEchoes(measured).filter(({ resource, name }) => resource === 'widgets' && name !== '');
    // The object, its copy, DELETE and the finalizer; a key that a walk finds twice in a row costs a look more.
    atMost(4.2 * UNBOUND, named.length, counts);
    // Each instance looks at both kinds of bindings itself; so does each walk of the binding's own deletion, twice.
    const walks = seen.filter(
      ({ resource, subresource }) => resource === 'clusterbindings' && subresource === 'status',
    );
    const lists = seen.filter(({ verb, resource }) => verb === 'list' && resource.endsWith('bindings'));
    atMost(
      2 * UNBOUND +
        6 * walks.length +
        2 * measured.queues.control.invocations +
        2 * measured.queues.instances.invocations,
      lists.length,
      counts,
    );
    // Twelve with everything: who both clusters are is asked after the reads, by those that read at the same time together.
    atMost(12 * UNBOUND, seen.length, counts);
    expect((await cell.provider.hands.list(widgets)).items).toEqual([]);
    expect(measured.deadLetters).toBe(0);
  }, 120_000);
});

/** Beside the looks at a consumer object that our own writes bring about: each of those finds nothing to do. */
function withoutEchoes({ consumer, provider }: Measured): SeenRequest[] {
  const looked = new Set<string>();
  const first = consumer.filter(({ verb, user, resource, namespace, name }) => {
    if (verb !== 'get' || user !== PRODUCT || resource !== 'widgets') return user === PRODUCT;
    const key = `${namespace}/${name}`;
    return !looked.has(key) && looked.add(key);
  });
  return [...first, ...provider.filter(({ user }) => user === PRODUCT)];
}
