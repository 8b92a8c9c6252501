import { isError, type ErrorClass } from '../../model/errors.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { findCondition } from '../../model/conditions.ts';
import { reconcileRequest, type ReconcileRequest } from '../../model/request.ts';
import { done, wait, waitForPermission, type Outcome } from '../../model/outcome.ts';
import { hasFinalizer, removeFinalizer } from '../object-writes.ts';
import { deleteRelated } from '../related/delete.ts';
import { firstFew } from '../related/report.ts';
import { routesOf } from '../related/sync.ts';
import type { World } from '../world.ts';
import { deletionNodes as nodes } from './chart.ts';
import { cleanUpApi, type CleanUp } from './clean-up-api.ts';
import { condition } from './is-it-ready.ts';
import { graceLeftMs, nextWalkSeconds, walkNumber, type DeletionTimes } from './may-it-end.ts';
import { persist, wantedStatus } from './status.ts';
import type { Target } from './target.ts';

/**
 * The deletion chart (spec §4). Walked no sooner than 8 s after the deletionTimestamp, when nobody acts on this binding any
 * more (spec §8), and again until nothing of it is left. Every step may run twice or be cut short: each is decided anew from
 * complete lists, and the finalizer goes last.
 * @param request its failed attempts, and whether this walk was waited for or an event brings it about
 */
export async function deleteBinding(
  world: World,
  target: Target,
  { attempt, waited }: Pick<ReconcileRequest, 'attempt' | 'waited'>,
): Promise<Outcome> {
  const { binding } = target;
  if (!world.trace.decide(nodes.start, hasFinalizer(binding, CLEANUP_FINALIZER))) return done('no finalizer of ours');
  const times = timesOf(world, target);
  const left = graceLeftMs(times);
  if (left > 0) return waitForGrace(world, target, left);

  world.trace.step(nodes.provider, await tryProvider(world, target));
  const walk = { binding, id: `${binding.metadata.uid}/${walkNumber(times)}`, waitedFor: waited !== undefined };
  const results: CleanUp[] = [];
  for (const api of new Set(binding.spec.apis.map(({ name }) => name))) {
    world.trace.step(nodes.nextApi, api);
    results.push(await cleanUpApi(world, walk, api));
  }
  const unfinished = results.filter((result) => result.left > 0 || result.forbidden !== undefined);
  if (unfinished.length > 0) return goOn(world, target, unfinished, { times, waitedFor: waited !== undefined });
  world.trace.step(nodes.nextApi, 'no');
  return end(world, target, { results, attempt });
}

function timesOf({ clock, consumer }: World, { binding }: Target): DeletionTimes {
  return {
    deletedAt: Date.parse(binding.metadata.deletionTimestamp ?? ''),
    now: clock.now(),
    serverDate: consumer.client.serverDate(),
  };
}

async function waitForGrace(world: World, target: Target, leftMs: number): Promise<Outcome> {
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  await report(world, target, 'deleting: nothing final is decided in the first 8 seconds');
  return wait('8 s after the deletionTimestamp', seconds, seconds);
}

/** What a provider that cannot be used answers; the chart goes on without it, its copies may stay behind. */
const UNUSABLE: readonly ErrorClass[] = [
  'credential',
  'identity',
  'unavailable',
  'throttled',
  'unauthorized',
  'forbidden',
  'unserved',
];

/**
 * For the trace: the copies of instances are deleted by the instances' own reconciles, which open the provider themselves
 * and name what they leave behind.
 */
async function tryProvider(world: World, { binding }: Target): Promise<string> {
  const { value: connection } = await world.reads.connection(binding.spec.connectionRef.name);
  if (connection === undefined) return 'the Connection is gone';
  try {
    await world.providers.open(connection);
    return 'yes';
  } catch (error) {
    if (!isError(error, ...UNUSABLE)) throw error;
    return `no: ${error.errorClass}`;
  }
}

/** How the condition begins that says how many instances are left. */
const PROGRESS = 'deleting: still to be released: ';

const showsProgress = ({ binding }: Target): boolean =>
  findCondition(binding.status.conditions, 'Ready')?.message.startsWith(PROGRESS) ?? false;

/**
 * Something is left: says what, and looks again. A number that is written comes back as an event at once; if walks of events
 * wrote numbers as well, walk would follow walk without a pause, each of which has everything that is left reconciled.
 */
async function goOn(
  world: World,
  target: Target,
  unfinished: readonly CleanUp[],
  { times, waitedFor }: { readonly times: DeletionTimes; readonly waitedFor: boolean },
): Promise<Outcome> {
  const forbidden = unfinished.flatMap(({ forbidden: words }) => (words === undefined ? [] : [words]));
  const draining = unfinished
    .filter(({ left }) => left > 0)
    .map(({ api, left }) => `${left} instance${left === 1 ? '' : 's'} of ${api}`);
  const message = [...(draining.length === 0 ? [] : [`${PROGRESS}${draining.join(', ')}`]), ...forbidden].join('; ');
  const onlyCounts = forbidden.length === 0 && showsProgress(target);
  if (waitedFor || !onlyCounts) await report(world, target, message, forbidden.length > 0);
  if (draining.length === 0) return waitForPermission('deletion of a CRD is forbidden');
  const seconds = nextWalkSeconds(times);
  return wait('instances are being drained', seconds, seconds);
}

async function report(world: World, target: Target, message: string, forbidden = false): Promise<void> {
  const { value: connection } = await world.reads.connection(target.binding.spec.connectionRef.name);
  const conditions = [
    condition('Ready', 'False', forbidden ? 'Forbidden' : 'Pending', message),
    ...(forbidden ? [condition('PermissionDenied', 'True', 'Forbidden', message)] : []),
  ];
  await persist(world, target, wantedStatus(target, { conditions }, world.clock.now()), connection);
}

/** Nothing is left: what was skipped is said now, once, and the binding may go. */
async function end(
  world: World,
  target: Target,
  { results, attempt }: { readonly results: readonly CleanUp[]; readonly attempt: number },
): Promise<Outcome> {
  const { ref, binding } = target;
  for (const { skipped } of results) {
    if (skipped !== undefined) await world.events.warn(binding.raw, 'APISkipped', skipped);
  }
  const { deleted, forbidden } = await deleteRelated(world, binding, attempt);
  world.trace.step(
    nodes.related,
    deleted === 0 && routesOf(binding).length === 0 ? 'none selected' : `${deleted} deleted`,
  );
  if (forbidden.length > 0) {
    await report(world, target, `deleting: related copies are held: ${firstFew(forbidden)}`, true);
    return waitForPermission('deletion of related copies is forbidden');
  }
  await world.consumer.confirmIdentity(0);
  world.trace.step(nodes.release);
  const options = { signal: world.signal };
  await removeFinalizer(world.consumer.client, { ref, object: binding.raw }, CLEANUP_FINALIZER, options);
  await tellConnection(world, binding);
  return done('released');
}

/** A deleting Connection waits for its last binding, with growing pauses: now it need not. Lost, it only comes later. */
async function tellConnection(world: World, { metadata, spec }: Target['binding']): Promise<void> {
  const { value: connection } = await world.reads.connection(spec.connectionRef.name);
  if (connection?.metadata.deletionTimestamp === undefined) return;
  const request = reconcileRequest(world.cluster, 'connection', { name: spec.connectionRef.name });
  await world.tell.reconcile([request], `${metadata.uid}/released`);
}
