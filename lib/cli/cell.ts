import { GetQueueUrlCommand, SQSClient } from '@aws-sdk/client-sqs';
import { compose, type App } from '../app/compose.ts';
import { allowsLoopback, useProfile, type Config } from '../app/config.ts';
import { findLocalCells, type CellEndpoint } from '../app/endpoint-file.ts';
import { noMetrics, silentLogger } from '../model/log.ts';
import type { DeadQueues } from '../replay/dead-queues.ts';
import { createSqsDeadQueues } from '../replay/sqs-dead-queues.ts';
import type { Queues } from '../queue/queues.ts';
import { createSqsQueues } from '../queue/sqs.ts';
import { CliError } from './exit-codes.ts';
import { DirectoryFleet } from './fleet/directory-fleet.ts';
import type { Fleet } from './fleet/fleet.ts';
import { countMessages } from './queue-depths.ts';
import { createTableFleet } from './fleet/table-fleet.ts';

/** Which cell is meant. */
export interface CellChoice {
  readonly fleet?: string | undefined;
  readonly stage?: string | undefined;
  readonly region?: string | undefined;
  readonly profile?: string | undefined;
  readonly installation: string;
}

/** A cell: its fleet, its queues, and the product to try things with. */
export interface Cell {
  readonly name: string;
  readonly fleet: Fleet;
  readonly app: App;
  /** Where its queues are. Throws CliError `unavailable` where no cell runs. */
  queueUrls(): Promise<Config['queueUrls']>;
  /** How many messages are in each queue. Throws like `queueUrls`, and KbindError `unavailable` where they do not answer. */
  depths(): Promise<Record<string, number>>;
  /** Where the queues are. */
  region(): Promise<string>;
  close(): Promise<void>;
}

const SERVICE = 'kbind-serverless';
const DEFAULT_REGION = 'eu-central-1';

/**
 * Finds the cell. Makes no request to a cluster or queue.
 * @throws CliError `usage` where it is not clear which one is meant, `unavailable` where none runs
 */
export async function openCell(choice: CellChoice): Promise<Cell> {
  if (choice.stage !== undefined) return deployedCell(choice, choice.stage);
  const cells = await findLocalCells(choice.fleet);
  const [cell] = cells;
  if (choice.fleet === undefined && cell === undefined) {
    throw new CliError(
      'usage',
      'which cell? Say --stage for a deployed one, --fleet DIR, or start one here: npm start',
    );
  }
  if (choice.fleet === undefined && cells.length > 1) {
    const dirs = cells.map(({ fleetDir }) => fleetDir).join(', ');
    throw new CliError('usage', `several cells run here, say --fleet with one of: ${dirs}`);
  }
  return localCell(choice.fleet ?? cell?.fleetDir ?? '', cell, choice.installation);
}

function localCell(dir: string, running: CellEndpoint | undefined, installation: string): Cell {
  const config = configOf({
    fleet: { dir },
    allowLoopback: true,
    region: running?.region ?? DEFAULT_REGION,
    sqsEndpoint: running?.endpoint,
    installation: running?.installation ?? installation,
    stage: running?.stage ?? 'local',
  });
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const client = new SQSClient({
    region: config.region ?? DEFAULT_REGION,
    endpoint: config.sqsEndpoint ?? '',
    credentials,
  });
  const queueUrls = (): Promise<Config['queueUrls']> => {
    if (running !== undefined) return Promise.resolve(running.queueUrls);
    const words = `no cell runs here for ${dir}, so there are no queues: npm start -- --fleet ${dir}`;
    return Promise.reject(new CliError('unavailable', words));
  };
  return cellOf(`local (${dir})`, { config, client, queueUrls, fleet: new DirectoryFleet(dir, true) });
}

function deployedCell({ region, profile, installation, fleet }: CellChoice, stage: string): Cell {
  if (fleet !== undefined) throw new CliError('usage', '--fleet and --stage name two cells: say one of them');
  if (profile !== undefined) useProfile(profile);
  const table = `${SERVICE}-${stage}-fleet`;
  const config = configOf({
    fleet: { table },
    allowLoopback: allowsLoopback(),
    region,
    sqsEndpoint: undefined,
    installation,
    stage,
  });
  // The URLs are this client's own answers: an endpoint that the terminal's environment names holds for their queues too.
  const client = new SQSClient({ ...(region === undefined ? {} : { region }), useQueueUrlAsEndpoint: false });
  let urls: Promise<Config['queueUrls']> | undefined;
  const queueUrls = (): Promise<Config['queueUrls']> => (urls ??= askForUrls(client, stage));
  return cellOf(`${SERVICE}-${stage}`, { config, client, queueUrls, fleet: createTableFleet(config, table) });
}

async function askForUrls(client: SQSClient, stage: string): Promise<Config['queueUrls']> {
  const urlOf = async (queue: string): Promise<string> => {
    const name = `${SERVICE}-${stage}-${queue}`;
    try {
      return (await client.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl ?? '';
    } catch (error) {
      throw new CliError('unavailable', `queue ${name}: ${(error as Error).message}`);
    }
  };
  const names = ['control.fifo', 'instances.fifo', 'work', 'dead-letters.fifo', 'work-dead'];
  const [control = '', instances = '', work = '', deadLetters = '', workDead = ''] = await Promise.all(
    names.map(urlOf),
  );
  return { control, instances, work, deadLetters, workDead };
}

type Variable = Pick<Config, 'fleet' | 'allowLoopback' | 'region' | 'sqsEndpoint' | 'installation' | 'stage'>;

const configOf = (variable: Variable): Config => ({
  ...variable,
  queueUrls: { control: '', instances: '', work: '', deadLetters: '', workDead: '' },
  endpoints: {},
  logLevel: 'SILENT',
  metrics: 'none',
  perCluster: 10,
});

interface Parts {
  readonly config: Config;
  readonly client: SQSClient;
  readonly queueUrls: () => Promise<Config['queueUrls']>;
  readonly fleet: Fleet;
}

function cellOf(name: string, { config, client, queueUrls, fleet }: Parts): Cell {
  const app = compose(config, {
    registry: fleet.registry,
    queues: lateQueues(client, queueUrls),
    deadQueues: lateDeadQueues(client, queueUrls),
    log: silentLogger,
    metrics: { ...noMetrics, measure: () => undefined, flush: () => undefined },
    // The cell takes clusters; whoever only looks does not.
    lease: 'look',
  });
  return {
    name,
    fleet,
    app,
    queueUrls,
    depths: async () => countMessages(client, await queueUrls()),
    region: () => client.config.region(),
    async close() {
      await app.close();
      fleet.close();
      client.destroy();
    },
  };
}

/** Queues whose addresses are asked for when somebody uses them first. */
function lateQueues(client: SQSClient, urls: Parts['queueUrls']): Queues {
  const queues = async (): Promise<Queues> => createSqsQueues(client, await urls());
  return {
    send: async (queue, messages) => (await queues()).send(queue, messages),
    backlog: async () => (await queues()).backlog(),
  };
}

function lateDeadQueues(client: SQSClient, urls: Parts['queueUrls']): DeadQueues {
  const dead = async (): Promise<DeadQueues> => createSqsDeadQueues(client, await urls());
  return {
    receive: async (queue, visibilitySeconds) => (await dead()).receive(queue, visibilitySeconds),
    remove: async (messages) => (await dead()).remove(messages),
    release: async (messages) => (await dead()).release(messages),
    count: async (queue) => (await dead()).count(queue),
  };
}
