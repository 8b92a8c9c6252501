import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAwsCalls } from '../../../lib/fleet/aws/clients.ts';
import { createReachResolver } from '../../../lib/fleet/aws/resolver.ts';
import type { EksReach, ReachResolver } from '../../../lib/fleet/reach.ts';
import { Authority } from '../../../lib/embedded/pki/authority.ts';
import { createKubeClient } from '../../../lib/kube/client.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';
import { verifyEksToken } from '../../support/aws/authenticator.ts';
import { OWN, startAwsStub, type AwsStub } from '../../support/aws/stub.ts';
import { json, ScriptedServer } from '../../support/kube/scripted-server.ts';

/** How clusters are reached: the real SDK clients against stubs that compute every signature again. */

const REGION = 'eu-west-1';
const ROLE = 'arn:aws:iam::222222222222:role/kbind-access-shop';
const SECRET = 'arn:aws:secretsmanager:eu-west-1:111111111111:secret:kbind/test/kubeconfig/blog-a1b2c3';
const reach: EksReach = { type: 'eks', cluster: 'shop', region: REGION, roleArn: ROLE, externalId: 'cell-7' };
const object = { metadata: { namespace: 'ns', name: 'a', uid: 'u', resourceVersion: '1' } };

let ms: number;
const clock = { now: () => ms, monotonic: () => ms };
let aws: AwsStub;
let authority: Authority;
let server: ScriptedServer;
/** Authorization headers that the API server saw. */
const shown: (string | undefined)[] = [];
let resolver: ReachResolver;

