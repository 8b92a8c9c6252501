import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cellQueues, type CellQueue } from '../../../lib/local/cell.ts';
import { startQueues, type LocalQueues, type QueueDepth } from '../../../lib/local/queues.ts';
import { resolveReferences } from '../../../lib/local/stack/cloudformation.ts';
import { readServerlessFile } from '../../../lib/local/stack/serverless-file.ts';
import type { Asked, Told } from './container.ts';
import { CuttableProxy } from './proxy.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../../..');
const SERVERLESS_FILE = join(ROOT, 'serverless.yml');
const CONTAINER = join(import.meta.dirname, 'container.ts');
const FORWARDER = join(ROOT, 'lib/app/forwarder-main.ts');
/** What a killed container held comes back after that; three minutes, as deployed, is more than a test has. Seconds. */
const VISIBILITY_SECONDS = 20;

const FLOW = ['control', 'instances', 'work'] as const;

interface Running {
  readonly child: ChildProcess;
  /** Invocations under way, by function. */
  busy: Readonly<Record<string, number>>;
  errors: string;
}

export interface ProcessCellOptions {
  readonly fleetDir: string;
  /** Of the consumer whose forwarder runs. */
  readonly kubeconfig: string;
}

/**
 * The product in processes of its own, which can be killed with -9: a forwarder, and containers with all functions. The queues
 * live in the test's process, as SQS does not die with anybody, behind a wire that can be cut.
 */
export class ProcessCell {
  readonly wire: CuttableProxy;
  readonly #queues: LocalQueues;
  readonly #environment: Record<string, string>;
  readonly #options: ProcessCellOptions;
  readonly #containers: Running[] = [];
  #forwarder: Running | undefined;
  #backstops = 0;
  #asked = 0;
  /** Processes that were killed at work. */
  readonly killed = { forwarder: 0, container: 0 };

  private constructor(parts: { wire: CuttableProxy; queues: LocalQueues; options: ProcessCellOptions }) {
    this.wire = parts.wire;
    this.#queues = parts.queues;
    this.#options = parts.options;
    this.#environment = this.#environmentOf(parts.options);
  }

  /** Queues only: nothing runs yet. */
  static async start(options: ProcessCellOptions): Promise<ProcessCell> {
    const declared = readServerlessFile(SERVERLESS_FILE, { stage: 'local' });
    const queues = await startQueues({
      ...declared,
      queues: declared.queues.map((queue) => ({
        ...queue,
        properties: { ...queue.properties, VisibilityTimeout: VISIBILITY_SECONDS },
      })),
    });
    return new ProcessCell({ wire: await CuttableProxy.start(queues.endpoint), queues, options });
  }

