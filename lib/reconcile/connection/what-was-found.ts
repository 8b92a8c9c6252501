import type { ConditionReason, ConditionStatus, WantedCondition } from '../../model/conditions.ts';
import type { KbindError } from '../../model/errors.ts';

/** What a look at a Connection's provider came to, and which conditions say so (spec §2). Pure. */
export type Finding =
  /** Secret or key missing, empty, malformed, refused as unsafe, or the immutable reference changed. */
  | { readonly is: 'unusable kubeconfig'; readonly message: string }
  /** A 403. `identified`: after both clusters had told who they are. */
  | { readonly is: 'forbidden'; readonly message: string; readonly identified: boolean }
  /** It does not answer as an API server that lets us in. */
  | { readonly is: 'unreachable'; readonly message: string }
  /** Another cluster than the pinned one, on either side. */
  | { readonly is: 'another cluster'; readonly message: string }
  /** Both identities are known and about to be pinned. */
  | { readonly is: 'identified' }
  | { readonly is: 'ready'; readonly message: string; readonly schemas: WantedCondition };

/** Any condition, as a finding wants it. */
export const condition = (
  type: string,
  status: ConditionStatus,
  reason: ConditionReason,
  message: string,
): WantedCondition => ({ type, status, reason, message });

const NOT_ASKED = 'not known while the kubeconfig cannot be used';
const USABLE = 'the Secret holds a self-contained kubeconfig';

/** The conditions of a finding. What a finding says nothing about stays as it was. */
export function conditionsFor(finding: Finding): WantedCondition[] {
  const secretValid = condition('SecretValid', 'True', 'AsExpected', USABLE);
  const connected = condition('Connected', 'True', 'AsExpected', 'both clusters are the ones that were pinned');
  switch (finding.is) {
    case 'unusable kubeconfig':
      return [
        condition('SecretValid', 'False', 'SecretNotFound', finding.message),
        condition('Connected', 'Unknown', 'Pending', NOT_ASKED),
        condition('PermissionDenied', 'Unknown', 'Pending', NOT_ASKED),
        condition('Ready', 'False', 'SecretNotFound', finding.message),
      ];
    case 'forbidden':
      return [
        secretValid,
        finding.identified ? connected : condition('Connected', 'Unknown', 'Pending', finding.message),
        condition('PermissionDenied', 'True', 'Forbidden', finding.message),
        condition('Ready', 'False', 'Forbidden', finding.message),
      ];
    case 'unreachable':
      return [
        secretValid,
        condition('Connected', 'False', 'Pending', finding.message),
        condition('Ready', 'False', 'Pending', finding.message),
      ];
    case 'another cluster':
      return [
        secretValid,
        condition('Connected', 'False', 'ClusterIdentityChanged', finding.message),
        condition('Ready', 'False', 'ClusterIdentityChanged', finding.message),
      ];
    case 'identified':
      return [secretValid, connected, condition('Ready', 'False', 'Pending', 'looking at what the provider offers')];
    case 'ready':
    default:
      return [
        secretValid,
        connected,
        finding.schemas,
        condition('PermissionDenied', 'False', 'AsExpected', 'nothing was refused'),
        condition('Ready', 'True', 'AsExpected', finding.message),
      ];
  }
}

/**
 * What an error on the way to the provider's identity means; undefined: nothing about the Connection, so it is thrown and
 * retried. A provider that only asks for patience (429) is not away: losing readiness would cost it a sweep of everything.
 */
export function whatFailed(error: KbindError, secret: string): Finding | undefined {
  switch (error.errorClass) {
    case 'credential':
      return { is: 'unusable kubeconfig', message: error.message };
    case 'forbidden':
      return { is: 'forbidden', message: forbiddenMessage(error), identified: false };
    case 'unauthorized':
      return {
        is: 'unreachable',
        message: `the provider refuses the credentials in ${secret} (401): put valid ones there. ${error.message}`,
      };
    case 'unavailable':
    case 'unserved':
    case 'absent':
      return { is: 'unreachable', message: `the provider does not answer as an API server should: ${error.message}` };
    case 'identity':
      return { is: 'another cluster', message: error.message };
    // Everything else is nobody's condition.
    case 'conflict':
    case 'namespace-missing':
    case 'namespace-terminating':
    case 'invalid':
    case 'expired':
    case 'throttled':
    case 'stale':
    case 'aborted':
    case 'misconfigured':
    case 'malformed':
    case 'internal':
    default:
      return undefined;
  }
}

/** Which verb on what was refused, where, and what to do; the server's own words name the user and the namespace. */
export function forbiddenMessage(error: KbindError, advice = ''): string {
  const { verb, api, key, side = 'provider' } = error.details;
  const where = key?.namespace === undefined ? '' : ` in namespace ${key.namespace}`;
  const grant = `grant ${verb ?? 'access'}${api === undefined ? '' : ` on ${api}`}${where}`;
  const whom = side === 'provider' ? "to the kubeconfig's user on the provider" : 'to kbind in this cluster';
  return `${grant} ${whom}${advice}: ${error.message}`;
}

/** Which of two identities changed; undefined where both are the pinned ones, or nothing is pinned yet. */
export function whoChanged(
  pinned: { readonly remoteClusterUID?: string; readonly localClusterUID?: string },
  found: { readonly remote: string; readonly local: string },
): Finding | undefined {
  const { remoteClusterUID: remote, localClusterUID: local } = pinned;
  const wayOut = 'nothing is moved or deleted; for another cluster, make another Connection';
  if (remote !== undefined && remote !== found.remote) {
    return {
      is: 'another cluster',
      message: `the kubeconfig leads to cluster ${found.remote} now, but this Connection belongs to provider ${remote}: ${wayOut}`,
    };
  }
  if (local !== undefined && local !== found.local) {
    return {
      is: 'another cluster',
      message: `this cluster is ${found.local}, but this Connection was set up in ${local} (restored from there?): ${wayOut}`,
    };
  }
  return undefined;
}
