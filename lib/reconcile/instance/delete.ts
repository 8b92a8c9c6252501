import { doneAsAbsent } from '../absent.ts';
import { hasFinalizer, removeFinalizer } from '../object-writes.ts';
import { confirmSides } from '../side.ts';
import type { Side } from '../world.ts';
import type { Belief } from '../../kube/types.ts';
import type { KubeObject } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import { DELETION_POLICY_ANNOTATION, ORPHAN, SYNCER_FINALIZER } from '../../model/markers.ts';
import { connectionIsReady } from '../../model/may-act.ts';
import { done, waitForDeletion, waitForProvider, type Outcome } from '../../model/outcome.ts';
import { deletionNodes } from './chart.ts';
import { whoOwns } from './who-owns-it.ts';
import { believing, consumerTarget, oldest, ownerOf, pinnedConnection, readCopy, type Work } from './work.ts';

/** True when the user wants to keep the provider copy. */
export const isOrphan = (object: Pick<KubeObject, 'metadata'>): boolean =>
  object.metadata.annotations?.[DELETION_POLICY_ANNOTATION] === ORPHAN;

/**
 * Instance deletion: the third flowchart of seeds/000. Needs no binding; the provider is the one that the CRD is pinned to.
 * The finalizer goes only when the owned copy is gone, foreign, or the policy is Orphan. Read and delete errors are thrown,
 * never taken for absence.
 */
export async function deleteInstance(work: Work, object: KubeObject): Promise<Outcome> {
  const { trace } = work.world;
  trace.step(deletionNodes.start);
  if (!trace.decide(deletionNodes.finalizer, hasFinalizer(object, SYNCER_FINALIZER))) {
    return doneAsAbsent(work.world, 'deleting, without our finalizer');
  }
  if (trace.decide(deletionNodes.orphan, isOrphan(object))) {
    await work.world.consumer.confirmIdentity(0);
    return releaseInstance(work, object, undefined);
  }
  const connection = await pinnedConnection(work);
  const held = whyHeld(work, connection?.value);
  if (connection?.value === undefined || held !== undefined)
    return doneAsAbsent(work.world, await tellHeld(work, object, held ?? 'no Connection'));
  const belief = oldest(work.crd, connection);
  trace.step(deletionNodes.readProvider);
  const provider = await openForDeletion(work, connection.value);
  return provider === undefined
    ? waitForProvider('the provider of a deleting Connection does not answer')
    : deleteCopy(work, { source: object, provider, belief });
}

/** Why a deletion cannot go on now: regained readiness sweeps these instances, they are not retried one by one. */
function whyHeld({ world, api }: Work, connection: Connection | undefined): string | undefined {
  if (api.connection === undefined) {
    throw new KbindError('misconfigured', `CustomResourceDefinition ${api.name} names no Connection`, {
      api: api.name,
    });
  }
  if (connection === undefined) return `Connection ${api.connection} does not exist`;
  const pinned = connection.status.localClusterUID;
  if (pinned !== undefined && pinned !== world.cluster) {
    return `Connection ${api.connection} is pinned to another consumer cluster`;
  }
  const deleting = connection.metadata.deletionTimestamp !== undefined;
  return deleting || connectionIsReady(connection) ? undefined : `Connection ${api.connection} is not Ready`;
}

async function tellHeld({ world }: Work, object: KubeObject, reason: string): Promise<string> {
  const remedy =
    'It goes on by itself when that is mended; the annotation core.kbind.io/deletion-policy: Orphan keeps it';
  await world.events.warn(object, 'Pending', `The provider copy cannot be deleted: ${reason}. ${remedy}.`);
  return reason;
}

/** A deleting Connection's credentials are used for as long as they work, and waited for when they do not. */
async function openForDeletion({ world }: Work, connection: Connection): Promise<Side | undefined> {
  try {
    return await world.providers.open(connection);
  } catch (error) {
    const deleting = connection.metadata.deletionTimestamp !== undefined;
    if (!deleting || !isError(error, 'credential', 'identity', 'unavailable', 'unauthorized', 'forbidden')) throw error;
    world.log.warn('provider of a deleting Connection cannot be reached', {
      connection: connection.metadata.name,
      errorClass: error.errorClass,
    });
    return undefined;
  }
}

interface Deletion {
  readonly source: KubeObject;
  readonly provider: Side;
  readonly belief: Belief;
}

async function deleteCopy(work: Work, deletion: Deletion): Promise<Outcome> {
  const { trace } = work.world;
  const copy = await readOwnCopy(work, deletion);
  if (!trace.decide(deletionNodes.owned, copy !== undefined) || copy === undefined)
    return releaseChecked(work, deletion);
  const goesAtOnce = !isHeld(copy);
  trace.step(deletionNodes.deleteCopy, goesAtOnce ? 'nothing holds it: looking again at once' : undefined);
  await requestDeletion(work, { copy, ...deletion });
  // Exactly what was read was deleted, and with no finalizer on it nothing delays that. Whether it is gone a read says, as ever.
  const gone = goesAtOnce && (await readOwnCopy(work, deletion)) === undefined;
  if (!gone) return waitForDeletion('the provider copy is going away');
  trace.decide(deletionNodes.owned, false);
  return releaseChecked(work, deletion);
}

async function readOwnCopy(work: Work, { source, provider }: Deletion): Promise<KubeObject | undefined> {
  const copy = await readCopy(work, provider);
  return whoOwns(copy, ownerOf(work, source)) === 'ours' ? copy : undefined;
}

/** Something other than the deletion itself decides when it goes. */
const isHeld = ({ metadata: { deletionTimestamp, finalizers = [] } }: KubeObject): boolean =>
  deletionTimestamp !== undefined || finalizers.length > 0;

/**
 * Either address may lead to another cluster by now. What that provider does not hold says nothing of ours, and an instance of that
 * consumer has a copy of its own.
 */
async function releaseChecked(work: Work, { source, provider, belief }: Deletion): Promise<Outcome> {
  await confirmSides(provider, work.world.consumer);
  return releaseInstance(work, source, belief);
}

/** Requests the deletion of an owned copy, unless that was done already. Gone in the meantime is as good. */
export async function requestDeletion(
  work: Work,
  { copy, provider, belief }: { readonly copy: KubeObject; readonly provider: Side; readonly belief: Belief },
): Promise<void> {
  const { uid, resourceVersion, deletionTimestamp } = copy.metadata;
  if (deletionTimestamp !== undefined) return;
  try {
    await provider.client.delete(work.api.ref, work.providerKey, { uid, resourceVersion }, believing(work, belief));
  } catch (error) {
    if (!isError(error, 'absent')) throw error;
  }
}

/** Remove consumer syncer finalizer: by uid and resourceVersion, so only from the object that the decision was taken on. */
export async function releaseInstance(work: Work, object: KubeObject, belief: Belief | undefined): Promise<Outcome> {
  const { world } = work;
  world.trace.step(deletionNodes.release);
  const options = belief === undefined ? { signal: world.signal } : believing(work, belief);
  try {
    await removeFinalizer(world.consumer.client, consumerTarget(work, object), SYNCER_FINALIZER, options);
  } catch (error) {
    if (!isError(error, 'absent')) throw error;
  }
  return done('finalizer released');
}
