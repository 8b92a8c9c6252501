import { resources, type KubeObject } from '../../model/api.ts';
import { isDeleting } from '../../model/crd.ts';
import { isError, type ErrorClass } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import { WATCH_PLAN_ANNOTATION } from '../../model/markers.ts';
import { done, waitForProvider, type Outcome } from '../../model/outcome.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import { printWatchPlan, samePlan, watchPlanOf, type WatchPlan } from '../../model/watch-plan.ts';
import type { Belief } from '../../kube/types.ts';
import { doneAsAbsent } from '../absent.ts';
import { setMarkers } from '../object-writes.ts';
import { withReadAgain } from '../read-again.ts';
import type { World } from '../world.ts';
import { nodes } from './chart.ts';
import { connectionIsUsable, isManaged, pinnedConnection, planFor, shrunkPlan } from './which-plan.ts';

/**
 * The managed-CRD controller (spec §6): its syncers are watch plans on the CRD, which the forwarder brings about.
 * @throws KbindError `misconfigured` for a managed CRD without connection annotation or served version.
 */
export function reconcileSyncer(world: World, request: ReconcileRequest): Promise<Outcome> {
  return withReadAgain(world, () => reconcile(world, request.name));
}

async function reconcile(world: World, name: string): Promise<Outcome> {
  const { trace, reads } = world;
  trace.step(nodes.start);
  const { value: crd, sentAt } = await reads.crd(name);
  const present = crd !== undefined && !isDeleting(crd);
  if (!trace.decide(nodes.crd, present) || crd === undefined) return stopWithCrd(world, crd, { sentAt });
  if (!isManaged(crd)) return done('the CRD is not managed');

  const connection = await reads.connection(pinnedConnection(crd));
  if (!trace.decide(nodes.connection, connectionIsUsable(connection.value)) || connection.value === undefined) {
    return stopSyncer(world, crd, connection);
  }
  if (!trace.decide(nodes.engaged, await engages(world, connection.value))) return waitForIt(world, crd, connection);

  const plan = planFor(crd, connection.value);
  if (trace.decide(nodes.current, samePlan(plan, watchPlanOf(crd)))) return done(nodes.stop);
  return rebuild(world, { crd, plan, belief: connection });
}

/** The CRD is gone or going. Going, its instances are swept, so that their copies and finalizers go, whoever asked for it. */
async function stopWithCrd(world: World, crd: KubeObject | undefined, belief: Belief): Promise<Outcome> {
  world.trace.step(nodes.stopSyncer);
  if (crd === undefined) return doneAsAbsent(world, 'the CRD is gone, and its plan with it');
  if (!isManaged(crd)) return done('the CRD is not managed');
  const { name, uid, resourceVersion } = crd.metadata;
  await world.tell.sweep({
    v: 1,
    type: 'sweep',
    cluster: world.cluster,
    apis: [name],
    id: `${uid}/${resourceVersion}`,
    retry: true,
  });
  await record(world, { crd, plan: shrunkPlan(crd), belief });
  return done('the CRD is deleting: its instances are swept');
}

async function stopSyncer(world: World, crd: KubeObject, belief: Belief): Promise<Outcome> {
  world.trace.step(nodes.stopSyncer);
  await record(world, { crd, plan: shrunkPlan(crd), belief });
  return done('the Connection is not Ready');
}

async function waitForIt(world: World, crd: KubeObject, belief: Belief): Promise<Outcome> {
  world.trace.step(nodes.waitProvider);
  await record(world, { crd, plan: shrunkPlan(crd), belief });
  return waitForProvider('the provider does not answer with these credentials');
}

async function rebuild(world: World, decided: Decided): Promise<Outcome> {
  const { trace } = world;
  trace.step(nodes.stopOld);
  trace.step(nodes.version, decided.plan?.version);
  trace.step(nodes.watches, 'by the forwarder');
  await record(world, decided);
  trace.step(nodes.run, 'plan recorded');
  return done('plan recorded');
}

/** What a provider that is not engaged answers; the Connection's condition tells people why. */
const NOT_ENGAGED: readonly ErrorClass[] = [
  'credential',
  'identity',
  'unavailable',
  'throttled',
  'unauthorized',
  'forbidden',
];

async function engages(world: World, connection: Connection): Promise<boolean> {
  try {
    await world.providers.open(connection);
    return true;
  } catch (error) {
    if (!isError(error, ...NOT_ENGAGED)) throw error;
    world.log.info('provider is not engaged', { connection: connection.metadata.name, error: error.message });
    return false;
  }
}

interface Decided {
  readonly crd: KubeObject;
  readonly plan: WatchPlan | undefined;
  readonly belief: Belief;
}

/** Writes the plan where it differs from what is recorded. */
async function record(world: World, { crd, plan, belief }: Decided): Promise<void> {
  if (plan === undefined || samePlan(plan, watchPlanOf(crd))) return;
  await setMarkers(
    world.consumer.client,
    { ref: resources.crds, object: crd },
    { annotations: { [WATCH_PLAN_ANNOTATION]: printWatchPlan(plan) } },
    { signal: world.signal, belief },
  );
}
