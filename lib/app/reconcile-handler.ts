import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { instant, type Instant } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import type { HeartbeatRequest, ReconcileRequest } from '../model/request.ts';
import { handleBatch, type BatchWork, type ClusterLimits, type Job } from '../queue/batch.ts';
import { settle, settleMalformed, type Run } from '../queue/settle.ts';
import { runTask, type Engine } from './engine.ts';

/** What a handler of a queue is to the platform. */
export type QueueHandler = (
  event: SQSEvent,
  context: Pick<Context, 'getRemainingTimeInMillis'>,
) => Promise<SQSBatchResponse>;

/** When work that found no time comes back, seconds. */
const POSTPONE_SECONDS = 1;

/** Control and instance keys: each is reconciled in the world of its cluster and settled. */
export function createReconcileHandler(
  engine: Engine,
  queue: 'control' | 'instances',
  limits: ClusterLimits,
): QueueHandler {
  return async (event, context) => {
    const work = reconcileWork(engine, instant(engine.clock));
    try {
      return await handleBatch(event, work, {
        queue,
        limits,
        remainingMs: () => context.getRemainingTimeInMillis(),
        log: engine.log,
        metrics: engine.metrics,
      });
    } finally {
      engine.metrics.flush();
    }
  };
}

function reconcileWork(engine: Engine, arrived: Instant): BatchWork {
  return {
    async run(job, signal) {
      const { request } = job;
      if (request.type === 'heartbeat') return recordHeartbeat(engine, request);
      if (request.type !== 'reconcile') throw misrouted(request.type);
      const { result, run } = await runTask(engine, { request, job, arrived, signal }, (world) =>
        engine.controllers.reconcile[request.controller](world, request),
      );
      const verdict = await settle(request, result, run, engine);
      if (verdict.metric === 'Done' && isFirstRun(request)) {
        // Of the newest of its messages: what older ones said is in the same answer.
        engine.metrics.measure('SyncLag', Math.max(0, engine.clock.now() - job.sentAt));
      }
    },
    async postpone(job) {
      const { request } = job;
      if (request.type !== 'reconcile') return;
      const result = { type: 'postponed', reason: 'no time left to start', seconds: POSTPONE_SECONDS } as const;
      await settle(request, result, idleRun(engine, job), engine);
    },
    refuse: (record, error) => settleMalformed(record, error, engine),
  };
}

/** Waits and attempts are delays that somebody chose: they say nothing about the way through the queues. */
const isFirstRun = ({ attempt, waited, retry }: ReconcileRequest): boolean =>
  retry && attempt === 0 && waited === undefined;

/** The run of something that was not run. */
export const idleRun = ({ clock }: Engine, { receivedAt }: Job): Run => ({
  receivedAt,
  startedAt: clock.now(),
  reconcileId: '',
  trace: [],
});

/** The batch loop lets only those through that travel on the queue. */
export const misrouted = (type: string): KbindError =>
  new KbindError('internal', `a ${type} request came to the wrong function`);

async function recordHeartbeat(engine: Engine, { cluster, at, watches }: HeartbeatRequest): Promise<void> {
  const answer = await engine.registry.heartbeat(cluster, { at, watches });
  if (answer === 'recorded') {
    engine.metrics.count('Heartbeat', 1);
    return;
  }
  // The next one comes in a minute: one that has no home is counted, not kept.
  engine.metrics.count('HeartbeatDropped', 1);
  engine.log.warn('heartbeat of a cluster that is not known', { cluster, found: answer });
}
