import type { SQSRecord } from 'aws-lambda';
import { describe, expect, it, vi } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import type { DueRequest, RefreshRequest, SweepRequest } from '../../../lib/model/request.ts';
import type { Engine } from '../../../lib/app/engine.ts';
import { createWorkHandler } from '../../../lib/app/work-handler.ts';
import { createClusterLimits } from '../../../lib/queue/batch.ts';
import type { SweepOptions } from '../../../lib/sweep/sweep.ts';
import { messageGroup, requeueDeduplicationId } from '../../../lib/queue/ids.ts';
import { controllersWith, engineWith } from '../../support/queue/engine.ts';
import { CLUSTER, instanceRequest, requestRecord, sqsEvent, sqsRecord, withTime } from '../../support/queue/events.ts';

const NOW = 1_700_000_000_000;
const clock = { now: () => NOW, monotonic: () => 0 };
const handle = (engine: Engine, ...records: SQSRecord[]) =>
  createWorkHandler(engine, createClusterLimits(10))(sqsEvent(...records), withTime(60_000));
const nothingFailed = { batchItemFailures: [] };
const due = (dueAt: number): DueRequest => ({
  v: 1,
  type: 'due',
  request: instanceRequest('w'),
  dueAt,
  delaySeconds: 8,
});
const sweep: SweepRequest = { v: 1, type: 'sweep', cluster: CLUSTER, id: 's1', retry: true };
const refresh: RefreshRequest = { v: 1, type: 'refresh', cluster: CLUSTER, id: 'refresh/1/0' };

describe('keys that are due', () => {
  it('go back into their group, with the id of their bucket', async () => {
    const engine = engineWith({ clock });
    expect(await handle(engine, requestRecord(due(NOW - 20)))).toEqual(nothingFailed);
    expect(engine.queues.sent).toEqual([
      {
        queue: 'instances',
        message: {
          body: JSON.stringify(instanceRequest('w')),
          group: messageGroup(instanceRequest('w')),
          deduplicationId: requeueDeduplicationId(due(NOW - 20)),
        },
      },
    ]);
  });

  it('that came early wait for the rest', async () => {
    const engine = engineWith({ clock });
    await handle(engine, requestRecord(due(NOW + 90_000)));
    expect(engine.queues.sent).toMatchObject([{ queue: 'work', message: { delaySeconds: 90 } }]);
    expect(engine.queues.bodies('work')).toEqual([due(NOW + 90_000)]);
  });

  it('that would be early by more than SQS holds wait in steps', async () => {
    const engine = engineWith({ clock });
    await handle(engine, requestRecord(due(NOW + 5_000_000)));
    expect(engine.queues.sent).toMatchObject([{ queue: 'work', message: { delaySeconds: 900 } }]);
  });

  it('stay in the queue when they cannot be forwarded', async () => {
    const engine = engineWith({ clock });
    engine.queues.failing.add('instances');
    const answer = await handle(engine, requestRecord(due(NOW), { messageId: 'm' }));
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: 'm' }] });
  });
});

describe('sweeps', () => {
  it('run with a deadline that leaves time to go on', async () => {
    const run = vi.fn(() => Promise.resolve(undefined));
    const engine = engineWith({ clock, controllers: controllersWith({ sweep: run }) });
    expect(await handle(engine, requestRecord(sweep))).toEqual(nothingFailed);
    const [, request, { deadline }] = run.mock.calls[0] as unknown as [unknown, SweepRequest, { deadline: number }];
    expect(request).toEqual(sweep);
    expect(deadline).toBeGreaterThan(NOW + 40_000);
    expect(deadline).toBeLessThan(NOW + 57_000);
  });

  it('that ran out of time go on through work, as a new chain', async () => {
    const rest = { ...sweep, attempt: 3, firstFailure: 1, cursor: { api: 'widgets.example.org', after: 'a/b' } };
    const engine = engineWith({
      clock,
      controllers: controllersWith({ sweep: () => Promise.resolve({ request: rest, afterSeconds: 0 }) }),
    });
    await handle(engine, requestRecord(sweep));
    expect(engine.queues.bodies('work')).toEqual([{ ...sweep, cursor: rest.cursor }]);
    expect(engine.queues.sent[0]?.message.delaySeconds).toBeUndefined();
  });

  it('that filled the queue go on after a pause; they are told how much waits', async () => {
    const run = vi.fn(async (_world: unknown, _request: unknown, { backlog }: SweepOptions) => {
      expect(await backlog?.()).toBe(700);
      return { request: sweep, afterSeconds: 1 };
    });
    const engine = engineWith({ clock, controllers: controllersWith({ sweep: run }) });
    engine.queues.waiting = 700;
    await handle(engine, requestRecord(sweep));
    expect(run).toHaveBeenCalledOnce();
    expect(engine.queues.sent).toMatchObject([{ queue: 'work', message: { delaySeconds: 1 } }]);
  });

  it('that fail come back as attempts', async () => {
    const failing = () => Promise.reject(new KbindError('unavailable', 'x'));
    const engine = engineWith({ clock, controllers: controllersWith({ sweep: failing }) });
    expect(await handle(engine, requestRecord(sweep))).toEqual(nothingFailed);
    expect(engine.queues.bodies('work')).toMatchObject([{ type: 'sweep', id: 's1', attempt: 1 }]);
  });

  it('of a tick that fail are counted: the next one is their retry', async () => {
    const failing = () => Promise.reject(new KbindError('unavailable', 'x'));
    const engine = engineWith({ clock, controllers: controllersWith({ sweep: failing }) });
    await handle(engine, requestRecord({ ...sweep, retry: false }));
    expect(engine.queues.sent).toEqual([]);
    expect(engine.metrics.of('SweepKeyFailed')).toBe(1);
  });
});

describe('refreshes', () => {
  it('run', async () => {
    const run = vi.fn(() => Promise.resolve());
    const engine = engineWith({ clock, controllers: controllersWith({ refresh: run }) });
    expect(await handle(engine, requestRecord(refresh))).toEqual(nothingFailed);
    expect(run).toHaveBeenCalledOnce();
    expect(engine.metrics.of('Refreshed')).toBe(1);
  });

  it('that fail are counted and not repeated', async () => {
    const failing = () => Promise.reject(new KbindError('unavailable', 'x'));
    const engine = engineWith({ clock, controllers: controllersWith({ refresh: failing }) });
    expect(await handle(engine, requestRecord(refresh))).toEqual(nothingFailed);
    expect(engine.queues.sent).toEqual([]);
    expect(engine.metrics.of('RefreshFailed')).toBe(1);
  });
});

describe('what does not belong here', () => {
  it('is dead-lettered with the reason', async () => {
    const engine = engineWith({ clock });
    expect(await handle(engine, requestRecord(instanceRequest('w')), sqsRecord('{}'))).toEqual(nothingFailed);
    expect(engine.queues.bodies('deadLetters')).toMatchObject([
      { error: { message: 'a reconcile request of this kind travels on instances, not on work' } },
      { error: { class: 'malformed' } },
    ]);
  });
});
