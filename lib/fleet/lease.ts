import { resources, type KubeObject } from '../model/api.ts';
import { isError, KbindError } from '../model/errors.ts';
import { MANAGED_LABEL, TRUE } from '../model/markers.ts';
import type { KubeClient } from '../kube/types.ts';

/**
 * The Lease that names the installation which a consumer cluster belongs to (design.md, rule 13). It does not expire: taking
 * over is an explicit act, by whoever deletes the Lease or empties its holder.
 */
export const FLEET_LEASE = { namespace: 'kube-system', name: 'kbind-serverless' } as const;

/** The consumer cluster, which says who it is. */
interface LeaseSide {
  readonly client: KubeClient;
  readonly confirmIdentity: (maxAgeMs: number) => Promise<void>;
}

/** Installation and stage, as the Lease's holder. */
export const holderOf = (installation: string, stage: string): string => `${installation}/${stage}`;

const holderIn = (lease: KubeObject): string => {
  const spec = lease.spec as { readonly holderIdentity?: unknown } | undefined;
  return typeof spec?.holderIdentity === 'string' ? spec.holderIdentity : '';
};

/** A holder is foreign text: it is shown in logs, metrics and the registry. */
const plainHolder = (holder: string): string => holder.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 128);

const newLease = (holder: string): Parameters<KubeClient['create']>[1] => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { ...FLEET_LEASE, labels: { [MANAGED_LABEL]: TRUE } },
  spec: { holderIdentity: holder },
});

/** Takes a Lease that nobody holds; a race is lost to whoever was first. */
async function take(client: KubeClient, lease: KubeObject | undefined, holder: string): Promise<string> {
  try {
    const taken =
      lease === undefined
        ? await client.create(resources.leases, newLease(holder))
        : await client.update(resources.leases, { ...lease, spec: { holderIdentity: holder } });
    return holderIn(taken);
  } catch (error) {
    if (!isError(error, 'conflict')) throw error;
    return holderIn(await client.get(resources.leases, FLEET_LEASE));
  }
}

/**
 * Makes sure that this cluster belongs to this installation; takes it when it belongs to none.
 * @throws KbindError class `held` that says who holds it; nothing else may be written there then. Class `identity` where the
 *   address leads to another cluster by now: that one is neither taken nor believed
 */
export async function holdFleetLease({ client, confirmIdentity }: LeaseSide, holder: string): Promise<void> {
  const lease = await client.find(resources.leases, FLEET_LEASE);
  const present = lease === undefined ? '' : holderIn(lease);
  if (present === holder) return;
  await confirmIdentity(0);
  refuseUnless(present === '' ? await take(client, lease, holder) : present, holder);
}

/**
 * For whoever only looks: the same without taking a cluster that belongs to none.
 * @throws KbindError class `held` that says who holds it
 */
export async function checkFleetLease(client: KubeClient, holder: string): Promise<void> {
  const lease = await client.find(resources.leases, FLEET_LEASE);
  const present = lease === undefined ? '' : holderIn(lease);
  if (present !== '') refuseUnless(present, holder);
}

function refuseUnless(holds: string, holder: string): void {
  if (holds === holder) return;
  throw new KbindError(
    'held',
    `the cluster belongs to installation ${plainHolder(holds)}, not to ${holder}: delete Lease kube-system/kbind-serverless to take it over`,
    { api: 'leases.coordination.k8s.io', key: FLEET_LEASE, side: 'consumer', heldBy: plainHolder(holds) },
  );
}
