import type { KubeObject } from '../../model/api.ts';
import { crdSpec, usableVersion } from '../../model/crd.ts';
import { KbindError } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { connectionIsReady, providerEpoch } from '../../model/may-act.ts';
import { watchPlanOf, type WatchPlan } from '../../model/watch-plan.ts';

/** Which watches a managed CRD asks for: pure. */

/** Only these CRDs have plans. */
export const isManaged = (crd: KubeObject): boolean => crd.metadata.labels?.[MANAGED_LABEL] === TRUE;

/**
 * The Connection that a CRD is pinned to.
 * @throws KbindError `misconfigured` without the annotation: retried, because people fix it (spec §6).
 */
export function pinnedConnection(crd: KubeObject): string {
  const name = crd.metadata.annotations?.[CONNECTION_ANNOTATION];
  if (name !== undefined && name !== '') return name;
  throw new KbindError(
    'misconfigured',
    `CustomResourceDefinition ${crd.metadata.name} has the label ${MANAGED_LABEL} but no annotation ${CONNECTION_ANNOTATION}: name the Connection, or remove the label`,
    { api: crd.metadata.name, side: 'consumer' },
  );
}

/** Ready, with the UID of this cluster recorded. */
export const connectionIsUsable = (connection: Connection | undefined): connection is Connection =>
  connectionIsReady(connection) && (connection.status.localClusterUID ?? '') !== '';

/**
 * The plan for a CRD against an engaged provider.
 * @throws KbindError `misconfigured` for a CRD that serves no version.
 */
export function planFor(crd: KubeObject, connection: Connection): WatchPlan {
  const version = usableVersion(crd);
  if (version === undefined) {
    throw new KbindError('misconfigured', `CustomResourceDefinition ${crd.metadata.name} serves no version`, {
      api: crd.metadata.name,
      side: 'consumer',
    });
  }
  return {
    v: 1,
    generation: crd.metadata.generation ?? 0,
    version: version.name,
    scope: crdSpec(crd).scope,
    connection: connection.metadata.name,
    cluster: connection.status.localClusterUID ?? '',
    epoch: providerEpoch(connection),
    provider: true,
  };
}

/**
 * What is left of the recorded plan without a provider: the consumer watch, so that instances that are deleted meanwhile are
 * still seen. Where nothing was watched there is nothing to keep (the ten-minute backstop looks at every managed CRD).
 */
export function shrunkPlan(crd: KubeObject): WatchPlan | undefined {
  const plan = watchPlanOf(crd);
  if (plan === undefined) return undefined;
  const version = usableVersion(crd)?.name ?? plan.version;
  return { ...plan, version, generation: crd.metadata.generation ?? plan.generation, epoch: '', provider: false };
}
