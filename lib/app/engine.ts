import { randomUUID } from 'node:crypto';
import type { Instant } from '../model/clock.ts';
import { KbindError, toKbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import {
  requestKey,
  type Controller,
  type ReconcileRequest,
  type RefreshRequest,
  type SweepRequest,
} from '../model/request.ts';
import { wait, type Outcome } from '../model/outcome.ts';
import { Trace } from '../model/trace.ts';
import type { FleetCluster, FleetRegistry, Lookup } from '../fleet/registry.ts';
import type { Job } from '../queue/batch.ts';
import type { Breaker } from '../queue/breaker.ts';
import type { Result, Run, Settling } from '../queue/settle.ts';
import type { SweepOptions, SweepRest } from '../sweep/sweep.ts';
import type { World } from '../reconcile/world.ts';
import type { Counters } from './counters.ts';
import { createVisit, type Visit } from './left-alone.ts';

/** What all handlers share: built once per container by compose.ts. */
export interface Engine extends Settling {
  readonly registry: FleetRegistry;
  readonly breaker: Breaker;
  readonly metrics: Counters;
  readonly controllers: Controllers;
  /** Does something in the world of a cluster, whose session stays open meanwhile. */
  inWorld<T>(cluster: FleetCluster, occasion: Occasion, use: (world: World) => Promise<T>): Promise<T>;
}

/** Which function does what. */
export interface Controllers {
  readonly reconcile: Readonly<Record<Controller, (world: World, request: ReconcileRequest) => Promise<Outcome>>>;
  readonly sweep: (world: World, request: SweepRequest, options: SweepOptions) => Promise<SweepRest | undefined>;
  readonly refresh: (world: World, request: RefreshRequest, deadline: Deadline) => Promise<unknown>;
}

/** Epoch milliseconds by which a refresh should have stopped. */
export interface Deadline {
  readonly deadline: number;
}

/** One piece of work for which a world is opened. */
export interface Occasion {
  /** SentTimestamp of the newest message that asks, epoch ms: older cached reads do not serve. */
  readonly sentAt: number;
  /** When the batch came in. */
  readonly arrived: Instant;
  readonly signal: AbortSignal;
  readonly trace: Trace;
  readonly log: Logger;
  readonly visit: Visit;
}

/** A piece of work under way: its request, its place in time, and what it leaves behind. */
export interface Task {
  readonly request: ReconcileRequest | SweepRequest | RefreshRequest;
  readonly job: Job;
  readonly arrived: Instant;
  readonly signal: AbortSignal;
}

/** A registry entry whose cluster does not say who it is: looked at again, never dead-lettered. */
const UNRESOLVED = { firstSeconds: 2, maxSeconds: 60 };

const unresolved = (reason: string): Result => ({
  type: 'outcome',
  outcome: wait(reason, UNRESOLVED.firstSeconds, UNRESOLVED.maxSeconds),
});

/** The cluster, or what is to be done about work of one that cannot be worked on now. */
async function findCluster(engine: Engine, uid: string): Promise<FleetCluster | Result> {
  const lookup = await lookUp(engine, uid);
  if (lookup === undefined) return unresolved('the fleet registry does not answer');
  switch (lookup.found) {
    case 'unknown':
      return { type: 'error', error: new KbindError('malformed', `unknown cluster ${uid}`) };
    case 'removed':
      return { type: 'dropped', reason: 'the cluster was removed from the fleet' };
    case 'unresolved':
      return unresolved('a cluster of the fleet has not said yet who it is, or its credentials cannot be read');
    case 'cluster':
      return lookup.cluster.paused ? { type: 'dropped', reason: 'the cluster is paused' } : lookup.cluster;
    default:
      throw new KbindError('internal', 'a registry answered with something else');
  }
}

/** A registry that is away says nothing about any key: its failure is counted and waited for, never an attempt. */
async function lookUp({ registry, metrics, log }: Engine, uid: string): Promise<Lookup | undefined> {
  try {
    return await registry.lookup(uid);
  } catch (thrown) {
    const { errorClass, message } = toKbindError(thrown);
    metrics.count('RegistryFailed', 1);
    log.error('the fleet registry does not answer', { cluster: uid, errorClass, errorMessage: message });
    return undefined;
  }
}

const isResult = (found: FleetCluster | Result): found is Result => 'type' in found;

/** Instances come by the thousand; of the others there are few, and they are what finds out that a provider is back. */
const isGuarded = ({ request }: Task): boolean => request.type === 'reconcile' && request.controller === 'instance';

/** What a log line names the work by. */
function named(request: Task['request']): Readonly<Record<string, string>> {
  const { cluster } = request;
  return request.type === 'reconcile' ? { cluster, key: requestKey(request) } : { cluster, [request.type]: request.id };
}

/**
 * Does a piece of work in the world of its cluster. Never throws: what goes wrong is the result.
 * @returns with the run's trace and id, for settling
 */
export async function runTask(
  engine: Engine,
  task: Task,
  use: (world: World) => Promise<Outcome>,
): Promise<{ readonly result: Result; readonly run: Run }> {
  const trace = new Trace();
  const reconcileId = randomUUID();
  const startedAt = engine.clock.now();
  const log = engine.log.child({ reconcileId, ...named(task.request) });
  const result = await attempt(engine, task, { trace, log, use });
  return { result, run: { receivedAt: task.job.receivedAt, startedAt, reconcileId, trace: trace.lines() } };
}

async function attempt(
  engine: Engine,
  task: Task,
  { trace, log, use }: { trace: Trace; log: Logger; use: (world: World) => Promise<Outcome> },
): Promise<Result> {
  const { cluster: uid } = task.request;
  const visit = createVisit(engine.breaker, uid, isGuarded(task));
  let member: FleetCluster | undefined;
  try {
    const found = await findCluster(engine, uid);
    if (isResult(found)) return found;
    member = found;
    const seconds = visit.enterConsumer();
    if (seconds > 0) return { type: 'postponed', reason: 'the cluster is left alone for a while', seconds };
    const { sentAt } = task.job;
    const { arrived, signal } = task;
    const outcome = await engine.inWorld(found, { sentAt, arrived, signal, trace, log, visit }, use);
    visit.succeeded();
    await noteHolder(engine, found, undefined);
    return { type: 'outcome', outcome };
  } catch (thrown) {
    const error = asTimeUp(toKbindError(thrown), task.signal);
    visit.failed(error);
    if (member !== undefined && error.errorClass === 'held') await noteHolder(engine, member, error.details.heldBy);
    return { type: 'error', error };
  }
}

/**
 * Another installation holds the cluster (design.md, rule 13). Nothing may be written there, so no Connection can say it: the
 * registry does, with a metric and a log line, and work of the cluster waits until the Lease is given up.
 */
async function noteHolder(engine: Engine, member: FleetCluster, by: string | undefined): Promise<void> {
  const { registry, metrics, log } = engine;
  if (by !== undefined) metrics.count('ClusterHeld', 1);
  if (member.activity?.heldBy === by) return;
  if (by !== undefined) {
    log.error('the cluster belongs to another installation', { cluster: member.uid, name: member.name, heldBy: by });
  }
  await keepNote(engine, member.uid, () => registry.held(member.uid, by));
}

/** Writes down what was seen of a cluster. Work that is done is done, whatever becomes of the note. */
export async function keepNote(
  { log, metrics }: Pick<Engine, 'log' | 'metrics'>,
  cluster: string,
  note: () => Promise<void>,
): Promise<void> {
  try {
    await note();
  } catch (error) {
    metrics.count('RegistryFailed', 1);
    log.warn('the fleet registry took no note', { cluster, error: toKbindError(error).message });
  }
}

/** What fails because the time was up says nothing about a server. */
function asTimeUp(error: KbindError, signal: AbortSignal): KbindError {
  const cutShort = error.errorClass === 'unavailable' || error.errorClass === 'internal';
  if (!signal.aborted || !cutShort) return error;
  return new KbindError('aborted', error.message, error.details, error);
}