  #environmentOf({ fleetDir }: ProcessCellOptions): Record<string, string> {
    const declared = readServerlessFile(SERVERLESS_FILE, { stage: 'local' });
    const endpoint = this.wire.address('http');
    const throughWire = new Map(
      [...this.#queues.facts.queues].map(([id, { url, ...rest }]) => [
        id,
        { ...rest, url: url.replace(this.#queues.endpoint, endpoint) },
      ]),
    );
    const facts = { ...this.#queues.facts, queues: throughWire };
    const own = resolveReferences(declared.functions[0]?.environment ?? {}, facts) as Record<string, unknown>;
    return {
      PATH: process.env['PATH'] ?? '',
      ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, String(value)])),
      KBIND_QUEUES: JSON.stringify(Object.fromEntries(throughWire)),
      FLEET_TABLE: '',
      FLEET_DIR: fleetDir,
      ALLOW_LOOPBACK: 'true',
      LOG_LEVEL: 'ERROR',
      METRICS: 'none',
      AWS_REGION: declared.region,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_ENDPOINT_URL_SQS: endpoint,
    };
  }

  startForwarder(): void {
    const { kubeconfig } = this.#options;
    const env = { ...this.#environment, KUBECONFIG: kubeconfig, PORT: '0' };
    this.#forwarder = watched(spawn(process.execPath, [FORWARDER], { env, stdio: ['ignore', 'ignore', 'pipe'] }));
  }

  startContainer(): void {
    const container = watched(
      fork(CONTAINER, [SERVERLESS_FILE], { env: this.#environment, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] }),
    );
    container.child.on('message', (message) => {
      const told = message as Told;
      if (told.type === 'busy') container.busy = told.running;
    });
    this.#containers.push(container);
  }

  async killForwarder(): Promise<void> {
    if (this.#forwarder === undefined) throw new Error('no forwarder runs');
    await kill(this.#forwarder);
    this.#forwarder = undefined;
    this.killed.forwarder += 1;
  }

  /** Kills the oldest container while it reconciles instances: what it has received is in the middle of something. */
  async killContainer(): Promise<void> {
    const oldest = this.#oldest();
    await until('a container reconciles instances', () => (oldest.busy['instances'] ?? 0) > 0);
    await kill(oldest);
    this.#containers.shift();
    this.killed.container += 1;
  }

  /** In place of the oldest container, which ends in peace, one that remembers nothing. */
  async replaceContainer(): Promise<void> {
    const { child } = this.#oldest();
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
    this.#containers.shift();
    this.startContainer();
  }

  #oldest(): Running {
    const [oldest] = this.#containers;
    if (oldest === undefined) throw new Error('no container runs');
    return oldest;
  }

  /** Invokes a function in the oldest container, and answers with what it answered. */
  async invoke(name: string, event: object): Promise<unknown> {
    const { child } = this.#oldest();
    this.#asked += 1;
    const asked: Asked = { id: this.#asked, name, event };
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const hear = (message: unknown): void => {
      const told = message as Told;
      if (told.type !== 'answer' || told.id !== asked.id) return;
      if (told.error === undefined) resolve(told.answer);
      else reject(new Error(`${name}: ${told.error}`));
    };
    child.on('message', hear);
    child.send(asked);
    try {
      return await promise;
    } finally {
      child.off('message', hear);
    }
  }

  depth(queue: CellQueue): QueueDepth {
    return this.#queues.depth(cellQueues[queue]);
  }

  depths(): Readonly<Record<string, QueueDepth>> {
    return Object.fromEntries(FLOW.map((queue) => [queue, this.depth(queue)]));
  }

  /** Nothing is ready or received; what is delayed does not count: refreshes always are. */
  isIdle(): boolean {
    return FLOW.every((queue) => this.depth(queue).ready + this.depth(queue).inFlight === 0);
  }

  bodies(queue: CellQueue): readonly string[] {
    return this.#queues.bodies(cellQueues[queue]);
  }

  /** The ten-minute backstop of a cluster, now: resolves when it, and all that it asked for, is done. */
  async backstop(cluster: string): Promise<void> {
    this.#backstops += 1;
    const sqs = new SQSClient({
      endpoint: this.#queues.endpoint,
      region: this.#queues.facts.region,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    const body = { v: 1, type: 'sweep', cluster, id: `backstop/test-${this.#backstops}`, retry: false };
    const { url } = this.#queues.facts.queues.get(cellQueues.work) ?? { url: '' };
    await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody: JSON.stringify(body) }));
    sqs.destroy();
    await until('the backstop and what it found are done', () => this.isIdle(), { seen: () => this.depths() });
  }

  async stop(): Promise<void> {
    const running = [...this.#containers.splice(0), ...(this.#forwarder === undefined ? [] : [this.#forwarder])];
    await Promise.all(running.map(kill));
    await this.wire.stop();
    await this.#queues.stop();
  }
}

function watched(child: ChildProcess): Running {
  const running: Running = { child, busy: {}, errors: '' };
  child.stderr?.on('data', (data: Buffer) => (running.errors += data.toString()));
  return running;
}

/** With -9. One that ended before, by itself, is a bug that its own words explain. */
async function kill({ child, errors }: Running): Promise<void> {
  if (child.exitCode !== null) throw new Error(`a process had ended by itself with ${child.exitCode}: ${errors}`);
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
