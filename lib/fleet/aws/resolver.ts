import type { AwsCredentials } from '../../kube/eks-token.ts';
import { createEksTokens } from '../../kube/eks-token.ts';
import type { ConnectionTarget } from '../../kube/target.ts';
import type { Clock } from '../../model/clock.ts';
import { KbindError } from '../../model/errors.ts';
import { parseIngestKeys } from '../ingest-keys.ts';
import type { EksReach, Reach, ReachResolver } from '../reach.ts';
import type { AwsCalls } from './clients.ts';
import { Remembered } from './remembered.ts';

/** A secret is read again after that long, ms: what replaced it is used within a minute, and at once after a 401. */
const SECRET_MAX_AGE_MS = 60_000;
/** Endpoint and authority of a cluster hardly ever change. */
const CLUSTER_MAX_AGE_MS = 600_000;
/** What was read a moment ago is not read again for the next refusal, ms. */
const FORGET_AFTER_MS = 5_000;
/** Sessions last an hour; they are renewed when less than that is left, ms. */
const SESSION_MAX_AGE_MS = 45 * 60_000;

export interface ReachResolverOptions {
  /** Made when the first cluster needs it: a function that meets none does not load those clients. */
  readonly calls: () => Promise<AwsCalls>;
  readonly clock: Clock;
  readonly allowLoopback: boolean;
}

/**
 * Connections by what the registry says. Two ways that never mix: a Secret's kubeconfig gives server and credential, and no
 * IAM token ever goes there; an EKS cluster's server comes from DescribeCluster and only it gets tokens.
 */
export function createReachResolver({ calls, clock, allowLoopback }: ReachResolverOptions): ReachResolver {
  const secrets = new Remembered<string>(clock, { maxAgeMs: SECRET_MAX_AGE_MS, minAgeMs: FORGET_AFTER_MS });
  const sessions = new Remembered<AwsCredentials>(clock, { maxAgeMs: SESSION_MAX_AGE_MS, minAgeMs: FORGET_AFTER_MS });
  const clusters = new Remembered<ConnectionTarget>(clock, {
    maxAgeMs: CLUSTER_MAX_AGE_MS,
    minAgeMs: FORGET_AFTER_MS,
  });
  const secret = (arn: string): Promise<string> => secrets.get(arn, async () => (await calls()).secret(arn));
  const sessionKey = ({ roleArn, externalId }: EksReach): string => JSON.stringify([roleArn, externalId ?? '']);
  const session = (reach: EksReach): Promise<AwsCredentials> =>
    sessions.get(sessionKey(reach), async () => (await calls()).assume(reach));

  async function eksTarget(reach: EksReach): Promise<ConnectionTarget> {
    const { endpoint, ca } = await (await calls()).describe(reach, await session(reach));
    const { cluster, region } = reach;
    const tokens = createEksTokens({ cluster, region, credentials: () => session(reach), clock });
    return { server: endpoint, ca, authorization: async () => `Bearer ${await tokens.token()}` };
  }

  return {
    async resolve(reach) {
      if (reach.type === 'secret') return secretTarget(await secret(reach.arn), reach.arn, allowLoopback);
      return clusters.get(JSON.stringify(reach), () => eksTarget(reach));
    },
    ingestKeys: async (arn) => parseIngestKeys(await secret(arn)),
    forget(reach: Reach) {
      if (reach.type === 'secret') return secrets.forget(reach.arn);
      // The target holds the token: a new one has a new token.
      clusters.forget(JSON.stringify(reach));
      sessions.forget(sessionKey(reach));
    },
  };
}

/** Who only looks at ingest keys loads no YAML. */
async function secretTarget(kubeconfig: string, arn: string, allowLoopback: boolean): Promise<ConnectionTarget> {
  const { parseForeignKubeconfig } = await import('../../kube/kubeconfig.ts');
  try {
    return parseForeignKubeconfig(kubeconfig, { allowLoopback });
  } catch (error) {
    throw new KbindError('credential', `secret ${arn}: ${(error as Error).message}`, {}, error);
  }
}
