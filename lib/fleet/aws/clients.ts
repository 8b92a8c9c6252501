import { DescribeClusterCommand, EKSClient } from '@aws-sdk/client-eks';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { KbindError } from '../../model/errors.ts';
import type { AwsCredentials } from '../../kube/eks-token.ts';
import type { EksReach } from '../reach.ts';
import { awsError } from './errors.ts';

/** The three requests that finding a cluster takes, over the SDK. */
export interface AwsCalls {
  /** The text of a secret. */
  secret(arn: string): Promise<string>;
  /** Credentials of the role that a cluster is reached with. */
  assume(reach: EksReach): Promise<AwsCredentials>;
  /** Where the cluster is, and the PEM of its authority. */
  describe(reach: EksReach, credentials: AwsCredentials): Promise<{ readonly endpoint: string; readonly ca: string }>;
}

export interface AwsCallsOptions {
  readonly region: string | undefined;
  /** Emulators; AWS's own where absent. */
  readonly endpoints: Readonly<Partial<Record<'secretsManager' | 'sts' | 'eks', string>>>;
  /** Shows in the other account's trail. */
  readonly sessionName: string;
}

/** The longest that a role assumed by a role may last, seconds. */
const SESSION_SECONDS = 3600;

const endpointOf = (endpoint: string | undefined): { endpoint?: string } =>
  endpoint === undefined ? {} : { endpoint };

/** Region of an ARN: a secret may lie in another one than the cell. */
const regionOf = (arn: string): string => arn.split(':')[3] ?? '';

/** Clients are made for one request: there is one a minute and cluster at most. */
export function createAwsCalls({ region, endpoints, sessionName }: AwsCallsOptions): AwsCalls {
  return {
    secret: (arn) => readSecret(arn, endpointOf(endpoints.secretsManager)),
    async assume(reach) {
      const client = new STSClient({ region: region ?? reach.region, ...endpointOf(endpoints.sts) });
      return assumeRole(client, reach, sessionName).finally(() => client.destroy());
    },
    async describe(reach, credentials) {
      const { accessKeyId, secretAccessKey, sessionToken } = credentials;
      const client = new EKSClient({
        region: reach.region,
        credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
        ...endpointOf(endpoints.eks),
      });
      return describeCluster(client, reach).finally(() => client.destroy());
    },
  };
}

async function readSecret(arn: string, endpoint: { endpoint?: string }): Promise<string> {
  const client = new SecretsManagerClient({ region: regionOf(arn), ...endpoint });
  try {
    const { SecretString, SecretBinary } = await client.send(new GetSecretValueCommand({ SecretId: arn }));
    return SecretString ?? Buffer.from(SecretBinary ?? '').toString('utf8');
  } catch (error) {
    throw awsError(error, `secret ${arn}`);
  } finally {
    client.destroy();
  }
}

async function assumeRole(client: STSClient, reach: EksReach, sessionName: string): Promise<AwsCredentials> {
  const { roleArn, externalId } = reach;
  const command = new AssumeRoleCommand({
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    DurationSeconds: SESSION_SECONDS,
    ...(externalId === undefined ? {} : { ExternalId: externalId }),
  });
  const { Credentials } = await client.send(command).catch((error: unknown) => {
    throw awsError(error, `role ${roleArn}`);
  });
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {};
  if (AccessKeyId === undefined || SecretAccessKey === undefined || SessionToken === undefined) {
    throw new KbindError('unavailable', `role ${roleArn}: STS answered without credentials`);
  }
  const expiration = Expiration ?? new Date(0);
  return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken, expiration };
}

async function describeCluster(
  client: EKSClient,
  { cluster }: EksReach,
): Promise<{ readonly endpoint: string; readonly ca: string }> {
  const { cluster: found } = await client
    .send(new DescribeClusterCommand({ name: cluster }))
    .catch((error: unknown) => {
      throw awsError(error, `EKS cluster ${cluster}`);
    });
  const ca = Buffer.from(found?.certificateAuthority?.data ?? '', 'base64').toString('utf8');
  const endpoint = found?.endpoint ?? '';
  if (!endpoint.startsWith('https://') || !ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new KbindError('unavailable', `EKS cluster ${cluster} has no endpoint yet (${found?.status ?? 'no status'})`);
  }
  return { endpoint, ca };
}
