import pLimit from 'p-limit';
import { WouldWrite } from '../kube/dry-run.ts';
import { keyOf } from '../model/api.ts';
import { toKbindError } from '../model/errors.ts';
import type { Outcome } from '../model/outcome.ts';
import { reconcileRequest, requestKey, type ReconcileRequest, type RefreshRequest } from '../model/request.ts';
import { Trace } from '../model/trace.ts';
import { reconcileBinding } from '../reconcile/binding/reconcile.ts';
import { reconcileConnection } from '../reconcile/connection/reconcile.ts';
import { dryRunWorld, WouldTell } from '../reconcile/dry-run.ts';
import { reconcileSyncer } from '../reconcile/syncer/reconcile.ts';
import type { World } from '../reconcile/world.ts';
import { Outbox } from './outbox.ts';
import { passWorld, takeSnapshot, type Snapshot } from './pass-world.ts';

/** Dry runs of one pass at a time: an unreachable provider must not keep the others' heartbeats waiting. */
const SIDE_BY_SIDE = 8;

/** What reconciles the kinds of a pass; tests put their own. */
export interface RefreshedControllers {
  readonly connection: (world: World, request: ReconcileRequest) => Promise<Outcome>;
  readonly binding: (world: World, request: ReconcileRequest) => Promise<Outcome>;
  readonly crd: (world: World, request: ReconcileRequest) => Promise<Outcome>;
}

export interface RefreshOptions {
  /** Epoch milliseconds after which no further dry run is started. */
  readonly deadline: number;
  readonly controllers?: RefreshedControllers;
}

const ownControllers: RefreshedControllers = {
  connection: reconcileConnection,
  binding: reconcileBinding,
  crd: reconcileSyncer,
};

/**
 * The 30-second refresh of one cluster (design.md, rule 11): reads its Connections, bindings and managed CRDs once, runs
 * each reconcile dry, and enqueues only what would write something or tell somebody. Heartbeat Leases are renewed on the
 * way. An object that fails is logged and counted; the others go on.
 * @throws KbindError when the cluster's own kinds cannot be listed, or the queue does not take what is to be told.
 */
export async function runRefresh(world: World, request: RefreshRequest, options: RefreshOptions): Promise<void> {
  const { deadline, controllers = ownControllers } = options;
  const snapshot = await takeSnapshot(world.reads);
  const dry = dryRunWorld(passWorld(world, snapshot), { heartbeats: 'renew' });
  const outbox = new Outbox(world, request);
  const limit = pLimit(SIDE_BY_SIDE);
  const runs = requestsOf(world.cluster, snapshot).map((key) =>
    limit(async () => {
      if (world.signal.aborted || world.clock.now() >= deadline) return skip(world, key);
      if (await wouldAct(dry, key, controllers)) await outbox.add(key);
    }),
  );
  const results = await Promise.allSettled(runs);
  await outbox.flush();
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw toKbindError(failed.reason);
  world.log.info('refreshed', { refresh: request.id, looked: runs.length, enqueued: outbox.told });
}

/** Connections first: their heartbeats must not wait for anything. */
function requestsOf(cluster: string, { connections, clusterBindings, bindings, crds }: Snapshot): ReconcileRequest[] {
  const retry = false;
  return [
    ...connections.value.map(({ raw }) => reconcileRequest(cluster, 'connection', keyOf(raw), { retry })),
    ...crds.value.map((crd) => reconcileRequest(cluster, 'crd', keyOf(crd), { retry })),
    ...clusterBindings.value.map(({ raw }) => reconcileRequest(cluster, 'clusterbinding', keyOf(raw), { retry })),
    ...bindings.value.map(({ raw }) => reconcileRequest(cluster, 'binding', keyOf(raw), { retry })),
  ];
}

function skip({ log, metrics }: World, key: ReconcileRequest): void {
  log.warn('refresh had no time left for a key', { key: requestKey(key) });
  metrics.count('RefreshSkipped', 1);
}

/** Whether a reconcile would write or tell. One that fails does neither, and fails again when it is run. */
async function wouldAct(dry: World, key: ReconcileRequest, controllers: RefreshedControllers): Promise<boolean> {
  const trace = new Trace();
  try {
    await controllerOf(key, controllers)({ ...dry, trace }, key);
    return false;
  } catch (error) {
    if (error instanceof WouldWrite || error instanceof WouldTell) {
      dry.log.debug('refresh found work', { key: requestKey(key), would: error.message });
      return true;
    }
    const { errorClass, message } = toKbindError(error);
    dry.log.warn('refresh of an object failed', { key: requestKey(key), errorClass, error: message });
    dry.metrics.count('RefreshObjectFailed', 1);
    return false;
  }
}

function controllerOf(
  { controller }: ReconcileRequest,
  controllers: RefreshedControllers,
): RefreshedControllers['crd'] {
  if (controller === 'connection') return controllers.connection;
  return controller === 'crd' ? controllers.crd : controllers.binding;
}
