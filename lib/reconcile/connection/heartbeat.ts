import { resources, type KubeObject } from '../../model/api.ts';
import { KbindError } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import { CONNECTION_ANNOTATION, CONSUMER_CLUSTER_UID, MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { IDENTITY_MAX_AGE_MS, type Probe, type World } from '../world.ts';
import { nodes } from './chart.ts';

/** Where the Lease lives when the kubeconfig's context names no namespace. */
const DEFAULT_NAMESPACE = 'kbind';
const LEASE_SECONDS = 60;
/** A Lease that was renewed less than this ago is left: a burst of events must not write one each, ms. */
const FRESH_MS = 10_000;
/** Characters of the local UID in the Lease's name. */
const UID_CHARACTERS = 10;

/** `<connection>-<first ten characters of the local UID>`. */
export const leaseName = (connection: string, localUid: string): string =>
  `${connection}-${localUid.slice(0, UID_CHARACTERS)}`;

/** MicroTime: RFC 3339 with six fractional digits; the API server refuses three (field case 2). */
export const microTime = (epochMs: number): string => new Date(epochMs).toISOString().replace('Z', '000Z');

/** The longest name that an API server takes: a Connection whose Lease would have a longer one goes without. */
const MAX_NAME = 253;

/** What is to be done about the Lease of that name. */
export type LeaseStep = 'name too long' | 'create' | 'renew' | 'fresh enough' | "somebody else's";

export function whichLeaseStep(lease: KubeObject | undefined, localUid: string, nowMs: number): LeaseStep {
  if (lease === undefined) return 'create';
  if (lease.metadata.annotations?.[CONSUMER_CLUSTER_UID] !== localUid) return "somebody else's";
  const { renewTime, holderIdentity } = (lease.spec ?? {}) as {
    readonly renewTime?: string;
    readonly holderIdentity?: string;
  };
  const age = nowMs - Date.parse(renewTime ?? '');
  return holderIdentity === localUid && age >= 0 && age < FRESH_MS ? 'fresh enough' : 'renew';
}

/**
 * Tells the provider that this consumer lives (spec §2.7). Best effort: what fails is logged and never holds up the
 * Connection. The namespace is not created. Rests on no belief in the Connection: a Lease is never unwound, and one that a
 * late run renews once more only runs out later.
 */
export async function renewHeartbeat(world: World, connection: Connection, probe: Probe): Promise<void> {
  try {
    world.trace.step(nodes.heartbeat, await renew(world, connection, probe));
  } catch (error) {
    if (!(error instanceof KbindError) || error.errorClass === 'aborted') throw error;
    world.trace.step(nodes.heartbeat, error.errorClass);
    world.log.warn('heartbeat Lease not renewed', { connection: connection.metadata.name, error: error.message });
  }
}

async function renew(world: World, connection: Connection, { side, contextNamespace }: Probe): Promise<LeaseStep> {
  const localUid = world.consumer.uid;
  const key = { namespace: contextNamespace ?? DEFAULT_NAMESPACE, name: leaseName(connection.metadata.name, localUid) };
  if (key.name.length > MAX_NAME) return 'name too long';
  const lease = await side.client.find(resources.leases, key, { signal: world.signal });
  const nowMs = world.clock.now();
  const step = whichLeaseStep(lease, localUid, nowMs);
  if (step !== 'create' && step !== 'renew') return step;
  // Where a Lease of ours stands is ours to renew; that there is none may be another cluster's word.
  await side.confirmIdentity(lease === undefined ? 0 : IDENTITY_MAX_AGE_MS);
  const options = { signal: world.signal };
  const spec = { holderIdentity: localUid, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTime(nowMs) };
  if (lease === undefined) {
    const annotations = { [CONSUMER_CLUSTER_UID]: localUid, [CONNECTION_ANNOTATION]: connection.metadata.name };
    await side.client.create(
      resources.leases,
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { ...key, labels: { [MANAGED_LABEL]: TRUE }, annotations },
        spec: { ...spec, acquireTime: microTime(nowMs) },
      },
      options,
    );
  } else {
    await side.client.update(resources.leases, { ...lease, spec: { ...(lease.spec as object), ...spec } }, options);
  }
  return step;
}
