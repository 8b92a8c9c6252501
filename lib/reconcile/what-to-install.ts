import type { KubeObject } from '../model/api.ts';
import { crdCondition, isDeleting } from '../model/crd.ts';
import type { BindingSpec, ConnectionSpec } from '../model/kinds.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, SCHEMA_HASH_ANNOTATION, TRUE } from '../model/markers.ts';

/** The decision table of spec §3 for CRDs of the CRD source: pure, one row per sentence. */

export type SchemaPolicy = Pick<ConnectionSpec['schema'], 'pullPolicy' | 'updatePolicy'>;
export type ConflictPolicy = BindingSpec['conflictPolicy'];

/** What stands under the CRD's name in the consumer. */
export type Installed =
  | { readonly is: 'absent' }
  /** Somebody asked for its deletion: counts as missing, and is waited for. */
  | { readonly is: 'deleting' }
  /** Its connection annotation names another Connection: the first owner keeps it. */
  | { readonly is: 'pinned elsewhere'; readonly connection: string }
  /** Managed label and this Connection's annotation. `hash`: of the spec that was sent when it was installed. */
  | { readonly is: 'ours'; readonly hash: string | undefined }
  /** One marker or both are missing, and nobody else's is there: installed by somebody, perhaps for us. */
  | { readonly is: 'unmarked' };

/** What to do about it. */
export type InstallStep =
  | 'create'
  | 'wait until somebody installs it'
  | 'wait until it is gone'
  | 'leave it to its owner'
  | 'keep'
  | 'replace'
  | 'stamp'
  /** Whether its spec equals ours decides: {@link whatToDoWithForeign}. */
  | 'compare';

/** Reads the markers of a consumer CRD. */
export function whatIsInstalled(crd: KubeObject | undefined, connection: string): Installed {
  if (crd === undefined) return { is: 'absent' };
  if (isDeleting(crd)) return { is: 'deleting' };
  const { labels, annotations } = crd.metadata;
  const pinned = annotations?.[CONNECTION_ANNOTATION];
  if (pinned !== undefined && pinned !== connection) return { is: 'pinned elsewhere', connection: pinned };
  if (pinned === undefined || labels?.[MANAGED_LABEL] !== TRUE) return { is: 'unmarked' };
  return { is: 'ours', hash: annotations?.[SCHEMA_HASH_ANNOTATION] };
}

/** What spec §3 says, given what stands there and the hash of what the provider offers. */
export function whatToInstall(
  installed: Installed,
  policy: SchemaPolicy,
  offeredHash: string | undefined,
): InstallStep {
  const none = policy.pullPolicy === 'None';
  switch (installed.is) {
    case 'absent':
      return none ? 'wait until somebody installs it' : 'create';
    case 'deleting':
      return 'wait until it is gone';
    case 'pinned elsewhere':
      return 'leave it to its owner';
    case 'unmarked':
      return none ? 'stamp' : 'compare';
    case 'ours':
    default:
      return none || policy.updatePolicy === 'Once' || installed.hash === offeredHash ? 'keep' : 'replace';
  }
}

/** An unmarked CRD whose spec equals ours is stamped; another one is somebody else's API unless it may be adopted. */
export function whatToDoWithForeign(equal: boolean, conflictPolicy: ConflictPolicy): 'stamp' | 'replace' | 'conflict' {
  if (equal) return 'stamp';
  return conflictPolicy === 'Adopt' ? 'replace' : 'conflict';
}

/** Whether the API server has taken an installed CRD into service. */
export type Service =
  | { readonly is: 'established' }
  | { readonly is: 'not yet' }
  /** `NamesAccepted=False`: another CRD holds one of its names. `message` is the CRD's own. */
  | { readonly is: 'names refused'; readonly message: string };

/** Reads the CRD's own conditions. Names that clash count first: an update may clash on an established CRD. */
export function isInService(crd: KubeObject): Service {
  const names = crdCondition(crd, 'NamesAccepted');
  if (names?.status === 'False') return { is: 'names refused', message: names.message };
  return crdCondition(crd, 'Established')?.status === 'True' ? { is: 'established' } : { is: 'not yet' };
}
