import { resources } from '../../model/api.ts';
import type { ConditionReason } from '../../model/conditions.ts';
import { isDeleting } from '../../model/crd.ts';
import { parseConnection, type Connection } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { done, wait, waitForDeletion, type Outcome } from '../../model/outcome.ts';
import { hasFinalizer, removeFinalizer } from '../object-writes.ts';
import { secretKeyOf, secretText, usedSecretRef } from '../../model/secret-ref.ts';
import { tellConnectionDependents } from '../tell-dependents.ts';
import { DELETION_GRACE_MS, type World } from '../world.ts';
import { findNamesake, requestDeletion } from './auto-bind.ts';
import { deletionNodes as nodes } from './chart.ts';
import { persist, type Pass } from './status.ts';
import { condition } from './what-was-found.ts';
import { isOurs } from './which-auto-binding.ts';
import { bindingsText, heldApis, heldText, referringBindings } from './who-blocks.ts';
import { whoReleasesSecret } from './who-releases-secret.ts';

/**
 * A Connection that goes (spec §2, Deleting).
 *
 * 1. It counts as not Ready from now on, which its dependents are told. The binding of autoBind is asked to go.
 * 2. Nothing is concluded sooner than 8 s after the deletionTimestamp, by the API server's `Date` and our clock: until then, somebody
 *    may still act on what they read of it before (spec §8). The lists that decide are asked for after that.
 * 3. While a binding refers to it, or a CRD that is pinned to it has instances with our finalizer, it waits and names them.
 * 4. The Secret's finalizer goes, unless another Connection needs it; then its own.
 *
 * Every release is guarded by the resourceVersion that was read, so that a run which comes late or twice does nothing.
 */
export async function deleteConnection(world: World, { connection }: Pass): Promise<Outcome> {
  const { trace } = world;
  trace.step(nodes.start);
  if (!trace.decide(nodes.finalizer, hasFinalizer(connection, CLEANUP_FINALIZER)))
    return done('nothing of ours holds it');
  await world.consumer.confirmIdentity(0);
  await dropAutoBinding(world, connection);
  const graceMs = graceLeft(connection, world.consumer.client.serverDate());
  if (!trace.decide(nodes.grace, graceMs <= 0)) return waitOutGrace(world, connection, graceMs);
  const blocker = await whatBlocks(world, connection);
  if (blocker !== undefined) return stillDraining(world, connection, blocker);
  return release(world, connection);
}

/** Milliseconds until something final may be decided; a server that has not shown its time yet counts as at the deletion. */
export function graceLeft({ metadata }: Pick<Connection, 'metadata'>, serverDate: number | undefined): number {
  const deletedAt = Date.parse(metadata.deletionTimestamp ?? '');
  return deletedAt + DELETION_GRACE_MS - (serverDate ?? deletedAt);
}

async function dropAutoBinding(world: World, connection: Connection): Promise<void> {
  if (!connection.spec.autoBind) return;
  const found = await findNamesake(world, connection);
  if (found === undefined || isDeleting(found) || !isOurs(found, connection)) return;
  world.trace.step(nodes.autoBind);
  await requestDeletion(world, found);
}

async function waitOutGrace(world: World, connection: Connection, graceMs: number): Promise<Outcome> {
  await say(world, connection, 'Pending', 'the Connection is being deleted');
  return wait('8 seconds after the deletion', Math.ceil(graceMs / 1000), 60);
}

async function whatBlocks(world: World, connection: Connection): Promise<string | undefined> {
  const bindings = await referringBindings(world, connection);
  if (world.trace.decide(nodes.bindings, bindings.length > 0)) return bindingsText(bindings);
  const held = await heldApis(world, connection);
  return world.trace.decide(nodes.instances, held.length > 0) ? heldText(held) : undefined;
}

async function stillDraining(world: World, connection: Connection, message: string): Promise<Outcome> {
  world.trace.step(nodes.draining, message);
  await say(world, connection, 'DrainingBindings', message);
  return waitForDeletion(message);
}

async function say(
  world: World,
  connection: Connection,
  reason: ConditionReason,
  message: string,
): Promise<Connection> {
  return parseConnection(
    await persist(world, connection, { conditions: [condition('Ready', 'False', reason, message)] }),
  );
}

async function release(world: World, connection: Connection): Promise<Outcome> {
  const { value: all } = await world.reads.connections({ fresh: true });
  const secret = whoReleasesSecret(connection, all);
  world.trace.step(nodes.secret, secret.step);
  if (secret.step === 'wait for the others') {
    const message = `${secretText(usedSecretRef(connection))} is shared with Connections that go as well: ${secret.others.join(', ')}`;
    return stillDraining(world, connection, message);
  }
  // Another cluster behind the address has nothing that holds it.
  await world.consumer.confirmIdentity(0);
  if (secret.step === 'release it') await releaseSecret(world, connection);
  // Whoever was never told, because the deletion was noticed late, is told now: there is nobody to do it afterwards.
  const object = await tellConnectionDependents(world, resources.connections, connection);
  world.trace.step(nodes.release);
  const target = { ref: resources.connections, object };
  await removeFinalizer(world.consumer.client, target, CLEANUP_FINALIZER, { signal: world.signal });
  return done(nodes.release);
}

/** A Secret that is gone already, or was never ours, needs nothing. */
async function releaseSecret(world: World, connection: Connection): Promise<void> {
  const key = secretKeyOf(usedSecretRef(connection));
  const object = await world.consumer.client.find(resources.secrets, key, { signal: world.signal });
  if (object === undefined || !hasFinalizer(object, CLEANUP_FINALIZER)) return;
  world.trace.step(nodes.releaseSecret);
  const target = { ref: resources.secrets, object };
  await removeFinalizer(world.consumer.client, target, CLEANUP_FINALIZER, { signal: world.signal });
}
