import { describe, expect, it, vi } from 'vitest';
import type { Activity } from '../../../lib/fleet/registry.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { done, waitForDeletion, type Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import type { Engine } from '../../../lib/app/engine.ts';
import { createReconcileHandler, type QueueHandler } from '../../../lib/app/reconcile-handler.ts';
import { createClusterLimits } from '../../../lib/queue/batch.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { controllersWith, engineWith, fleetCluster, registryOf } from '../../support/queue/engine.ts';
import { CLUSTER, instanceRequest, requestRecord, sqsEvent, sqsRecord, withTime } from '../../support/queue/events.ts';

const handlerOf = (engine: Engine, queue: 'control' | 'instances' = 'instances'): QueueHandler =>
  createReconcileHandler(engine, queue, createClusterLimits(10));
const reconciling = (instance: (world: World) => Promise<Outcome>): Partial<Engine> => ({
  controllers: controllersWith({ reconcile: { instance } }),
});
const one = sqsEvent(requestRecord(instanceRequest('w'), { messageId: 'm' }));
const nothingFailed = { batchItemFailures: [] };

describe('an instances batch', () => {
  it('is reconciled, settled and acknowledged', async () => {
    const instance = vi.fn((world: World) => {
      world.trace.decide('Consumer object exists?', true);
      return Promise.resolve(done('synced'));
    });
    const engine = engineWith(reconciling(instance));
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(instance).toHaveBeenCalledOnce();
    expect(engine.queues.sent).toEqual([]);
    expect(engine.log.lines).toMatchObject([
      { message: 'work settled', fields: { reason: 'synced', trace: ['Consumer object exists? → yes'] } },
    ]);
    expect(engine.metrics.of('Done')).toBe(1);
    expect(engine.metrics.measured('SyncLag')).toHaveLength(1);
  });

  it('measures the way of first runs only: waits and attempts were chosen', async () => {
    const engine = engineWith(reconciling(() => Promise.resolve(done('synced'))));
    const again = [{ attempt: 1 }, { waited: 2 }, { retry: false }].map((more, at) =>
      requestRecord({ ...instanceRequest(`again-${at}`), ...more }),
    );
    await handlerOf(engine)(sqsEvent(...again), withTime(30_000));
    expect(engine.metrics.of('Done')).toBe(3);
    expect(engine.metrics.measured('SyncLag')).toEqual([]);
  });

  it('has one reconcile id per run, in the world’s log and in the settling line', async () => {
    const engine = engineWith(
      reconciling((world) => {
        world.log.info('inside');
        return Promise.resolve(done('synced'));
      }),
    );
    await handlerOf(engine)(
      sqsEvent(requestRecord(instanceRequest('a')), requestRecord(instanceRequest('b'))),
      withTime(30_000),
    );
    const ids = engine.log.lines.map(({ fields }) => fields['reconcileId']);
    expect(new Set(ids).size).toBe(2);
    expect(ids.every((id) => ids.filter((other) => other === id).length === 2)).toBe(true);
  });

  it('that waits comes back through work', async () => {
    const engine = engineWith(reconciling(() => Promise.resolve(waitForDeletion('copy'))));
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.bodies('work')).toMatchObject([
      { type: 'due', request: { name: 'w', waited: 2, attempt: 0 } },
    ]);
  });

  it('that throws comes back as an attempt; bugs too', async () => {
    const engine = engineWith(reconciling(() => Promise.reject(new TypeError('a bug'))));
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.bodies('work')).toMatchObject([{ request: { attempt: 1, firstFailure: 1_700_000_000_005 } }]);
  });

  it('waits, and starts no chain of attempts, while the registry does not answer', async () => {
    const away = () => Promise.reject(new KbindError('unavailable', 'fleet table: TimeoutError'));
    const engine = engineWith({ registry: { ...registryOf(), lookup: away } });
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.bodies('work')).toMatchObject([{ type: 'due', request: { attempt: 0, waited: 2 } }]);
    expect(engine.queues.bodies('deadLetters')).toEqual([]);
    expect(engine.metrics.of('RegistryFailed')).toBe(1);
  });

  it('of a cluster that another installation holds waits, and the registry says who holds it', async () => {
    const notes: unknown[] = [];
    const held = (uid: string, by: string | undefined) => Promise.resolve(void notes.push([uid, by]));
    let activity: Activity = { since: 0 };
    const registry = {
      ...registryOf(),
      held,
      lookup: () => Promise.resolve({ found: 'cluster', cluster: { ...fleetCluster, activity } } as const),
    };
    const error = new KbindError('held', 'belongs to other/prod', { side: 'consumer', heldBy: 'other/prod' });
    let holds = true;
    const instance = () => (holds ? Promise.reject(error) : Promise.resolve(done('synced')));
    const engine = engineWith({ ...reconciling(instance), registry });
    await handlerOf(engine)(one, withTime(30_000));
    expect(engine.queues.bodies('work')).toMatchObject([{ type: 'due', request: { attempt: 0, waited: 60 } }]);
    expect(notes).toEqual([[CLUSTER, 'other/prod']]);
    expect(engine.metrics.of('ClusterHeld')).toBe(1);
    activity = { since: 0, heldBy: 'other/prod' };
    await handlerOf(engine)(one, withTime(30_000));
    expect(notes).toHaveLength(1);
    holds = false;
    await handlerOf(engine)(one, withTime(30_000));
    expect(notes.at(-1)).toEqual([CLUSTER, undefined]);
    expect(engine.queues.bodies('deadLetters')).toEqual([]);
  });

  it('that cannot be settled stays in the queue', async () => {
    const engine = engineWith(reconciling(() => Promise.reject(new KbindError('unavailable', 'x'))));
    engine.queues.failing.add('work');
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual({ batchItemFailures: [{ itemIdentifier: 'm' }] });
    expect(engine.metrics.of('Unsettled')).toBe(1);
  });

  it('without time left is postponed, not failed', async () => {
    const instance = vi.fn(() => Promise.resolve(done('synced')));
    const engine = engineWith(reconciling(instance));
    expect(await handlerOf(engine)(one, withTime(1_000))).toEqual(nothingFailed);
    expect(instance).not.toHaveBeenCalled();
    expect(engine.queues.bodies('work')).toMatchObject([{ type: 'due', request: { name: 'w', attempt: 0 } }]);
  });

  it('that is aborted counts as an attempt, whatever the broken requests said', async () => {
    const engine = engineWith(
      reconciling(
        ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () =>
              reject(new KbindError('unavailable', 'socket closed', { side: 'provider' })),
            );
          }),
      ),
    );
    vi.useFakeTimers();
    try {
      const answer = handlerOf(engine)(one, withTime(20_000));
      await vi.advanceTimersByTimeAsync(20_000);
      expect(await answer).toEqual(nothingFailed);
    } finally {
      vi.useRealTimers();
    }
    expect(engine.log.lines.at(-1)?.fields).toMatchObject({ errorClass: 'aborted' });
    expect(engine.queues.bodies('work')).toMatchObject([{ request: { attempt: 1 } }]);
  });
});

