import { resources } from '../../model/api.ts';
import { isDeleting } from '../../model/crd.ts';
import type { Connection } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER, SECRET_REF_ANNOTATION } from '../../model/markers.ts';
import { addFinalizer, hasFinalizer, setMarkers, type MarkerChanges } from '../object-writes.ts';
import {
  recordedSecretRef,
  secretKeyOf,
  secretRefText,
  secretRefWasChanged,
  secretText,
  usedSecretRef,
} from '../../model/secret-ref.ts';
import type { World } from '../world.ts';
import type { Finding } from './what-was-found.ts';
import { parseConnection } from '../../model/kinds.ts';
import type { Pass } from './status.ts';

/** What records which Secret a Connection was made with, so that it holds on servers without immutability rules. */
export const secretRefRecord = (connection: Connection): MarkerChanges =>
  recordedSecretRef(connection) === undefined
    ? { annotations: { [SECRET_REF_ANNOTATION]: secretRefText(connection.spec.kubeconfigSecretRef) } }
    : {};

/** Writes that record on a Connection that has none, or none that can be read. */
export async function recordSecretRef(world: World, connection: Connection): Promise<Connection> {
  const target = { ref: resources.connections, object: connection.raw };
  const record = secretRefRecord(connection);
  return parseConnection(await setMarkers(world.consumer.client, target, record, { signal: world.signal }));
}

/**
 * Keeps the Secret from going before the Connection does. One that is on its way out already for another reason is left
 * alone: the API server refuses new finalizers there (C16).
 */
export async function holdSecret(world: World, { connection, belief }: Pass): Promise<undefined> {
  const { value: secret } = await world.reads.secret(secretKeyOf(usedSecretRef(connection)));
  if (secret === undefined || isDeleting(secret) || hasFinalizer(secret, CLEANUP_FINALIZER)) return;
  const target = { ref: resources.secrets, object: secret };
  await world.consumer.confirmIdentity(0);
  await addFinalizer(world.consumer.client, target, CLEANUP_FINALIZER, { signal: world.signal, belief });
}

/** A reference that was changed although it is immutable is refused, and the first one stays in use for what is unwound. */
export function whatIsWrongWithRef(connection: Connection): Finding | undefined {
  if (!secretRefWasChanged(connection)) return undefined;
  const [was, is] = [usedSecretRef(connection), connection.spec.kubeconfigSecretRef];
  return {
    is: 'unusable kubeconfig',
    message:
      `spec.kubeconfigSecretRef is immutable: it was key "${was.key}" of ${secretText(was)} and is key "${is.key}" of ` +
      `${secretText(is)} now; set it back, or create another Connection`,
  };
}
