import { describe, expect, it } from 'vitest';
import { createReconcileHandler } from '../../../lib/app/reconcile-handler.ts';
import { createWorkHandler } from '../../../lib/app/work-handler.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { done, waitForDeletion, type Outcome } from '../../../lib/model/outcome.ts';
import type { ReconcileRequest } from '../../../lib/model/request.ts';
import { createClusterLimits } from '../../../lib/queue/batch.ts';
import { createBreaker } from '../../../lib/queue/breaker.ts';
import { parseDeadLetter } from '../../../lib/queue/dead-letters.ts';
import { controllersWith, engineWith } from '../../support/queue/engine.ts';
import { instanceRequest, requestRecord, sqsEvent, sqsRecord, withTime } from '../../support/queue/events.ts';

/** One key's way round: instances → work → instances, with a clock that passes each delay and a queue that keeps its promises. */

const START = 1_700_000_000_000;

interface Journey {
  /** Seconds from the start at which the key was reconciled. */
  readonly runs: number[];
  readonly deadLetters: string[];
}

async function travel(
  first: ReconcileRequest,
  reconcile: (request: ReconcileRequest, run: number) => Promise<Outcome>,
  hops = 60,
): Promise<Journey> {
  let now = START;
  const clock = { now: () => now, monotonic: () => now };
  const runs: number[] = [];
  const instance = (_world: unknown, request: ReconcileRequest): Promise<Outcome> => {
    runs.push((now - START) / 1000);
    return reconcile(request, runs.length);
  };
  const engine = engineWith({
    clock,
    breaker: createBreaker(clock),
    controllers: controllersWith({ reconcile: { instance } }),
  });
  const instances = createReconcileHandler(engine, 'instances', createClusterLimits(10));
  const work = createWorkHandler(engine, createClusterLimits(10));
  const seen = new Set<string>();
  await instances(sqsEvent(requestRecord(first, { sentAt: now })), withTime(30_000));
  for (let hop = 0; hop < hops; hop += 1) {
    const next = engine.queues.sent.shift();
    if (next === undefined || next.queue === 'deadLetters') {
      return {
        runs,
        deadLetters:
          next === undefined ? [] : [next.message.body, ...engine.queues.sent.map(({ message }) => message.body)],
      };
    }
    const { body, delaySeconds = 0, deduplicationId, group } = next.message;
    now += delaySeconds * 1000;
    if (deduplicationId !== undefined && seen.has(deduplicationId)) throw new Error('a requeue was swallowed');
    if (deduplicationId !== undefined) seen.add(deduplicationId);
    const event = sqsEvent(sqsRecord(body, { sentAt: now, ...(group === undefined ? {} : { group }) }));
    await (next.queue === 'work' ? work : instances)(event, withTime(60_000));
  }
  return { runs, deadLetters: [] };
}

describe('a key that always fails', () => {
  it('is tried ten times over about ten minutes and leaves one dead letter with the first failure', async () => {
    const { runs, deadLetters } = await travel(instanceRequest('w'), () =>
      Promise.reject(new KbindError('conflict', 'again')),
    );
    expect(runs).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511]);
    expect(deadLetters).toHaveLength(1);
    const letter = parseDeadLetter(deadLetters[0] ?? '');
    expect(letter).toMatchObject({ attempts: 10, firstFailure: START + 5, error: { class: 'conflict' } });
  });

  it('and was enqueued by a tick is tried once', async () => {
    const { runs, deadLetters } = await travel(instanceRequest('w', { retry: false }), () =>
      Promise.reject(new KbindError('conflict', 'again')),
    );
    expect(runs).toEqual([0]);
    expect(deadLetters).toEqual([]);
  });
});

describe('a key that waits', () => {
  it('is looked at after 2 s, doubling to 60 s, and no look is swallowed', async () => {
    const { runs } = await travel(instanceRequest('w'), () => Promise.resolve(waitForDeletion('copy')), 18);
    expect(runs).toEqual([0, 2, 6, 14, 30, 62, 122, 182, 242, 302]);
  });

  it('never ends in a dead letter, however often it failed between its waits', async () => {
    const { runs, deadLetters } = await travel(instanceRequest('w'), (_request, run) =>
      run % 5 === 0 ? Promise.resolve(waitForDeletion('copy')) : Promise.reject(new KbindError('internal', 'x')),
    );
    expect(runs.length).toBeGreaterThan(20);
    expect(deadLetters).toEqual([]);
  });
});

describe('a key that heals', () => {
  it('ends its chain without a trace in the queues', async () => {
    const { runs, deadLetters } = await travel(instanceRequest('w'), (_request, run) =>
      run < 4 ? Promise.reject(new KbindError('unavailable', 'x')) : Promise.resolve(done('synced')),
    );
    expect(runs).toHaveLength(4);
    expect(deadLetters).toEqual([]);
  });
});
