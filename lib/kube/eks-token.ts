import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';

/**
 * Tokens for EKS API servers, made without any helper binary: a presigned STS GetCallerIdentity request that carries the
 * cluster's name in a signed header. The API server sends it to STS and learns who signed it. So a token is worth as much
 * as a look at our identity, and for one cluster only; it goes to endpoints that DescribeCluster named and nowhere else.
 */

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

export interface EksTokenOptions {
  /** Name of the EKS cluster: the token is refused by any other. */
  readonly cluster: string;
  /** Of the cluster, whose STS endpoint is named. */
  readonly region: string;
  readonly credentials: () => Promise<AwsCredentials>;
  readonly clock: Clock;
}

const CLUSTER_HEADER = 'x-k8s-aws-id';
const PREFIX = 'k8s-aws-v1.';
/** The API server takes a token for 15 minutes from its date; EKS wants a request that is good for a minute. */
const REQUEST_EXPIRES_SECONDS = 60;
/** A token is used for less than 14 minutes. */
const TOKEN_MAX_AGE_MS = 13 * 60_000;
/** What must be left of the credentials that signed it: the API server asks STS when the token is new to it. */
const CREDENTIALS_RESERVE_MS = 60_000;

/** Where STS is in a region: the authenticator knows these names and refuses others. */
export function stsHost(region: string): string {
  return `sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}

/** Node's own SHA-256 in the form that the signer asks for. */
class Sha256 {
  #hash: Hash | Hmac;
  readonly #secret: Uint8Array | string | undefined;

  constructor(secret?: unknown) {
    this.#secret = secret as Uint8Array | string | undefined;
    this.#hash = this.#start();
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.#hash.digest()));
  }

  reset(): void {
    this.#hash = this.#start();
  }

  #start(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
}

/** Makes one token. */
export async function presignEksToken(
  { cluster, region }: Pick<EksTokenOptions, 'cluster' | 'region'>,
  credentials: AwsCredentials,
  now: number,
): Promise<string> {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const signer = new SignatureV4({
    service: 'sts',
    region,
    sha256: Sha256,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
  });
  const hostname = stsHost(region);
  const signed = await signer.presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname,
      path: '/',
      query: { Action: 'GetCallerIdentity', Version: '2011-06-15' },
      headers: { host: hostname, [CLUSTER_HEADER]: cluster },
    },
    { expiresIn: REQUEST_EXPIRES_SECONDS, signingDate: new Date(now) },
  );
  const query = Object.entries(signed.query ?? {}).map(([name, value]) => [name, String(value)] as const);
  const url = `https://${hostname}/?${query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')}`;
  return PREFIX + Buffer.from(url).toString('base64url');
}

/** The tokens of one cluster, one after the other. */
export interface EksTokens {
  /** One that the API server takes now. */
  token(): Promise<string>;
}

interface Made {
  readonly at: Instant;
  /** Wall clock, epoch ms, after which it is not used. */
  readonly until: number;
  readonly token: string;
}

/** Keeps a token for under 14 minutes, and for no longer than the credentials that signed it. */
export function createEksTokens(options: EksTokenOptions): EksTokens {
  const { clock } = options;
  let made: Promise<Made> | undefined;

  async function make(): Promise<Made> {
    const credentials = await options.credentials();
    const at = instant(clock);
    const expires = credentials.expiration?.getTime() ?? Number.POSITIVE_INFINITY;
    const until = Math.min(at.wall + TOKEN_MAX_AGE_MS, expires - CREDENTIALS_RESERVE_MS);
    return { at, until, token: await presignEksToken(options, credentials, at.wall) };
  }

  const isGood = ({ at, until }: Made): boolean => ageMs(clock, at) < TOKEN_MAX_AGE_MS && clock.now() < until;

  /** Those who come while one is made wait for it. */
  function start(): Promise<Made> {
    const making = make();
    made = making;
    making.catch(() => {
      if (made === making) made = undefined;
    });
    return making;
  }

  return {
    async token() {
      const known = made;
      const first = await (known ?? start());
      if (known === undefined || isGood(first)) return first.token;
      // Somebody else may have begun to renew it meanwhile.
      return (await (made === known ? start() : (made ?? start()))).token;
    },
  };
}
