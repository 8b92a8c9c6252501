import { describe, expect, it } from 'vitest';
import { createEksTokens, presignEksToken, type AwsCredentials } from '../../../lib/kube/eks-token.ts';
import { verifyEksToken, type Authenticator, type KnownCredentials } from '../../support/aws/authenticator.ts';

const MINUTE = 60_000;
const START = Date.UTC(2027, 0, 2, 3, 4, 5);
const session: AwsCredentials = {
  accessKeyId: 'ASIA1',
  secretAccessKey: 's/+e=cret',
  sessionToken: `IQoJb3JpZ2luX2VjE/+=${'x'.repeat(1200)}`,
};
const principal = 'arn:aws:iam::2:role/kbind-access';

function authenticator(now: () => number, change: Partial<Authenticator> = {}): Authenticator {
  const { secretAccessKey, sessionToken } = session;
  const known: KnownCredentials = { secretAccessKey, sessionToken, principal };
  return { cluster: 'shop', region: 'eu-west-1', now, credentials: new Map([['ASIA1', known]]), ...change };
}

const place = { cluster: 'shop', region: 'eu-west-1' };
const edited = (token: string, edit: (url: string) => string): string =>
  `k8s-aws-v1.${Buffer.from(edit(Buffer.from(token.slice(11), 'base64url').toString('utf8'))).toString('base64url')}`;

describe('an EKS token', () => {
  it('is taken by the cluster that it names, and proves who signed it', async () => {
    const token = await presignEksToken(place, session, START);
    expect(
      verifyEksToken(
        token,
        authenticator(() => START),
      ),
    ).toBe(principal);
    expect(token).not.toContain('=');
  });

  it('of credentials without a session is taken as well', async () => {
    const { sessionToken: _, ...own } = session;
    const token = await presignEksToken(place, own, START);
    const credentials = new Map([['ASIA1', { secretAccessKey: own.secretAccessKey, principal }]]);
    expect(
      verifyEksToken(
        token,
        authenticator(() => START, { credentials }),
      ),
    ).toBe(principal);
  });

  it('names STS of China under its own domain', async () => {
    const token = await presignEksToken({ cluster: 'shop', region: 'cn-north-1' }, session, START);
    expect(Buffer.from(token.slice(11), 'base64url').toString('utf8')).toMatch(
      /^https:\/\/sts\.cn-north-1\.amazonaws\.com\.cn\/\?/,
    );
  });

  it.each<[string, Partial<Authenticator>, RegExp]>([
    ['another cluster', { cluster: 'blog' }, /SignatureDoesNotMatch/],
    ['another region', { region: 'eu-central-1' }, /unexpected hostname/],
    ['a later hour', { now: () => START + 16 * MINUTE }, /expired/],
  ])('is refused by %s', async (_title, change, words) => {
    const token = await presignEksToken(place, session, START);
    expect(() =>
      verifyEksToken(
        token,
        authenticator(() => START, change),
      ),
    ).toThrow(words);
  });

  it.each<[string, (url: string) => string, RegExp]>([
    ['another action', (url) => url.replace('GetCallerIdentity', 'AssumeRole'), /unexpected action/],
    ['a parameter more', (url) => `${url}&X-Amz-Meta=1`, /non-whitelisted/],
    ['a longer life', (url) => url.replace('X-Amz-Expires=60', 'X-Amz-Expires=901'), /X-Amz-Expires/],
    ['a life of its own', (url) => url.replace('X-Amz-Expires=60', 'X-Amz-Expires=61'), /SignatureDoesNotMatch/],
  ])('with %s would be refused: the verifier is as strict as the authenticator', async (_title, edit, words) => {
    const token = edited(await presignEksToken(place, session, START), edit);
    expect(() =>
      verifyEksToken(
        token,
        authenticator(() => START),
      ),
    ).toThrow(words);
  });
});

describe('tokens of one cluster', () => {
  function stage(expiresAfterMs?: number) {
    let ms = START;
    let asked = 0;
    const clock = { now: () => ms, monotonic: () => ms };
    const tokens = createEksTokens({
      ...place,
      clock,
      credentials: () => {
        asked += 1;
        const expiration = expiresAfterMs === undefined ? {} : { expiration: new Date(ms + expiresAfterMs) };
        return Promise.resolve({ ...session, ...expiration });
      },
    });
    return { tokens, clock, pass: (by: number) => void (ms += by), asked: () => asked };
  }

  it('are one for all who ask within 13 minutes, and each is taken when it is used', async () => {
    const { tokens, clock, pass, asked } = stage();
    const [first, second] = await Promise.all([tokens.token(), tokens.token()]);
    expect(second).toBe(first);
    for (let minute = 0; minute < 60; minute += 1) {
      expect(verifyEksToken(await tokens.token(), authenticator(clock.now))).toBe(principal);
      pass(MINUTE);
    }
    expect(asked()).toBe(5);
    pass(13 * MINUTE);
    const before = asked();
    await Promise.all([tokens.token(), tokens.token(), tokens.token()]);
    expect(asked()).toBe(before + 1);
  });

  it('do not outlive the credentials that sign them', async () => {
    const { tokens, pass, asked } = stage(5 * MINUTE);
    await tokens.token();
    pass(3 * MINUTE);
    await tokens.token();
    expect(asked()).toBe(1);
    pass(MINUTE);
    await tokens.token();
    expect(asked()).toBe(2);
  });

  it('are tried for again after a failure', async () => {
    let fail = true;
    const clock = { now: () => START, monotonic: () => START };
    const credentials = () => (fail ? Promise.reject(new Error('STS is away')) : Promise.resolve(session));
    const tokens = createEksTokens({ ...place, clock, credentials });
    await expect(tokens.token()).rejects.toThrow('STS is away');
    fail = false;
    expect(
      verifyEksToken(
        await tokens.token(),
        authenticator(() => START),
      ),
    ).toBe(principal);
  });
});
