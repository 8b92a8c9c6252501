import { KbindError } from '../model/errors.ts';
import type { Connection } from '../model/kinds.ts';
import type { Credential } from './credential.ts';
import type { ProviderPool } from './provider-pool.ts';
import { secretKeyOf, usedSecretRef } from '../model/secret-ref.ts';
import { createSide } from './side.ts';
import type { Probe, Providers, SharedReads, Side } from './world.ts';

/** The longest that an identity which was asked for earlier lets a client be opened without asking again: any time. */
const ANY_AGE_MS = Number.POSITIVE_INFINITY;

/**
 * Providers for one message: the Secret as that message may see it, the client warm from the container's pool.
 * @param reads the message's view; its Secrets decide which credential is used, so that a rotation needs no restart.
 */
export function createProviders(pool: ProviderPool, reads: Pick<SharedReads, 'secret'>): Providers {
  return {
    open: async (connection) => openPinned(pool, connection, await credentialOf(connection, pool, reads)),
    probe: async (connection) => probe(pool, connection, await credentialOf(connection, pool, reads)),
  };
}

async function credentialOf(
  connection: Connection,
  pool: ProviderPool,
  reads: Pick<SharedReads, 'secret'>,
): Promise<Credential> {
  const ref = usedSecretRef(connection);
  const { value: secret } = await reads.secret(secretKeyOf(ref));
  return pool.vet(secret, ref);
}

async function openPinned(pool: ProviderPool, connection: Connection, credential: Credential): Promise<Side> {
  const { name } = connection.metadata;
  const pinned = connection.status.remoteClusterUID;
  if (pinned === undefined) {
    throw new KbindError('identity', `Connection ${name} has not recorded yet which cluster its provider is`, {
      side: 'provider',
    });
  }
  const { client, identity } = pool.use(name, credential);
  const side = createSide({ which: 'provider', uid: pinned, client, identity });
  await side.confirmIdentity(ANY_AGE_MS);
  return side;
}

async function probe(pool: ProviderPool, connection: Connection, credential: Credential): Promise<Probe> {
  const { client, identity } = pool.use(connection.metadata.name, credential);
  const uid = await identity.read(0);
  return {
    side: createSide({ which: 'provider', uid, client, identity }),
    secretVersion: credential.secretVersion,
    contextNamespace: credential.target.contextNamespace,
  };
}
