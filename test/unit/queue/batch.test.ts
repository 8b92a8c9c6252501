import { describe, expect, it, vi } from 'vitest';
import type { SQSEvent } from 'aws-lambda';
import { KbindError } from '../../../lib/model/errors.ts';
import type { ReconcileRequest } from '../../../lib/model/request.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import {
  ABORT_RESERVE_MS,
  createClusterLimits,
  handleBatch,
  START_RESERVE_MS,
  type BatchWork,
  type Job,
} from '../../../lib/queue/batch.ts';
import { CLUSTER, instanceRequest, requestRecord, sqsEvent, sqsRecord } from '../../support/queue/events.ts';
import { recordCounters, recordLog } from '../../support/queue/recorded.ts';

interface Stage {
  readonly work: BatchWork;
  readonly ran: Job[];
  readonly postponed: Job[];
  readonly refused: string[];
}

function stage(run: BatchWork['run'] = () => Promise.resolve()): Stage {
  const ran: Job[] = [];
  const postponed: Job[] = [];
  const refused: string[] = [];
  const work: BatchWork = {
    run: (job, signal) => {
      ran.push(job);
      return run(job, signal);
    },
    postpone: (job) => {
      postponed.push(job);
      return Promise.resolve();
    },
    refuse: (_record, error) => {
      refused.push(error.message);
      return Promise.resolve();
    },
  };
  return { work, ran, postponed, refused };
}

const handle = (event: SQSEvent, work: BatchWork, extra: { remainingMs?: () => number; perCluster?: number } = {}) =>
  handleBatch(event, work, {
    queue: 'instances',
    remainingMs: extra.remainingMs ?? (() => 60_000),
    limits: createClusterLimits(extra.perCluster ?? 10),
    log: recordLog(),
    metrics: recordCounters(),
  });

const failures = (...ids: string[]): object => ({
  batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
});
const nameOf = (job: Job): string => (job.request as ReconcileRequest).name;

describe('coalescing', () => {
  it('runs a key once: retry is the OR, the attempt the highest, the newest message counts for reads', async () => {
    const { work, ran } = stage();
    await handle(
      sqsEvent(
        requestRecord(instanceRequest('w', { retry: false, attempt: 3, firstFailure: 9, waited: 4 }), { sentAt: 2000 }),
        requestRecord(instanceRequest('w', { attempt: 1, firstFailure: 7 }), { sentAt: 5000, firstReceivedAt: 5001 }),
        requestRecord(instanceRequest('v'), { sentAt: 3000 }),
      ),
      work,
    );
    expect(ran.map(nameOf).sort()).toEqual(['v', 'w']);
    expect(ran.find((job) => nameOf(job) === 'w')).toMatchObject({
      request: { retry: true, attempt: 3, firstFailure: 7, waited: 4 },
      sentAt: 5000,
      receivedAt: 2005,
    });
  });

  it('fails all records of a key together', async () => {
    const { work } = stage((job) => (nameOf(job) === 'w' ? Promise.reject(new Error('no')) : Promise.resolve()));
    const event = sqsEvent(
      requestRecord(instanceRequest('w'), { messageId: 'a' }),
      requestRecord(instanceRequest('v'), { messageId: 'b' }),
      requestRecord(instanceRequest('w'), { messageId: 'c' }),
    );
    expect(await handle(event, work)).toEqual(failures('a', 'c'));
  });
});

describe('failing closed', () => {
  it('answers an empty list when everything was settled', async () => {
    expect(await handle(sqsEvent(requestRecord(instanceRequest('w'))), stage().work)).toEqual(failures());
  });

  it('reports what threw synchronously as well', async () => {
    const work = {
      ...stage().work,
      run: () => {
        throw new Error('at once');
      },
    };
    expect(await handle(sqsEvent(requestRecord(instanceRequest('w'), { messageId: 'a' })), work)).toEqual(
      failures('a'),
    );
  });

  it('a failed item fails what comes after it in its group, and nothing of other groups', async () => {
    const { work } = stage((job) => (nameOf(job) === 'w' ? Promise.reject(new Error('no')) : Promise.resolve()));
    const event = sqsEvent(
      requestRecord(instanceRequest('x'), { messageId: 'before', group: 'g' }),
      requestRecord(instanceRequest('w'), { messageId: 'failed', group: 'g' }),
      requestRecord(instanceRequest('y'), { messageId: 'after', group: 'g' }),
      requestRecord(instanceRequest('z'), { messageId: 'other', group: 'h' }),
    );
    expect(await handle(event, work)).toEqual(failures('failed', 'after'));
  });

  it('on a queue without groups a failed item fails alone', async () => {
    const { work } = stage((job) =>
      job.request.type === 'sweep' ? Promise.reject(new Error('no')) : Promise.resolve(),
    );
    const sweep = { v: 1, type: 'sweep', cluster: CLUSTER, id: 's', retry: true } as const;
    const refresh = { v: 1, type: 'refresh', cluster: CLUSTER, id: 'r' } as const;
    const event = sqsEvent(requestRecord(sweep, { messageId: 'a' }), requestRecord(refresh, { messageId: 'b' }));
    const answer = await handleBatch(event, work, {
      queue: 'work',
      remainingMs: () => 60_000,
      limits: createClusterLimits(5),
      log: recordLog(),
      metrics: recordCounters(),
    });
    expect(answer).toEqual(failures('a'));
  });
});

