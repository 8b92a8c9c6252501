import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import pc from 'picocolors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf } from '../../../lib/cli/exit-codes.ts';
import { createProgram } from '../../../lib/cli/program.ts';
import type { ResultName, ResultOf } from '../../../lib/cli/results.ts';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { Authority } from '../../../lib/embedded/pki/authority.ts';
import { createKubeClient } from '../../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { installProductCrds } from '../../../lib/local/demo/clusters.ts';
import { systemClock } from '../../../lib/model/clock.ts';

/** 200 entries, each with a credential of its own: 170 on four API servers, 30 at one that takes requests and never answers. */

const ANSWERING = 170;
const SILENT = 30;
const SERVERS = 4;
/** Shorter than the product's own patience with an answer. */
const TIMEOUT_SECONDS = 9;
/** What clusters-at-once.ts allows. */
const AT_ONCE = 32;
const egress = { allowLoopback: true };

let dir: string;
let clusters: EmbeddedCluster[];
let hole: Hole;

interface Hole {
  readonly server: Server;
  readonly sockets: Set<Socket>;
  readonly most: { open: number };
  kubeconfig(token: string): string;
}

/** Entries (users) that were asked something, in the order of their first request. */
const users = new Set<string>();

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kbind-two-hundred-'));
  clusters = await Promise.all(Array.from({ length: SERVERS }, () => startEmbeddedCluster()));
  hole = await startHole();
  for (const cluster of clusters) {
    const client = createKubeClient(parseForeignKubeconfig(cluster.kubeconfig, egress), { clock: systemClock, egress });
    await installProductCrds(client);
    await client.close();
    cluster.onRequest(({ user }) => void users.add(user));
  }
  for (let index = 0; index < ANSWERING; index += 1) {
    const name = nameOf(index);
    const cluster = clusters[index % SERVERS] as EmbeddedCluster;
    const { kubeconfig } = await cluster.addUser({ name, auth: 'token', groups: ['system:masters'] });
    await writeFile(join(dir, `${name}.kubeconfig`), kubeconfig);
  }
  for (const [index, name] of silentOnes.entries()) {
    await writeFile(join(dir, `${name}.kubeconfig`), hole.kubeconfig(`token-${index}`));
  }
}, 120_000);

afterAll(async () => {
  for (const socket of hole.sockets) socket.destroy();
  hole.server.close();
  await Promise.all(clusters.map((cluster) => cluster.stop()));
  await rm(dir, { recursive: true, force: true });
});

const nameOf = (index: number): string => `c${String(index).padStart(3, '0')}`;

/** Among the others, not behind them. */
const silentOnes = Array.from({ length: SILENT }, (_, index) => `${nameOf(index * 6)}-silent`);
/** A check is 33 requests, and all servers are in this process. */
const checked = [...silentOnes, ...Array.from({ length: 50 }, (_, index) => nameOf(index * 3))];

/** Takes requests and never answers; knows how many connections were open at once. */
async function startHole(): Promise<Hole> {
  const authority = await Authority.create('hole-ca');
  const { certificate: cert, key } = await authority.server();
  const sockets = new Set<Socket>();
  const server = createServer({ cert, key }, () => undefined);
  const most = { open: 0 };
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    most.open = Math.max(most.open, sockets.size);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const trusted = Buffer.from(authority.certificate).toString('base64');
  const cluster = `{ server: 'https://127.0.0.1:${port}', certificate-authority-data: ${trusted} }`;
  const kubeconfig = (token: string): string =>
    `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: ${cluster} }]
users: [{ name: u, user: { token: ${token} } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`;
  return { server, sockets, most, kubeconfig };
}

/** Runs a command in this process, as main.ts does, without a terminal. */
async function cli<Name extends ResultName>(
  _name: Name,
  ...args: string[]
): Promise<{ readonly code: number; readonly data: ResultOf<Name>; readonly ms: number }> {
  const out = new PassThrough();
  const chunks: Buffer[] = [];
  out.on('data', (chunk: Buffer) => chunks.push(chunk));
  let code = -1;
  const silent = new PassThrough().resume();
  const program = createProgram({
    terminal: () => ({
      out,
      err: silent,
      in: new PassThrough(),
      interactive: false,
      live: false,
      quiet: true,
      colors: pc.createColors(false),
    }),
    exit: (with_) => void (code = with_),
  });
  const from = performance.now();
  const options = ['--fleet', dir, '--timeout', String(TIMEOUT_SECONDS), '-o', 'json'];
  await program.parseAsync([...args, ...options], { from: 'user' });
  return {
    code,
    data: JSON.parse(Buffer.concat(chunks).toString('utf8')) as ResultOf<Name>,
    ms: performance.now() - from,
  };
}

describe('a fleet of 200 of which 30 hang', () => {
  it('status answers with all the others, and says of each that hangs that its time was up', async () => {
    const { code, data, ms } = await cli('status', 'status');
    expect(code).toBe(codeOf('trouble'));
    expect(data.clusters).toHaveLength(ANSWERING + SILENT);
    const lost = data.clusters.filter(({ problem }) => problem !== undefined);
    // Trouble comes first.
    expect(data.clusters.slice(0, SILENT)).toEqual(lost);
    expect(lost.map(({ name }) => name)).toEqual(silentOnes);
    expect(new Set(lost.map(({ problem }) => problem))).toEqual(new Set([`no answer within ${TIMEOUT_SECONDS} s`]));
    for (const { connections } of data.clusters.slice(SILENT)) expect(connections).toEqual({ total: 0, ready: 0 });
    // Each was asked with its own credential, once its turn came; those that hang waited side by side.
    expect([...users].filter((user) => /^c\d+$/.test(user))).toHaveLength(ANSWERING);
    expect(ms).toBeLessThan(SILENT * TIMEOUT_SECONDS * 1000);
  }, 60_000);

  it('clusters check does so as well', async () => {
    const { code, data } = await cli('clusters check', 'clusters', 'check', ...checked);
    expect(code).toBe(codeOf('trouble'));
    const lost = data.clusters.filter(({ ok }) => !ok);
    expect(lost.map(({ name }) => name)).toEqual(silentOnes);
    for (const { checks } of lost) {
      const detail = `no answer within ${TIMEOUT_SECONDS} s`;
      expect(checks).toEqual([{ check: 'reachable', ok: false, detail }]);
    }
    expect(data.clusters.filter(({ ok }) => ok)).toHaveLength(checked.length - SILENT);
  }, 60_000);

  it('was asked by no more than so many at a time', () => {
    expect(hole.most.open).toBeGreaterThan(1);
    expect(hole.most.open).toBeLessThanOrEqual(AT_ONCE);
  });
});
