import { mkdtemp, open, rm, stat, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { startEmbeddedCluster } from '../../../lib/embedded/index.ts';
import { startRealCluster } from '../apiserver/real.ts';
import { until } from '../kube/until.ts';
import { startApart } from './apart.ts';

/** One request as the API server saw it. A watch counts when it stands, anything else when it was answered. */
export interface SeenRequest {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly uri: string;
  /** When it arrived, epoch ms. */
  readonly at: number;
}

/** What the server has seen so far: hand it to {@link BenchServer.since}. */
export type Mark = number;

/** An API server whose requests are counted where they arrive. */
export interface BenchServer {
  readonly kubeconfig: string;
  /** A user with all rights, by whose name requests are told apart. */
  addUser(name: string): Promise<string>;
  mark(): Promise<Mark>;
  since(mark: Mark): Promise<SeenRequest[]>;
  stop(): Promise<void>;
}

/** `apart`: embedded, in a process of its own. */
export type ServerName = 'embedded' | 'real' | 'apart';

const MASTERS = ['system:masters'];

const starters: Readonly<Record<ServerName, (name: string) => Promise<BenchServer>>> = {
  embedded: startEmbedded,
  real: startReal,
  apart: startApart,
};

export const startBenchServer = (kind: ServerName, name: string): Promise<BenchServer> => starters[kind](name);

async function startEmbedded(name: string): Promise<BenchServer> {
  const cluster = await startEmbeddedCluster({ name });
  const seen: SeenRequest[] = [];
  cluster.onRequest(({ user, verb, plural, subresource, namespace, name, path, query }) => {
    seen.push({
      user,
      verb,
      resource: plural,
      subresource,
      namespace,
      name,
      uri: `${path}?${query.toString()}`,
      at: Date.now(),
    });
  });
  return {
    kubeconfig: cluster.kubeconfig,
    addUser: async (user) => (await cluster.addUser({ name: user, groups: MASTERS, auth: 'certificate' })).kubeconfig,
    mark: () => Promise.resolve(seen.length),
    since: (mark) => Promise.resolve(seen.slice(mark)),
    stop: () => cluster.stop(),
  };
}

const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
};

/**
 * Who may come. All by token, as ServiceAccounts and EKS do: of what a server does for a request with a client certificate, a tenth
 * is to verify that, and nobody's fleet is reached so.
 */
const REAL_USERS = ['hands', 'kbind-product', 'kbind-forwarder'] as const;

interface Kubeconfig {
  readonly users: readonly { readonly name: string; readonly user: object }[];
}

/** The admin's kubeconfig with another user. */
function withToken(kubeconfig: string, token: string): string {
  const admin = parse(kubeconfig) as Kubeconfig;
  return stringify({ ...admin, users: admin.users.map(({ name }) => ({ name, user: { token } })) });
}

/** The audit log is written before the server goes on: what was answered stands in it. */
async function startReal(name: string): Promise<BenchServer> {
  const tokens = new Map<string, string>(REAL_USERS.map((user) => [user, randomUUID()]));
  const directory = await mkdtemp(join(tmpdir(), `kbind-bench-${name}-`));
  const log = join(directory, 'audit.log');
  await writeFile(join(directory, 'policy.yaml'), JSON.stringify(AUDIT_POLICY));
  await writeFile(log, '');
  const lines = [...tokens].map(([user, token]) => `${token},${user},${user},"${MASTERS.join(',')}"\n`);
  await writeFile(join(directory, 'tokens.csv'), lines.join(''), { mode: 0o600 });
  const real = await startRealCluster({
    name,
    apiServerFlags: {
      'token-auth-file': join(directory, 'tokens.csv'),
      'audit-policy-file': join(directory, 'policy.yaml'),
      'audit-log-path': log,
      'audit-log-mode': 'blocking',
      // Megabytes; beyond, a new file would begin, and what stands in the old one would not be counted.
      'audit-log-maxsize': '65536',
    },
  });
  const size = async (): Promise<number> => (await stat(log)).size;
  const kubeconfigOf = (user: string): string => {
    const token = tokens.get(user);
    if (token === undefined) throw new Error(`no such user on a real server: ${user}`);
    return withToken(real.kubeconfig, token);
  };
  return {
    kubeconfig: kubeconfigOf('hands'),
    addUser: (user) => Promise.resolve(kubeconfigOf(user)),
    mark: () => settledSize(size),
    async since(mark) {
      await settledSize(size);
      return (await readFrom(log, mark)).split('\n').flatMap(seenIn);
    },
    async stop() {
      await real.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** An answer may reach its reader a moment before its line is written: the log is read once it has stopped growing. */
async function settledSize(size: () => Promise<number>): Promise<number> {
  let last = -1;
  let now = await size();
  await until(async () => {
    [last, now] = [now, await size()];
    return last === now;
  });
  return now;
}

async function readFrom(path: string, offset: number): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.max(0, size - offset));
    await file.read(buffer, 0, buffer.length, offset);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}

interface AuditLine {
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
}

function seenIn(text: string): SeenRequest[] {
  if (text === '') return [];
  const { stage, verb, requestURI, requestReceivedTimestamp, user, objectRef = {} } = JSON.parse(text) as AuditLine;
  if (stage !== (verb === 'watch' ? 'ResponseStarted' : 'ResponseComplete')) return [];
  const { resource = '', subresource = '', namespace = '', name = '' } = objectRef;
  const at = Date.parse(requestReceivedTimestamp);
  return [{ user: user.username, verb, resource, subresource, namespace, name, uri: requestURI, at }];
}
