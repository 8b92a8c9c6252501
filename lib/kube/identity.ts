import { resources, type ObjectKey, type ResourceRef } from '../model/api.ts';
import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { isError, KbindError } from '../model/errors.ts';
import { discoverGroups } from './discovery.ts';
import type { KubeReads, ReadOptions } from './types.ts';

const { group: KCP_GROUP, version: KCP_VERSION } = resources.logicalClusters;

type IdentityClient = Pick<KubeReads, 'get' | 'getPath'>;

/** How long it is remembered whether a server shows the kcp API, ms; the UID itself is asked for every time. */
const SOURCE_MAX_AGE_MS = 60_000;

/**
 * The UID that tells a cluster from all others: of `LogicalCluster/cluster` where discovery shows that API, else of the
 * Namespace `kube-system` (spec §2.3). Only "not served" and NotFound fall through to the second; everything else is
 * thrown. A cluster that has neither is class `unavailable`: absence must never come out of a look at the identity.
 */
export async function readClusterIdentity(client: IdentityClient, options: ReadOptions = {}): Promise<string> {
  return identityFrom(client, await showsKcp(client, options), options);
}

/**
 * The same for one client that is asked again and again: discovery is remembered for a minute, so that a look is one
 * request. A server that shows another API by then is another cluster, whose Namespace has another UID.
 */
export function createIdentityReader(client: IdentityClient, clock: Clock): () => Promise<string> {
  let remembered: { readonly kcp: boolean; readonly at: Instant } | undefined;
  return async () => {
    if (remembered === undefined || ageMs(clock, remembered.at) > SOURCE_MAX_AGE_MS) {
      const at = instant(clock);
      remembered = { kcp: await showsKcp(client, {}), at };
    }
    return identityFrom(client, remembered.kcp, {});
  };
}

async function showsKcp(client: IdentityClient, options: ReadOptions): Promise<boolean> {
  const { groups } = await discoverGroups(client, options);
  return groups.find(({ group }) => group === KCP_GROUP)?.versions.includes(KCP_VERSION) ?? false;
}

async function identityFrom(client: IdentityClient, kcp: boolean, options: ReadOptions): Promise<string> {
  const uid = kcp ? await uidOf(client, resources.logicalClusters, { name: 'cluster' }, options) : undefined;
  const identity = uid ?? (await uidOf(client, resources.namespaces, { name: 'kube-system' }, options));
  if (identity === undefined)
    throw new KbindError('unavailable', 'the cluster has no identity: no namespace kube-system');
  return identity;
}

async function uidOf(
  client: Pick<KubeReads, 'get'>,
  ref: ResourceRef,
  key: ObjectKey,
  options: ReadOptions,
): Promise<string | undefined> {
  const object = await client.get(ref, key, options).catch((error: unknown) => {
    if (isError(error, 'absent', 'unserved')) return undefined;
    throw error;
  });
  if (object === undefined) return undefined;
  const { uid } = object.metadata;
  // Falling through here would take one object of the cluster for another.
  if (typeof uid !== 'string' || uid === '')
    throw new KbindError('unavailable', `${ref.resource} ${key.name} has no UID`);
  return uid;
}
