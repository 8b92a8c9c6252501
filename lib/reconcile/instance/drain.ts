import { hasFinalizer, setMarkers } from '../object-writes.ts';
import type { Side } from '../world.ts';
import type { Belief } from '../../kube/types.ts';
import { keyText, type KubeObject } from '../../model/api.ts';
import { isError, KbindError, toKbindError } from '../../model/errors.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { SYNCER_FINALIZER } from '../../model/markers.ts';
import { done, type Outcome } from '../../model/outcome.ts';
import { noConflict } from './conflict.ts';
import { isOrphan, releaseInstance, requestDeletion } from './delete.ts';
import { drainingBinding } from './is-it-drained.ts';
import { whoOwns } from './who-owns-it.ts';
import { believing, consumerTarget, oldest, ownerOf, readBindings, readCopy, type Work } from './work.ts';

/** A provider read is tried this often before the copy is left where it is (spec §4). */
const MAX_PROVIDER_READS = 5;

/** Why a copy was left behind. */
class LeftBehind {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/**
 * Drains the instance if a deleting binding asks for it (spec §4, last paragraph); undefined when none does. The decision
 * rests on complete lists of both kinds of bindings, sent after the instance was read.
 */
export async function drainIfDue(work: Work, object: KubeObject): Promise<Outcome | undefined> {
  const { world, api, name } = work;
  if (!hasFinalizer(object, SYNCER_FINALIZER)) return undefined;
  // Taken before the lists are asked for: they must have left after an answer that shows a Date this late.
  const facts = { serverDate: world.consumer.client.serverDate(), connection: api.connection };
  const remembered = await readBindings(world);
  if (drainingBinding(remembered.value, name, facts) === undefined) return undefined;
  const lists = await readBindings(world, true);
  const binding = drainingBinding(lists.value, name, facts);
  if (binding === undefined) return undefined;
  await world.consumer.confirmIdentity(0);
  world.trace.step(
    'Drain instances in scope Release their syncer finalizers',
    `${binding.kind} ${binding.metadata.name}`,
  );
  return drain(work, object, { binding, belief: lists });
}

interface Draining {
  readonly binding: AnyBinding;
  readonly belief: Belief;
}

async function drain(work: Work, object: KubeObject, { binding, belief }: Draining): Promise<Outcome> {
  if (!isOrphan(object)) {
    const left = await drainCopy(work, object, { binding, belief });
    if (left !== undefined) await tellLeftBehind(work, binding, left);
  }
  const target = consumerTarget(work, object);
  const cleared = await setMarkers(work.world.consumer.client, target, noConflict, believing(work, belief));
  await releaseInstance(work, cleared, belief);
  return done('drained');
}

/** Requests deletion of the owned copy. Provider reads may fail in the end; a refused delete blocks, and is retried. */
async function drainCopy(
  work: Work,
  object: KubeObject,
  { binding, belief }: Draining,
): Promise<LeftBehind | undefined> {
  const found = await readForDrain(work, object, binding);
  if (found instanceof LeftBehind) return found;
  if (found !== undefined) await requestDeletion(work, { ...found, belief: oldest(belief, work.crd) });
  return undefined;
}

/** The owned copy with its provider; undefined when there is none. */
async function readForDrain(
  work: Work,
  object: KubeObject,
  binding: AnyBinding,
): Promise<{ readonly copy: KubeObject; readonly provider: Side } | LeftBehind | undefined> {
  const { world } = work;
  const connection = await world.reads.connection(binding.spec.connectionRef.name);
  if (connection.value === undefined) return new LeftBehind(`Connection ${binding.spec.connectionRef.name} is gone`);
  try {
    const provider = await world.providers.open(connection.value);
    const copy = await readCopy(work, provider);
    // The address may lead to another cluster by now. What it holds is not ours to delete, and says nothing of ours.
    await provider.confirmIdentity(0);
    return copy !== undefined && whoOwns(copy, ownerOf(work, object)) === 'ours' ? { copy, provider } : undefined;
  } catch (error) {
    return leaveOrThrow(work, error);
  }
}

/** Errors that say nothing about the provider's side. */
const PASSING: ReadonlySet<string> = new Set(['aborted', 'stale', 'internal', 'conflict']);

/** An unusable credential or another cluster leaves the copy at once; any other failed read does so the fifth time. */
function leaveOrThrow({ attempt }: Work, error: unknown): LeftBehind {
  const { errorClass, message, details } = toKbindError(error);
  if (isError(error, 'credential', 'identity')) return new LeftBehind(message);
  const leftAlone = details.leftAloneSeconds;
  if (PASSING.has(errorClass) && leftAlone === undefined) throw error;
  if (attempt + 1 >= MAX_PROVIDER_READS) return new LeftBehind(message);
  // Postponed or waiting, which count no attempts, a drain would never come to its fifth.
  if (leftAlone !== undefined) throw new KbindError('unavailable', message, { retryAfterSeconds: leftAlone }, error);
  if (errorClass === 'forbidden') throw new KbindError('unavailable', message, details, error);
  throw error;
}

async function tellLeftBehind({ world, api, providerKey }: Work, binding: AnyBinding, left: LeftBehind): Promise<void> {
  const key = keyText(providerKey);
  world.log.warn('provider copy left behind by a drain', { api: api.name, key, reason: left.reason });
  world.metrics.count('CopiesLeftBehind', 1);
  const message = `The provider copy ${api.name} ${key} was left behind: ${left.reason}. Delete it by hand.`;
  await world.events.warn(binding.raw, 'LeftBehind', message);
}
