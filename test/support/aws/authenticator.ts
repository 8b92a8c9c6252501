import { EMPTY_HASH, signatureOf } from './sigv4.ts';

/**
 * Checks EKS tokens as aws-iam-authenticator does (pkg/token/token.go), and then as STS does, which it sends them to: every
 * rule that it has is here, and nothing is forgiven.
 */

const PREFIX = 'k8s-aws-v1.';
const MAX_TOKEN_BYTES = 1024 * 4;
const MAX_EXPIRES_SECONDS = 15 * 60;
const TOKEN_LIFETIME_MS = 15 * 60_000;
const CLUSTER_HEADER = 'x-k8s-aws-id';

/** Its parameterWhitelist, in lower case as there. */
const ALLOWED_PARAMETERS = new Set([
  'action',
  'version',
  'x-amz-algorithm',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-expires',
  'x-amz-security-token',
  'x-amz-signature',
  'x-amz-signedheaders',
]);

export interface KnownCredentials {
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly principal: string;
}

export interface Authenticator {
  /** Name of the cluster that this one guards. */
  readonly cluster: string;
  readonly region: string;
  readonly now: () => number;
  /** By access key id. */
  readonly credentials: ReadonlyMap<string, KnownCredentials>;
}

export class TokenRefused extends Error {}

function need(condition: boolean, words: string): asserts condition {
  if (!condition) throw new TokenRefused(words);
}

function parseDate(date: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  need(match !== null, 'X-Amz-Date is not a date');
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** The URL in a token. */
function urlOf(token: string): URL {
  need(token.startsWith(PREFIX), 'token has no v1 prefix');
  need(token.length <= MAX_TOKEN_BYTES, 'token is too large');
  const encoded = token.slice(PREFIX.length);
  need(/^[A-Za-z0-9_-]+$/.test(encoded), 'token is no base64url without padding');
  return new URL(Buffer.from(encoded, 'base64url').toString('utf8'));
}

function parametersOf(url: URL): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    const lower = name.toLowerCase();
    need(ALLOWED_PARAMETERS.has(lower), `non-whitelisted query parameter ${name}`);
    need(!parameters.has(lower), `query parameter ${name} with multiple values`);
    parameters.set(lower, value);
  }
  return parameters;
}

/** The principal that a token proves. Throws {@link TokenRefused} with the rule that it breaks. */
export function verifyEksToken(token: string, { cluster, region, now, credentials }: Authenticator): string {
  const url = urlOf(token);
  need(url.protocol === 'https:', 'unexpected scheme');
  need(url.host === `sts.${region}.amazonaws.com`, 'unexpected hostname in pre-signed URL');
  need(url.pathname === '/', 'unexpected path in pre-signed URL');
  need(url.hash === '' && url.username === '', 'unexpected parts of the URL');
  const parameters = parametersOf(url);
  const parameter = (name: string): string => {
    const value = parameters.get(name);
    need(value !== undefined && value !== '', `${name} is missing`);
    return value;
  };
  need(parameter('action') === 'GetCallerIdentity', 'unexpected action parameter in pre-signed URL');
  need(parameter('version') === '2011-06-15', 'unexpected version');
  need(parameter('x-amz-algorithm') === 'AWS4-HMAC-SHA256', 'unexpected algorithm');
  const signedHeaders = parameter('x-amz-signedheaders').split(';');
  need(signedHeaders.includes(CLUSTER_HEADER), 'client did not sign the x-k8s-aws-id header in the pre-signed URL');
  const expires = Number(parameter('x-amz-expires'));
  need(Number.isInteger(expires) && expires >= 0 && expires <= MAX_EXPIRES_SECONDS, 'invalid X-Amz-Expires');
  const signedAt = parseDate(parameter('x-amz-date'));
  need(signedAt + TOKEN_LIFETIME_MS > now(), 'X-Amz-Date parameter is expired');
  need(signedAt <= now() + 60_000, 'X-Amz-Date lies in the future');
  return askSts(url, { parameter, parameters, signedHeaders, cluster, region, credentials });
}

interface Asked extends Pick<Authenticator, 'cluster' | 'region' | 'credentials'> {
  readonly parameter: (name: string) => string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly signedHeaders: readonly string[];
}

/** The authenticator sends the request with its own cluster's name in the header: another name breaks the signature. */
function askSts(url: URL, asked: Asked): string {
  const { parameter, parameters, signedHeaders, cluster, region, credentials } = asked;
  const [accessKeyId = '', ...scope] = parameter('x-amz-credential').split('/');
  const date = parameter('x-amz-date');
  need(scope.join('/') === `${date.slice(0, 8)}/${region}/sts/aws4_request`, 'credential scope of something else');
  const known = credentials.get(accessKeyId);
  need(known !== undefined, 'InvalidClientTokenId');
  need(parameters.get('x-amz-security-token') === known.sessionToken, 'the security token is invalid');
  const expected = signatureOf(
    {
      method: 'GET',
      path: '/',
      query: [...url.searchParams].filter(([name]) => name !== 'X-Amz-Signature'),
      headers: { host: url.host, [CLUSTER_HEADER]: cluster },
      signedHeaders,
      payloadHash: EMPTY_HASH,
      date,
      scope: scope.join('/'),
    },
    known.secretAccessKey,
  );
  need(expected === parameter('x-amz-signature'), 'SignatureDoesNotMatch');
  return known.principal;
}