describe('malformed messages', () => {
  it('are dead-lettered with the reason, never dropped or retried', async () => {
    const engine = engineWith();
    const event = sqsEvent(sqsRecord(JSON.stringify({ ...instanceRequest('w'), object: {} })), sqsRecord('\u0000'));
    expect(await handlerOf(engine)(event, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.bodies('work')).toEqual([]);
    expect(engine.queues.bodies('deadLetters')).toMatchObject([
      { error: { class: 'malformed', message: expect.stringContaining('unknown field "object"') } },
      { error: { class: 'malformed', message: 'message is not JSON' } },
    ]);
    expect(engine.metrics.of('Malformed')).toBe(2);
  });
});

describe('the cluster of a message', () => {
  it('unknown to the registry: a dead letter that says so', async () => {
    const engine = engineWith({ registry: registryOf({ found: 'unknown' }) });
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.bodies('deadLetters')).toMatchObject([
      { request: { name: 'w' }, error: { class: 'malformed', message: `unknown cluster ${CLUSTER}` } },
    ]);
  });

  it('not resolved yet: waits, and is never dead-lettered', async () => {
    const engine = engineWith({ registry: registryOf({ found: 'unresolved', reason: 'demo: no answer' }) });
    await handlerOf(engine)(
      sqsEvent(requestRecord(instanceRequest('w', { attempt: 9, waited: 60 }))),
      withTime(30_000),
    );
    expect(engine.queues.bodies('deadLetters')).toEqual([]);
    expect(engine.queues.bodies('work')).toMatchObject([{ request: { waited: 60 }, delaySeconds: 60 }]);
  });

  it.each([
    ['removed', { found: 'removed' }],
    ['paused', { found: 'cluster', cluster: { ...fleetCluster, paused: true } }],
  ] as const)('%s: dropped and counted', async (_name, lookup) => {
    const engine = engineWith({ registry: registryOf(lookup) });
    expect(await handlerOf(engine)(one, withTime(30_000))).toEqual(nothingFailed);
    expect(engine.queues.sent).toEqual([]);
    expect(engine.metrics.of('Dropped')).toBe(1);
  });
});

