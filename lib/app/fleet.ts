import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createReachResolver } from '../fleet/aws/resolver.ts';
import type { AwsCalls } from '../fleet/aws/clients.ts';
import type { DirectoryRegistry } from '../fleet/directory.ts';
import { DynamoRegistry } from '../fleet/dynamodb/registry.ts';
import { FleetTable } from '../fleet/dynamodb/table.ts';
import type { IngestKeyring } from '../fleet/ingest-keys.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import type { Clock } from '../model/clock.ts';
import type { Config } from './config.ts';

/** The fleet as this process sees it. */
export interface Fleet {
  readonly registry: FleetRegistry;
  readonly keyring: IngestKeyring;
  close(): void;
}

type FleetSettings = Pick<Config, 'fleet' | 'allowLoopback' | 'region' | 'endpoints' | 'installation' | 'stage'>;

/** The adapter that the configuration names. Makes no request. */
export function createFleet(config: FleetSettings, clock: Clock): Fleet {
  return 'table' in config.fleet
    ? tableFleet(config, config.fleet.table, clock)
    : directoryFleet(config.fleet.dir, config, clock);
}

/** The table of the fleet, for whoever administers it. */
export function createFleetTable(
  { region, endpoints }: Pick<Config, 'region' | 'endpoints'>,
  table: string,
): { readonly table: FleetTable; close(): void } {
  const client = new DynamoDBClient({
    ...(region === undefined ? {} : { region }),
    ...(endpoints.dynamodb === undefined ? {} : { endpoint: endpoints.dynamodb }),
  });
  return { table: new FleetTable(client, table), close: () => client.destroy() };
}

function tableFleet(config: FleetSettings, name: string, clock: Clock): Fleet {
  const opened = createFleetTable(config, name);
  const { allowLoopback, stage } = config;
  const resolver = createReachResolver({ calls: lazily(() => loadCalls(config)), clock, allowLoopback });
  const registry = new DynamoRegistry({ table: opened.table, resolver, clock, cell: stage });
  return { registry, keyring: registry, close: () => opened.close() };
}

/** Clients of three services take some tens of milliseconds to load: nobody waits for them who needs none. */
async function loadCalls({ region, endpoints, installation, stage }: FleetSettings): Promise<AwsCalls> {
  const { createAwsCalls } = await import('../fleet/aws/clients.ts');
  return createAwsCalls({ region, endpoints, sessionName: `${installation}-${stage}`.slice(0, 64) });
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** Only local runs have one: nobody else loads it, and the Kubernetes client that it asks for identities with. */
function directoryFleet(dir: string, { allowLoopback }: FleetSettings, clock: Clock): Fleet {
  const opened = lazily(() => openDirectory(dir, allowLoopback, clock));
  const registry: FleetRegistry & IngestKeyring = {
    list: async () => (await opened()).list(),
    lookup: async (uid) => (await opened()).lookup(uid),
    heartbeat: async (uid, beat) => (await opened()).heartbeat(uid, beat),
    swept: async (uid, at) => (await opened()).swept(uid, at),
    sweepAsked: async (uid, owedSince) => (await opened()).sweepAsked(uid, owedSince),
    held: async (uid, by) => (await opened()).held(uid, by),
    distrust: (uid) => void opened().then((directory) => directory.distrust(uid)),
    keysOf: async (uid) => (await opened()).keysOf(uid),
  };
  return { registry, keyring: registry, close: () => undefined };
}

async function openDirectory(dir: string, allowLoopback: boolean, clock: Clock): Promise<DirectoryRegistry> {
  const [{ DirectoryRegistry: Registry }, { createKubeClient }] = await Promise.all([
    import('../fleet/directory.ts'),
    import('../kube/client.ts'),
  ]);
  return new Registry({
    dir,
    allowLoopback,
    clock,
    connect: (target) => createKubeClient(target, { clock, egress: { allowLoopback }, side: 'consumer' }),
  });
}