beforeAll(async () => {
  authority = await Authority.create('eks');
  const { certificate: cert, key } = await authority.server();
  server = await ScriptedServer.start(
    (seen, response, request) => {
      shown.push(seen.headers.authorization);
      const token = seen.headers.authorization?.replace('Bearer ', '') ?? '';
      const isEks = token.startsWith('k8s-aws-v1.');
      const status = { kind: 'Status', apiVersion: 'v1', code: 401, reason: 'Unauthorized', message: 'Unauthorized' };
      if (isEks && principalOf(token) !== ROLE) return json(401, status)(seen, response, request);
      return json(200, object)(seen, response, request);
    },
    { cert, key },
  );
  vi.stubEnv('AWS_ACCESS_KEY_ID', OWN.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', OWN.secretAccessKey);
  vi.stubEnv('AWS_SESSION_TOKEN', undefined);
  vi.stubEnv('AWS_PROFILE', undefined);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

beforeEach(async () => {
  ms = Date.now();
  shown.length = 0;
  aws = await startAwsStub(clock.now);
  aws.roles.set(ROLE, { arn: ROLE, externalId: 'cell-7' });
  const endpoint = server.origin;
  aws.clusters.set('shop', { name: 'shop', endpoint, ca: authority.certificate, roleArn: ROLE });
  const endpoints = { sts: aws.endpoint, eks: aws.endpoint, secretsManager: aws.endpoint };
  const calls = createAwsCalls({ region: 'eu-central-1', endpoints, sessionName: 'kbind-test' });
  resolver = createReachResolver({ calls: () => Promise.resolve(calls), clock, allowLoopback: true });
});
afterEach(() => aws.stop());

const principalOf = (token: string): string | undefined => {
  try {
    return verifyEksToken(token, { cluster: 'shop', region: REGION, now: clock.now, credentials: aws.credentials });
  } catch {
    return undefined;
  }
};

async function readWith(target: ConnectionTarget): Promise<KubeObject> {
  const client = createKubeClient(target, { clock, egress: { allowLoopback: true } });
  try {
    return await client.get(resources.configmaps, { namespace: 'ns', name: 'a' });
  } finally {
    await client.close();
  }
}

const kubeconfig = (user: object, endpoint = server.origin): string =>
  JSON.stringify({
    'current-context': 'c',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: endpoint,
          'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  });

describe('an EKS cluster of another account', () => {
  it('is reached with its role and external id, where DescribeCluster says, with a token that it takes', async () => {
    const target = await resolver.resolve(reach);
    expect(target).toMatchObject({ server: server.origin, ca: authority.certificate });
    expect(await readWith(target)).toMatchObject(object);
    expect(aws.calls).toEqual([`AssumeRole ${ROLE}`, 'DescribeCluster shop']);
    expect(principalOf(shown[0]?.replace('Bearer ', '') ?? '')).toBe(ROLE);
  });

  it('costs AWS nothing more while it is in use, and its tokens never expire in use', async () => {
    for (let minute = 0; minute < 9; minute += 1) {
      await readWith(await resolver.resolve(reach));
      ms += 60_000;
    }
    expect(aws.calls).toHaveLength(2);
    expect(new Set(shown).size).toBe(1);
    for (let minute = 0; minute < 60; minute += 5) {
      await readWith(await resolver.resolve(reach));
      ms += 300_000;
    }
    expect(aws.calls.filter((call) => call.startsWith('AssumeRole')).length).toBeLessThanOrEqual(3);
  });

  it('gets a new token, role session and endpoint after a refusal, but not for each of a burst', async () => {
    await readWith(await resolver.resolve(reach));
    resolver.forget(reach);
    await resolver.resolve(reach);
    expect(aws.calls).toHaveLength(2);
    ms += 6_000;
    resolver.forget(reach);
    resolver.forget(reach);
    await readWith(await resolver.resolve(reach));
    expect(aws.calls).toHaveLength(4);
    expect(new Set(shown).size).toBe(2);
  });

  it.each<[string, Partial<EksReach>, RegExp]>([
    ['another external id', { externalId: 'wrong' }, /^role .*: AccessDenied$/],
    ['no external id', { externalId: undefined }, /^role .*: AccessDenied$/],
    ['a role that nobody trusts', { roleArn: 'arn:aws:iam::3:role/kbind-access-x' }, /: AccessDenied$/],
    ['a cluster that is not there', { cluster: 'nothing' }, /^EKS cluster nothing: ResourceNotFoundException$/],
  ])('is not reached with %s, and says so', async (_title, change, words) => {
    await expect(resolver.resolve({ ...reach, ...change })).rejects.toMatchObject({
      errorClass: 'misconfigured',
      message: expect.stringMatching(words),
    });
  });

  it('that has no endpoint yet is looked at again', async () => {
    aws.clusters.set('shop', { name: 'shop', endpoint: '', ca: '', roleArn: ROLE });
    await expect(resolver.resolve(reach)).rejects.toMatchObject({ errorClass: 'unavailable' });
    aws.clusters.set('shop', { name: 'shop', endpoint: server.origin, ca: authority.certificate, roleArn: ROLE });
    await expect(resolver.resolve(reach)).resolves.toMatchObject({ server: server.origin });
  });
});

describe('a kubeconfig in Secrets Manager', () => {
  it('gives server and credential; no IAM token is made for it or sent to it, whatever server it names', async () => {
    // The very server to which tokens of the EKS cluster go.
    await readWith(await resolver.resolve(reach));
    shown.length = 0;
    const before = aws.calls.length;
    aws.secrets.set(SECRET, kubeconfig({ token: 'its-own' }));
    const target = await resolver.resolve({ type: 'secret', arn: SECRET });
    expect(target.authorization).toBeUndefined();
    await readWith(target);
    aws.secrets.set(SECRET, kubeconfig({}));
    ms += 61_000;
    await readWith(await resolver.resolve({ type: 'secret', arn: SECRET }));
    expect(shown).toEqual(['Bearer its-own', undefined]);
    expect(aws.calls.slice(before)).toEqual([`GetSecretValue ${SECRET}`, `GetSecretValue ${SECRET}`]);
  });

  it('that would run `aws eks get-token` is refused by the field', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws', args: ['eks', 'get-token'] };
    aws.secrets.set(SECRET, kubeconfig({ exec }));
    await expect(resolver.resolve({ type: 'secret', arn: SECRET })).rejects.toMatchObject({
      errorClass: 'credential',
      message: expect.stringContaining('users[0].user.exec is not allowed'),
    });
  });

  it('is read again after a minute, and sooner when the cluster refuses it', async () => {
    aws.secrets.set(SECRET, kubeconfig({ token: 'old' }));
    const byArn = { type: 'secret', arn: SECRET } as const;
    expect(await resolver.resolve(byArn)).toMatchObject({ token: 'old' });
    aws.secrets.set(SECRET, kubeconfig({ token: 'new' }));
    expect(await resolver.resolve(byArn)).toMatchObject({ token: 'old' });
    ms += 6_000;
    resolver.forget(byArn);
    expect(await resolver.resolve(byArn)).toMatchObject({ token: 'new' });
  });

  it('and an ingest key come from the same place; a missing one is named', async () => {
    aws.secrets.set(SECRET, 'k'.repeat(40));
    expect(await resolver.ingestKeys(SECRET)).toEqual([Buffer.from('k'.repeat(40))]);
    await expect(resolver.ingestKeys(`${SECRET}x`)).rejects.toMatchObject({
      errorClass: 'misconfigured',
      message: `secret ${SECRET}x: ResourceNotFoundException`,
    });
  });
});