describe('a cluster that answers nothing', () => {
  it('is left alone: the next keys are put off without an attempt, other clusters go on', async () => {
    const instance = vi.fn(() => Promise.reject(new KbindError('unavailable', 'no answer', { side: 'consumer' })));
    const engine = engineWith(reconciling(instance));
    const handler = handlerOf(engine);
    await handler(one, withTime(30_000));
    await handler(sqsEvent(requestRecord(instanceRequest('v'))), withTime(30_000));
    expect(instance).toHaveBeenCalledOnce();
    expect(engine.queues.bodies('work')).toMatchObject([
      { request: { name: 'w', attempt: 1 } },
      { request: { name: 'v', attempt: 0 } },
    ]);
    expect(engine.metrics.of('Postponed')).toBe(1);
  });
});

describe('heartbeats', () => {
  const beat = (at: number, cluster = CLUSTER) => requestRecord({ v: 1, type: 'heartbeat', cluster, at, watches: 3 });

  it('are recorded in the registry', async () => {
    const registry = registryOf();
    const engine = engineWith({ registry });
    await handlerOf(engine, 'control')(sqsEvent(beat(5), beat(7)), withTime(30_000));
    expect(registry.beats.get(CLUSTER)).toEqual({ at: 7, watches: 3 });
  });

  it('of unknown clusters are counted and acknowledged', async () => {
    const engine = engineWith();
    expect(await handlerOf(engine, 'control')(sqsEvent(beat(5, 'other')), withTime(30_000))).toEqual(nothingFailed);
    expect(engine.metrics.of('HeartbeatDropped')).toBe(1);
  });
});

describe('control', () => {
  it('sends each key to its controller', async () => {
    const seen: string[] = [];
    const noting = (name: string) => () => {
      seen.push(name);
      return Promise.resolve(done('ok'));
    };
    const reconcile = {
      connection: noting('connection'),
      clusterbinding: noting('clusterbinding'),
      binding: noting('binding'),
      crd: noting('crd'),
    };
    const engine = engineWith({ controllers: controllersWith({ reconcile }) });
    const event = sqsEvent(
      requestRecord(reconcileRequest(CLUSTER, 'connection', { name: 'c' })),
      requestRecord(reconcileRequest(CLUSTER, 'clusterbinding', { name: 'b' })),
      requestRecord(reconcileRequest(CLUSTER, 'binding', { namespace: 'n', name: 'b' })),
      requestRecord(reconcileRequest(CLUSTER, 'crd', { name: 'widgets.example.org' })),
    );
    expect(await handlerOf(engine, 'control')(event, withTime(30_000))).toEqual(nothingFailed);
    expect(seen.sort()).toEqual(['binding', 'clusterbinding', 'connection', 'crd']);
  });
});
