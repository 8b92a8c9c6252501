import { KbindError } from '../model/errors.ts';
import type { Clock } from '../model/clock.ts';
import type { KubeClient } from '../kube/types.ts';
import { createIdentityReader } from '../kube/identity.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import type { Side } from './world.ts';

/** One cluster behind one client, with the UID that it is held to. */
export interface SideOptions {
  readonly which: Side['which'];
  /** The cluster that it must be: from the registry for a consumer, pinned by the Connection for a provider. */
  readonly uid: string;
  readonly client: KubeClient;
  readonly identity: ClusterIdentity;
}

/** The oldest answer that keeps a cluster out, ms: the address may have led to another one for a moment only. */
const MISMATCH_MAX_AGE_MS = 2_000;

/** A side whose cluster is asked for its identity as {@link Side.confirmIdentity} says. Makes no request itself. */
export function createSide({ which, uid, client, identity }: SideOptions): Side {
  return {
    which,
    uid,
    client,
    async confirmIdentity(maxAgeMs) {
      let found = await identity.read(maxAgeMs);
      if (found !== uid) found = await identity.read(Math.min(maxAgeMs, MISMATCH_MAX_AGE_MS));
      if (found !== uid) throw identityChanged(which, client.host, { pinned: uid, found });
    },
  };
}

/**
 * Before a write that rests on reads of these clusters, whatever it writes to: each is asked who it is after those reads.
 * Whoever asks at the same time shares the answer. Ends when all have answered.
 * @throws KbindError class `identity` where one is another by now, or what a question threw
 */
export async function confirmSides(...sides: readonly Side[]): Promise<void> {
  const answers = await Promise.allSettled(sides.map((side) => side.confirmIdentity(0)));
  const failed = answers.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

/** The side of a client that nobody else shares. */
export function createOwnSide(options: Omit<SideOptions, 'identity'> & { readonly clock: Clock }): Side {
  const { client, clock } = options;
  return createSide({ ...options, identity: new ClusterIdentity(createIdentityReader(client, clock), clock) });
}

/** Another cluster answers. Means that the one that was meant is unavailable, never that anything in it is absent. */
export function identityChanged(
  side: Side['which'],
  host: string,
  uids: { readonly pinned: string; readonly found: string },
): KbindError {
  return new KbindError(
    'identity',
    `the ${side} at ${host} is cluster ${uids.found}, not ${uids.pinned}: nothing is moved or deleted there`,
    { side },
  );
}
