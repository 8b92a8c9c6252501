import { doneAsAbsent } from '../absent.ts';
import { addFinalizer, hasFinalizer } from '../object-writes.ts';
import { withReadAgain } from '../read-again.ts';
import type { World } from '../world.ts';
import type { KubeObject } from '../../model/api.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { SYNCER_FINALIZER } from '../../model/markers.ts';
import { done, waitForDeletion, type Outcome } from '../../model/outcome.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import { nodes } from './chart.ts';
import { adoptCopy, updateCopy } from './apply-copy.ts';
import { clearConflict, recordConflict } from './conflict.ts';
import { copyStatus } from './copy-status.ts';
import { createCopy } from './create-copy.ts';
import { deleteInstance } from './delete.ts';
import { drainIfDue } from './drain.ts';
import { tellForbidden, tellRefusal } from './refusals.ts';
import { coveringBinding, whyNotBound } from './which-binding.ts';
import { whoOwns } from './who-owns-it.ts';
import {
  believing,
  consumerTarget,
  oldest,
  ownerOf,
  pinnedConnection,
  readBindings,
  readCopy,
  readSource,
  workOf,
  type Pair,
  type Work,
} from './work.ts';

/**
 * Reconciles one instance: the second flowchart of seeds/000 (instance reconciliation) with spec §7 and §11. Everything is
 * read again from the clusters, so the request may be late, doubled or reordered; a failed guard starts over.
 * @throws KbindError for what is to be retried (or, class `invalid`, dead-lettered).
 */
export function reconcileInstance(world: World, request: ReconcileRequest): Promise<Outcome> {
  return withReadAgain(world, async () => {
    world.trace.step(nodes.start);
    const work = await workOf(world, request);
    if (work === undefined) return doneAsAbsent(world, 'the API does not exist on the consumer');
    const object = await readSource(work);
    world.trace.decide(nodes.object, object !== undefined);
    return object === undefined
      ? doneAsAbsent(world, 'consumer object does not exist')
      : reconcileTelling(work, object);
  });
}

async function reconcileTelling(work: Work, object: KubeObject): Promise<Outcome> {
  try {
    return await reconcileObject(work, object);
  } catch (error) {
    await tellForbidden(work, object, error);
    throw error;
  }
}

/** From the consumer object on: also where the reconcile goes on from the answer of the write that added the finalizer. */
async function reconcileObject(work: Work, object: KubeObject): Promise<Outcome> {
  const { trace } = work.world;
  const drained = await drainIfDue(work, object);
  if (drained !== undefined) return drained;
  const lists = await readBindings(work.world);
  const binding = coveringBinding(lists.value, work.name, work.api.connection);
  trace.step(nodes.resolve, nameOf(binding));
  if (trace.decide(nodes.deleting, object.metadata.deletionTimestamp !== undefined)) {
    trace.step(nodes.cleanup);
    return deleteInstance(work, object);
  }
  const connection = await pinnedConnection(work);
  const refusal = work.api.syncs
    ? whyNotBound(binding, work.api.connection, connection?.value)
    : 'the CRD is deleting or not managed';
  trace.decide(nodes.bound, refusal === undefined);
  if (refusal !== undefined || connection?.value === undefined || binding === undefined) {
    return doneAsAbsent(work.world, refusal ?? 'not bound');
  }
  trace.step(nodes.mapKey);
  const belief = oldest(work.crd, lists, connection);
  if (!trace.decide(nodes.finalizer, hasFinalizer(object, SYNCER_FINALIZER))) {
    trace.step(nodes.addFinalizer, 'going on from its answer');
    const target = consumerTarget(work, object);
    // Bindings are remembered, the instance was read now: maybe in another cluster, which would keep the finalizer for ever.
    await work.world.consumer.confirmIdentity(0);
    const answer = await addFinalizer(work.world.consumer.client, target, SYNCER_FINALIZER, believing(work, belief));
    return reconcileObject(work, answer);
  }
  // Part of reading there: a provider that is away is found here.
  trace.step(nodes.target);
  const provider = await work.world.providers.open(connection.value);
  return syncPair(work, { source: object, provider, belief }, binding);
}

const nameOf = (binding: AnyBinding | undefined): string =>
  binding === undefined ? 'none' : `${binding.kind} ${binding.metadata.name}`;

/** Read provider object, and make it match or say why not. */
async function syncPair(work: Work, pair: Pair, binding: AnyBinding): Promise<Outcome> {
  const { trace } = work.world;
  const target = await readCopy(work, pair.provider);
  const ownership = whoOwns(target, ownerOf(work, pair.source));
  trace.step(nodes.ownership, ownership);
  if (target === undefined) return syncSpec(work, pair, (cleared) => createCopy(work, cleared));
  if (ownership === 'another') return recordConflict(work, pair, { target, reason: 'OwnedByAnother' });
  if (ownership === 'unmarked' && !trace.decide(nodes.adopt, binding.spec.conflictPolicy === 'Adopt')) {
    return recordConflict(work, pair, { target, reason: 'ForeignObjectExists' });
  }
  if (target.metadata.deletionTimestamp !== undefined) return waitForDeletion('the provider copy is being deleted');
  const write = ownership === 'ours' ? updateCopy : adoptCopy;
  return syncSpec(work, pair, (cleared) => write(work, cleared, target));
}

/** Clear old conflict marker, apply spec and ownership markers, copy status if present. */
async function syncSpec(work: Work, pair: Pair, write: (pair: Pair) => Promise<KubeObject>): Promise<Outcome> {
  const { trace } = work.world;
  const cleared = { ...pair, source: await clearConflict(work, pair) };
  trace.step(nodes.apply);
  let copy: KubeObject;
  try {
    copy = await write(cleared);
  } catch (error) {
    return tellRefusal(work, cleared.source, error);
  }
  trace.step(nodes.status);
  await copyStatus(work, cleared, copy);
  return done('synced');
}
