import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KnownCredentials } from './authenticator.ts';
import { hashOf, signatureOf } from './sigv4.ts';

/** STS, EKS and Secrets Manager as far as the product asks them: every signature is computed again, every parameter checked. */

export interface StubRole {
  readonly arn: string;
  readonly externalId?: string;
}

export interface StubCluster {
  readonly name: string;
  readonly endpoint: string;
  /** PEM. */
  readonly ca: string;
  /** Only this role may look. */
  readonly roleArn: string;
}

export interface AwsStub {
  readonly endpoint: string;
  /** Of whoever calls first; roles get theirs. By access key id: what an authenticator knows. */
  readonly credentials: Map<string, KnownCredentials>;
  readonly roles: Map<string, StubRole>;
  readonly clusters: Map<string, StubCluster>;
  readonly secrets: Map<string, string>;
  /** `AssumeRole ARN`, `DescribeCluster NAME`, `GetSecretValue ARN`, in order. */
  readonly calls: string[];
  stop(): Promise<void>;
}

/** What the process itself is: its environment's credentials. */
export const OWN = { accessKeyId: 'AKIAOWN', secretAccessKey: 'own-secret' };
const SESSION_MS = 3_600_000;

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

class Refused extends Error {
  readonly code: string;

  constructor(code: string, words: string) {
    super(words);
    this.code = code;
  }
}

export async function startAwsStub(now: () => number = Date.now): Promise<AwsStub> {
  const state = {
    credentials: new Map<string, KnownCredentials>([[OWN.accessKeyId, { ...OWN, principal: 'own' }]]),
    roles: new Map<string, StubRole>(),
    clusters: new Map<string, StubCluster>(),
    secrets: new Map<string, string>(),
    calls: [] as string[],
    now,
  };
  const server = createServer((request, response) => {
    void (async () => {
      const { status, type, body } = await answer(request, state);
      response.writeHead(status, { 'content-type': type });
      response.end(body);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    ...state,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type State = Omit<AwsStub, 'endpoint' | 'stop'> & { readonly now: () => number };

async function answer(request: IncomingMessage, state: State): Promise<Reply> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const asked: Asked = {
    method: request.method ?? '',
    url: new URL(request.url ?? '/', 'http://aws'),
    headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
    body: Buffer.concat(chunks),
  };
  const target = asked.headers['x-amz-target'] ?? '';
  const service = target.startsWith('secretsmanager.')
    ? 'secretsmanager'
    : asked.url.pathname.startsWith('/clusters/')
      ? 'eks'
      : 'sts';
  try {
    const principal = whoSigned(asked, service, state);
    if (service === 'secretsmanager') return readSecret(asked, state);
    return service === 'eks' ? describeCluster(asked, principal, state) : assumeRole(asked, state);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return refusal(error, service);
  }
}

function refusal({ code, message }: Refused, service: string): Reply {
  if (service !== 'sts') {
    return { status: 400, type: 'application/x-amz-json-1.1', body: JSON.stringify({ __type: code, message }) };
  }
  const body = `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
  return { status: 403, type: 'text/xml', body };
}

/** The principal whose signature a request carries. */
function whoSigned(asked: Asked, service: string, { credentials }: State): string {
  const match = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    asked.headers['authorization'] ?? '',
  );
  if (match === null) throw new Refused('MissingAuthenticationToken', 'not signed');
  const [, accessKeyId = '', scope = '', names = '', signature] = match;
  const known = credentials.get(accessKeyId);
  if (known === undefined) throw new Refused('InvalidClientTokenId', 'no such key');
  if (asked.headers['x-amz-security-token'] !== known.sessionToken) throw new Refused('ExpiredToken', 'not its token');
  const date = asked.headers['x-amz-date'] ?? '';
  if (scope.split('/')[0] !== date.slice(0, 8) || scope.split('/')[2] !== service) {
    throw new Refused('SignatureDoesNotMatch', `scope ${scope}`);
  }
  const signedHeaders = names.split(';');
  const needed = ['host', 'x-amz-date', ...(known.sessionToken === undefined ? [] : ['x-amz-security-token'])];
  if (!needed.every((name) => signedHeaders.includes(name))) throw new Refused('SignatureDoesNotMatch', 'headers');
  const expected = signatureOf(
    {
      method: asked.method,
      path: asked.url.pathname,
      query: [...asked.url.searchParams],
      headers: asked.headers,
      signedHeaders,
      payloadHash: hashOf(asked.body),
      date,
      scope,
    },
    known.secretAccessKey,
  );
  if (expected !== signature) throw new Refused('SignatureDoesNotMatch', 'signature');
  return known.principal;
}

function assumeRole({ body, headers }: Asked, state: State): Reply {
  const form = new URLSearchParams(body.toString('utf8'));
  const action = form.get('Action');
  if (action !== 'AssumeRole') throw new Refused('InvalidAction', `${action} ${headers['content-type']}`);
  const arn = form.get('RoleArn') ?? '';
  state.calls.push(`AssumeRole ${arn}`);
  const role = state.roles.get(arn);
  const allowed = role !== undefined && (role.externalId ?? null) === form.get('ExternalId');
  if (!allowed || !/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? '')) {
    throw new Refused('AccessDenied', 'not authorized to perform: sts:AssumeRole');
  }
  const n = state.calls.length;
  const session = { accessKeyId: `ASIA${n}`, secretAccessKey: `secret-${n}/+=`, sessionToken: `token-${n}/+=` };
  state.credentials.set(session.accessKeyId, { ...session, principal: arn });
  const expiration = new Date(state.now() + SESSION_MS).toISOString();
  const credentials =
    `<AccessKeyId>${session.accessKeyId}</AccessKeyId><SecretAccessKey>${session.secretAccessKey}</SecretAccessKey>` +
    `<SessionToken>${session.sessionToken}</SessionToken><Expiration>${expiration}</Expiration>`;
  const result = `<AssumeRoleResult><Credentials>${credentials}</Credentials></AssumeRoleResult>`;
  const xml = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">${result}</AssumeRoleResponse>`;
  return { status: 200, type: 'text/xml', body: xml };
}

const json = (value: object): Reply => ({ status: 200, type: 'application/json', body: JSON.stringify(value) });

function describeCluster({ url, method }: Asked, principal: string, { clusters, calls }: State): Reply {
  const name = decodeURIComponent(url.pathname.split('/')[2] ?? '');
  calls.push(`DescribeCluster ${name}`);
  const cluster = clusters.get(name);
  if (cluster === undefined || method !== 'GET') throw new Refused('ResourceNotFoundException', 'No cluster found');
  if (cluster.roleArn !== principal) throw new Refused('AccessDeniedException', 'not authorized');
  const certificateAuthority = { data: Buffer.from(cluster.ca).toString('base64') };
  return json({ cluster: { name, endpoint: cluster.endpoint, certificateAuthority, status: 'ACTIVE' } });
}

function readSecret({ body }: Asked, { secrets, calls }: State): Reply {
  const { SecretId } = JSON.parse(body.toString('utf8')) as { SecretId: string };
  calls.push(`GetSecretValue ${SecretId}`);
  const SecretString = secrets.get(SecretId);
  if (SecretString === undefined) throw new Refused('ResourceNotFoundException', 'no such secret');
  return json({ ARN: SecretId, SecretString });
}
