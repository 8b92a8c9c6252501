import type { KubeObject } from '../model/api.ts';
import type { Connection } from '../model/kinds.ts';
import { SCHEMA_HASH_ANNOTATION } from '../model/markers.ts';
import type { Belief } from '../kube/types.ts';
import type { ConsumerSchema } from '../schema/from-crd.ts';
import { isInService, type ConflictPolicy, type SchemaPolicy } from './what-to-install.ts';
import type { Side } from './world.ts';

/** One API that a binding requests or a Connection exports. */
export interface InstallRequest {
  /** The provider's side, opened with the Connection's credentials. */
  readonly provider: Side;
  readonly connection: Connection;
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly policy: SchemaPolicy;
  readonly conflictPolicy: ConflictPolicy;
  /** A Binding never acts on cluster-scoped APIs: with this, nothing is installed for one. */
  readonly namespacedOnly?: boolean | undefined;
  /** The reads of Connection and binding that this rests on. */
  readonly belief?: Belief | undefined;
}

export const schemaStates = [
  /** Installed, ours, in service: instances can be synchronized. */
  'installed',
  /** Sent, and not in service yet: look again in a moment. */
  'establishing',
  /** The consumer CRD is being deleted: counts as missing. */
  'terminating',
  /** The consumer has no such CRD of ours and may not install one: somebody has to. */
  'missing',
  /** The provider does not offer it (now). */
  'not-exported',
  /** A CRD of that name and another spec belongs to somebody else. */
  'foreign',
  /** Cluster-scoped, and asked for by a Binding. */
  'out-of-scope',
  /** Another Connection came first. */
  'owned-by-another',
  /** The API server refuses the CRD, or its names. */
  'refused',
  /** 403 on either side. */
  'forbidden',
] as const;
export type SchemaState = (typeof schemaStates)[number];

export interface SchemaResult {
  readonly api: string;
  readonly state: SchemaState;
  /** For a condition: which object, why, what a person can do. Empty for a plain `installed`. */
  readonly message: string;
  /** The consumer CRD as it stands; absent where there is none (of ours). */
  readonly crd?: KubeObject | undefined;
  /** Hash recorded on the CRD that is installed. */
  readonly hash?: string | undefined;
  /** The server's words about an update that it refused: the old CRD stays, `SchemaInSync` is False. */
  readonly refusedUpdate?: string | undefined;
  /** Versions of the provider's CRD that the consumer does not get. */
  readonly droppedVersions?: readonly string[] | undefined;
}

/** The recorded hash on a consumer CRD. */
export const installedHash = (crd: KubeObject): string | undefined =>
  crd.metadata.annotations?.[SCHEMA_HASH_ANNOTATION];

/** A result for the API that was asked about. */
export const answer = (
  { api }: InstallRequest,
  state: SchemaState,
  message: string,
  more: Partial<SchemaResult> = {},
): SchemaResult => ({ api, state, message, ...more });

/** For a Binding, an API that it never acts on; undefined where it may. */
export function outOfScope(
  request: InstallRequest,
  scope: 'Namespaced' | 'Cluster' | undefined,
): SchemaResult | undefined {
  if (request.namespacedOnly !== true || scope !== 'Cluster') return undefined;
  return answer(
    request,
    'out-of-scope',
    `${request.api} is cluster-scoped, on which a Binding never acts: use a ClusterBinding`,
  );
}

/** Another Connection's CRD: the first owner keeps it. */
export const ownedByAnother = (request: InstallRequest, owner: string): SchemaResult =>
  answer(
    request,
    'owned-by-another',
    `CustomResourceDefinition ${request.api} belongs to Connection ${owner}, which came first; bind it through that one`,
  );

/** A CRD on its way out counts as missing. */
export const terminating = (request: InstallRequest): SchemaResult =>
  answer(
    request,
    'terminating',
    `CustomResourceDefinition ${request.api} is being deleted; it is looked at again when it is gone`,
  );

/** Never Ready over a CRD that serves nothing yet, or whose names clash. */
export function inService(request: InstallRequest, crd: KubeObject, offered?: ConsumerSchema): SchemaResult {
  const { api } = request;
  const service = isInService(crd);
  const more = { crd, hash: installedHash(crd), droppedVersions: offered?.droppedVersions };
  if (service.is === 'established') return answer(request, 'installed', '', more);
  if (service.is === 'not yet') {
    return answer(request, 'establishing', `CustomResourceDefinition ${api} is not established yet`, more);
  }
  const message = `the names of CustomResourceDefinition ${api} are not accepted: ${service.message}`;
  return answer(request, 'refused', message, more);
}
