import { resources, type ObjectKey, type ResourceRef } from '../model/api.ts';
import { isError, KbindError } from '../model/errors.ts';
import { discoverGroups } from './discovery.ts';
import type { KubeReads, ReadOptions } from './types.ts';

const { group: KCP_GROUP, version: KCP_VERSION } = resources.logicalClusters;

/**
 * The UID that tells a cluster from all others: of `LogicalCluster/cluster` where discovery shows that API, else of the
 * Namespace `kube-system` (spec §2.3). Only "not served" and NotFound fall through to the second; everything else is
 * thrown. A cluster that has neither is class `unavailable`: absence must never come out of a look at the identity.
 */
export async function readClusterIdentity(
  client: Pick<KubeReads, 'get' | 'getPath'>,
  options: ReadOptions = {},
): Promise<string> {
  const { groups } = await discoverGroups(client, options);
  const kcp = groups.find(({ group }) => group === KCP_GROUP)?.versions.includes(KCP_VERSION) ?? false;
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
  try {
    const { uid } = (await client.get(ref, key, options)).metadata;
    return typeof uid === 'string' && uid !== '' ? uid : undefined;
  } catch (error) {
    if (isError(error, 'absent', 'unserved')) return undefined;
    throw error;
  }
}
