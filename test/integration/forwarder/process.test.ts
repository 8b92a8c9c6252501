import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { startFauxqs, type FauxqsServer } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseMessage } from '../../../lib/queue/codec.ts';
import { memoryOf } from '../../support/bench/processes.ts';
import { embeddedKind } from '../../support/apiserver/kinds.ts';
import { create, startPair, until, widgets, WIDGETS, type Pair } from './fixture.ts';

const ROOT = join(import.meta.dirname, '../../..');
const MAIN = join(ROOT, 'lib/app/forwarder-main.ts');
const REGION = 'us-east-1';
const FIFO = { FifoQueue: 'true' };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The process that the image runs, on queues of an emulator. */
describe('forwarder process', () => {
  let pair: Pair;
  let queues: FauxqsServer;
  let folder: string;
  let port: number;
  let environment: NodeJS.ProcessEnv;

  beforeAll(async () => {
    pair = await startPair(embeddedKind);
    queues = await startFauxqs({ port: 0, logger: false, defaultRegion: REGION });
    for (const name of ['control.fifo', 'instances.fifo'])
      queues.createQueue(name, { region: REGION, attributes: FIFO });
    queues.createQueue('work', { region: REGION });
    folder = await mkdtemp(join(tmpdir(), 'kbind-forwarder-'));
    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, pair.consumer.server.kubeconfig);
    port = await freePort();
    const url = (name: string) => `http://127.0.0.1:${queues.port}/000000000000/${name}`;
    environment = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      CONTROL_QUEUE_URL: url('control.fifo'),
      INSTANCES_QUEUE_URL: url('instances.fifo'),
      WORK_QUEUE_URL: url('work'),
      KUBECONFIG: kubeconfig,
      ALLOW_LOOPBACK: 'true',
      PORT: String(port),
      LOG_LEVEL: 'WARN',
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL: `http://127.0.0.1:${queues.port}`,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    };
  });
  afterAll(async () => {
    await Promise.all([queues.stop(), pair.stop(), rm(folder, { recursive: true })]);
  });

  function start(
    change: NodeJS.ProcessEnv = {},
    main = MAIN,
  ): {
    child: ChildProcess;
    output: () => string;
    ended: Promise<unknown[]>;
  } {
    const child = spawn(process.execPath, [main], {
      env: { ...environment, ...change },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data: Buffer) => (output += data.toString()));
    return { child, output: () => output, ended: once(child, 'exit') };
  }

  const bodies = (queue: string) =>
    (queues.inspectQueue(queue)?.messages.ready ?? []).map(({ body }) => parseMessage(body));
  const status = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status;

  it('turns ready, sends, and delivers what it holds when it is told to end', async () => {
    const { child, output, ended } = start();
    await until(async () => expect(await status('/readyz')).toBe(200));
    expect(await status('/healthz')).toBe(200);
    await until(() =>
      expect(bodies('work')).toContainEqual(expect.objectContaining({ type: 'sweep', apis: [WIDGETS] })),
    );
    await create(pair.consumer.admin, widgets, { metadata: { namespace: 'default', name: 'a' }, spec: {} });
    await until(() =>
      expect(bodies('instances.fifo')).toContainEqual(expect.objectContaining({ api: WIDGETS, name: 'a' })),
    );
    // The keys of the control plane are gathered for a moment.
    await until(() =>
      expect(bodies('control.fifo')).toContainEqual(
        expect.objectContaining({ controller: 'connection', name: 'east' }),
      ),
    );
    expect(bodies('control.fifo')).toContainEqual(
      expect.objectContaining({ type: 'heartbeat', cluster: pair.consumer.uid }),
    );
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(output()).not.toContain(pair.provider.server.kubeconfig.slice(0, 40));
  });

  it.skipIf(process.platform !== 'linux')(
    'holds no more memory beside 10,000 objects than beside 100, within 10 MB',
    async () => {
      const namespace = 'default';
      const make = async (from: number, to: number): Promise<void> => {
        const limit = pLimit(50);
        const indices = Array.from({ length: to - from }, (_, index) => from + index);
        await limit.map(indices, (index) =>
          create(pair.consumer.admin, widgets, { metadata: { namespace, name: `m-${index}` }, spec: { index } }),
        );
      };
      const build = [join(ROOT, 'scripts/build.ts'), folder, 'forwarder'];
      execFileSync(process.execPath, build, { cwd: ROOT, stdio: 'pipe' });
      const bundle = join(folder, 'forwarder', 'forwarder.mjs');
      const heldAtRest = async (): Promise<number> => {
        const posted = bodies('work').length;
        // Garbage that was not collected yet says nothing: there is little room for it.
        const { child, ended } = start({ NODE_OPTIONS: '--max-semi-space-size=2' }, bundle);
        await until(() => expect(bodies('work').length).toBeGreaterThan(posted));
        await until(async () => expect(await status('/readyz')).toBe(200));
        const { rssMb } = await memoryOf(child.pid ?? 0);
        child.kill('SIGTERM');
        await ended;
        return rssMb;
      };
      await make(0, 100);
      const few = await heldAtRest();
      await make(100, 10_000);
      const many = await heldAtRest();
      expect(few).toBeGreaterThan(20);
      expect(many - few).toBeLessThanOrEqual(10);
    },
    120_000,
  );

  it('says in one line what is wrong with its configuration', async () => {
    const { output, ended } = start({ WORK_QUEUE_URL: undefined, PORT: 'http' });
    expect(await ended).toEqual([1, null]);
    expect(output().trim()).toBe('kbind-forwarder: configuration: PORT: must be a port; WORK_QUEUE_URL is not set');
  });

  it('says in one line that a kubeconfig cannot be read', async () => {
    const { output, ended } = start({ KUBECONFIG: join(folder, 'missing') });
    expect(await ended).toEqual([1, null]);
    expect(output().trim()).toBe('kbind-forwarder: kubeconfig: cannot be read (ENOENT)');
  });
});