describe('messages that no reconcile can serve', () => {
  it('are refused with the reason and acknowledged; the rest runs', async () => {
    const { work, ran, refused } = stage();
    const event = sqsEvent(
      sqsRecord('not json'),
      requestRecord(instanceRequest('w')),
      requestRecord(reconcileRequest(CLUSTER, 'connection', { name: 'c' })),
    );
    expect(await handle(event, work)).toEqual(failures());
    expect(ran.map(nameOf)).toEqual(['w']);
    expect(refused).toEqual(['message is not JSON', expect.stringMatching(/travels on control, not on instances/)]);
  });

  it('stay in the queue when even the dead letter fails', async () => {
    const work = { ...stage().work, refuse: () => Promise.reject(new KbindError('unavailable', 'queue')) };
    expect(await handle(sqsEvent(sqsRecord('x', { messageId: 'a' })), work)).toEqual(failures('a'));
  });
});

describe('side by side', () => {
  it('runs up to the cap of a cluster, and other clusters beside it', async () => {
    let running = 0;
    let most = 0;
    const { work } = stage(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    });
    const records = ['a', 'b', 'c', 'd', 'e'].map((name) => requestRecord(instanceRequest(name)));
    await handle(sqsEvent(...records), work, { perCluster: 2 });
    expect(most).toBe(2);
    most = 0;
    const other = ['a', 'b', 'c'].map((name) => requestRecord(instanceRequest(name, { cluster: 'other' })));
    await handle(sqsEvent(...records, ...other), work, { perCluster: 2 });
    expect(most).toBe(4);
  });

  it('shares the cap between batches of one container', async () => {
    const limits = createClusterLimits(1);
    const order: string[] = [];
    const first = limits.run('c', async () => {
      order.push('first starts');
      await new Promise((resolve) => setImmediate(resolve));
      order.push('first ends');
    });
    await Promise.all([first, limits.run('c', () => Promise.resolve(order.push('second')))]);
    expect(order).toEqual(['first starts', 'first ends', 'second']);
  });
});

describe('time', () => {
  it('starts nothing new when too little of it is left: the rest is postponed, not failed', async () => {
    let remaining = 20_000;
    const { work, ran, postponed } = stage(() => {
      remaining = START_RESERVE_MS - 1;
      return Promise.resolve();
    });
    const event = sqsEvent(...['a', 'b', 'c'].map((name) => requestRecord(instanceRequest(name))));
    expect(await handle(event, work, { perCluster: 1, remainingMs: () => remaining })).toEqual(failures());
    expect(ran.map(nameOf)).toEqual(['a']);
    expect(postponed.map(nameOf)).toEqual(['b', 'c']);
  });

  it('never returns while a reconcile runs: aborts it, then awaits it', async () => {
    vi.useFakeTimers();
    try {
      const events: string[] = [];
      let finish = (): void => undefined;
      const { work } = stage(async (_job, signal) => {
        signal.addEventListener('abort', () => events.push('aborted'));
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        events.push('reconcile ended');
      });
      const answer = handle(sqsEvent(requestRecord(instanceRequest('w'))), work, { remainingMs: () => 20_000 }).then(
        (response) => {
          events.push('answered');
          return response;
        },
      );
      await vi.advanceTimersByTimeAsync(20_000 - ABORT_RESERVE_MS - 1);
      expect(events).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect(events).toEqual(['aborted']);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(events).toEqual(['aborted']);
      finish();
      expect(await answer).toEqual(failures());
      expect(events).toEqual(['aborted', 'reconcile ended', 'answered']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('leaves no timer behind', async () => {
    vi.useFakeTimers();
    try {
      await handle(sqsEvent(requestRecord(instanceRequest('w'))), stage().work);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
