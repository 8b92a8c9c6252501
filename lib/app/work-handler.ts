import { instant, type Instant } from '../model/clock.ts';
import { done } from '../model/outcome.ts';
import type { DueRequest, RefreshRequest, SweepRequest } from '../model/request.ts';
import { ABORT_RESERVE_MS, handleBatch, type BatchWork, type ClusterLimits, type Job } from '../queue/batch.ts';
import { errorRecord } from '../queue/dead-letters.ts';
import { forwardedMessage, sendAll, workMessage } from '../queue/queues.ts';
import { settle, settleMalformed } from '../queue/settle.ts';
import { keepNote, runTask, type Engine } from './engine.ts';
import { idleRun, misrouted, type QueueHandler } from './reconcile-handler.ts';

/**
 * A requeue that is due within this is forwarded, ms. With what two clocks may differ by, it must stay under half the
 * shortest delay that collapses (2 s): a key that runs earlier finds its next requeue in the bucket that it used up itself.
 */
export const DUE_TOLERANCE_MS = 250;
/** What a sweep should leave of the time before it is aborted, ms: for its last page and for sending itself on. */
const SWEEP_RESERVE_MS = 5_000;
/** When a sweep that found no time comes back, seconds. */
const POSTPONE_SECONDS = 1;

/** Keys that are due, sweeps and refreshes. */
export function createWorkHandler(engine: Engine, limits: ClusterLimits): QueueHandler {
  return async (event, context) => {
    const remainingMs = (): number => context.getRemainingTimeInMillis();
    const deadline = engine.clock.now() + remainingMs() - ABORT_RESERVE_MS - SWEEP_RESERVE_MS;
    const work = workOnWork(engine, instant(engine.clock), deadline);
    try {
      return await handleBatch(event, work, {
        queue: 'work',
        limits,
        remainingMs,
        log: engine.log,
        metrics: engine.metrics,
      });
    } finally {
      engine.metrics.flush();
    }
  };
}

function workOnWork(engine: Engine, arrived: Instant, deadline: number): BatchWork {
  return {
    async run(job, signal) {
      const { request } = job;
      if (request.type === 'due') return forward(engine, request);
      if (request.type === 'sweep') return sweep(engine, request, { job, arrived, signal, deadline });
      if (request.type === 'refresh') return refresh(engine, request, { job, arrived, signal, deadline });
      throw misrouted(request.type);
    },
    async postpone(job) {
      const { request } = job;
      if (request.type === 'due') return forward(engine, request);
      if (request.type === 'sweep') {
        const result = { type: 'postponed', reason: 'no time left to start', seconds: POSTPONE_SECONDS } as const;
        await settle(request, result, idleRun(engine, job), engine);
      } else {
        // The next refresh comes within half a minute.
        engine.metrics.count('RefreshSkipped', 1);
      }
    },
    refuse: (record, error) => settleMalformed(record, error, engine),
  };
}

/** Puts a key back into its group; what came early (the queue holds nothing longer than 15 minutes) waits for the rest. */
async function forward({ queues, clock }: Engine, due: DueRequest): Promise<void> {
  const leftMs = due.dueAt - clock.now();
  const next = leftMs > DUE_TOLERANCE_MS ? workMessage(due, leftMs / 1000) : forwardedMessage(due);
  await sendAll(queues, [next]);
}

interface Occasion {
  readonly job: Job;
  readonly arrived: Instant;
  readonly signal: AbortSignal;
  readonly deadline: number;
}

async function sweep(engine: Engine, request: SweepRequest, occasion: Occasion): Promise<void> {
  const { deadline, ...when } = occasion;
  const { result, run } = await runTask(engine, { request, ...when }, async (world) => {
    const backlog = (): Promise<number> => engine.queues.backlog();
    const rest = await engine.controllers.sweep(world, request, { deadline, backlog });
    if (rest === undefined) {
      await noteSweep(engine, request);
      return done('swept');
    }
    const { attempt: _, firstFailure: __, waited: ___, ...next } = rest.request;
    await sendAll(engine.queues, [workMessage(next, rest.afterSeconds)]);
    return done(rest.afterSeconds > 0 ? 'many keys wait: goes on through work' : 'out of time: goes on through work');
  });
  await settle(request, result, run, engine);
}

/** A sweep over all APIs shows in the registry. */
async function noteSweep(engine: Engine, { cluster, apis, namespace }: SweepRequest): Promise<void> {
  if (apis !== undefined || namespace !== undefined) return;
  await keepNote(engine, cluster, () => engine.registry.swept(cluster, engine.clock.now()));
}

/** A refresh that fails is not repeated: the next one comes within half a minute. */
async function refresh(engine: Engine, request: RefreshRequest, occasion: Occasion): Promise<void> {
  const { deadline, ...when } = occasion;
  const { result, run } = await runTask(engine, { request, ...when }, async (world) => {
    await engine.controllers.refresh(world, request, { deadline });
    return done('refreshed');
  });
  const { reconcileId } = run;
  const fields = { cluster: request.cluster, refresh: request.id, reconcileId };
  if (result.type === 'error') {
    const { class: errorClass, message: errorMessage } = errorRecord(result.error);
    engine.metrics.count('RefreshFailed', 1);
    engine.log.warn('refresh failed', { ...fields, errorClass, errorMessage });
  } else {
    engine.metrics.count('Refreshed', 1);
    engine.log.info('refresh settled', { ...fields, result: result.type });
  }
}
