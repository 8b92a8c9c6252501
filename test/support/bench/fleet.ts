import { FleetAdmin } from '../../../lib/fleet/dynamodb/admin.ts';
import type { Item } from '../../../lib/fleet/dynamodb/item.ts';
import { uidOf } from '../../../lib/fleet/dynamodb/item.ts';
import { DynamoRegistry } from '../../../lib/fleet/dynamodb/registry.ts';
import type { FleetTable } from '../../../lib/fleet/dynamodb/table.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import type { QueueMessage, QueueName } from '../../../lib/queue/queues.ts';
import { Cell } from '../../invariants/campaign/cell.ts';
import { bindingObject, connectionObject, personOf, setUp, widgets } from '../../invariants/campaign/setup.ts';
import { forgetActors, Network, type TestCluster } from '../faults/network.ts';
import { Faults } from '../faults/plan.ts';
import { seeded, type Random } from '../faults/random.ts';
import { takeOverProcess, VirtualTime } from '../faults/virtual-time.ts';
import { VirtualQueues, type Held } from '../queue/virtual-queue.ts';

export interface FleetOptions {
  /** The items of a fleet's table; the first so many of its clusters have traffic. */
  readonly items: readonly Item[];
  readonly busy: number;
  readonly minutes: number;
}

/** What one cluster costs an hour, its share of what several have together. */
export interface PerHour {
  /** At both API servers, those of its forwarder among them. */
  readonly requests: number;
  readonly invocations: number;
  readonly messages: number;
  readonly heartbeats: number;
}

export interface FleetCost {
  readonly idle: PerHour;
  readonly busy: PerHour;
  /** Of the whole fleet at its table, an hour: looks, notes and scans. */
  readonly tableRequests: number;
  /** Refreshes that were given out in each of the 30 seconds, in one measured half minute on the average. */
  readonly refreshesBySecond: readonly number[];
  readonly deadLetters: number;
}

const SETTLING_MS = 12 * 60_000;
const MINUTE_MS = 60_000;
const IDLE_PROVIDER = 'provider-idle';
const BUSY_PROVIDER = 'provider-busy';

/** Chance that lets containers live: what is counted is a warm function. */
function warm(random: Random): Random {
  return { ...random, chance: () => false, fork: (name) => warm(random.fork(name)) };
}

interface Share {
  requests: number;
  invocations: number;
  messages: number;
  heartbeats: number;
}
const nothing = (): Share => ({ requests: 0, invocations: 0, messages: 0, heartbeats: 0 });
const clusterIn = (body: string): string => {
  const message = JSON.parse(body) as { cluster?: string; request?: { cluster?: string } };
  return message.cluster ?? message.request?.cluster ?? '';
};

/** Queues that know what each cluster sends and how much of each invocation is its. */
class SharedQueues extends VirtualQueues {
  readonly bySecond = Array.from({ length: 30 }, () => 0);
  readonly #shareOf: (cluster: string) => Share;
  readonly #time: VirtualTime;

  constructor(time: VirtualTime, faults: Faults, shareOf: (cluster: string) => Share) {
    super(time, faults);
    this.#shareOf = shareOf;
    this.#time = time;
    for (const name of ['control', 'instances', 'work'] as const) {
      const queue = this[name];
      const receive = queue.receive.bind(queue);
      queue.receive = (shuffle) => this.#given(receive(shuffle));
    }
  }

  #given(batch: Held[]): Held[] {
    for (const { body } of batch) {
      this.#shareOf(clusterIn(body)).invocations += 1 / batch.length;
      if (!body.includes('"type":"refresh"')) continue;
      const second = Math.floor(this.#time.now() / 1000) % 30;
      this.bySecond[second] = (this.bySecond[second] ?? 0) + 1;
    }
    return batch;
  }

  override send(name: QueueName, messages: readonly QueueMessage[]): number[] {
    for (const { body } of messages) {
      const share = this.#shareOf(clusterIn(body));
      if (body.includes('"type":"heartbeat"')) share.heartbeats += 1;
      else share.messages += 1;
    }
    return super.send(name, messages);
  }
}

/** The items as a table that answers at once and counts what it is asked: notes are taken and forgotten. */
function countedTable(items: readonly Item[]): { readonly table: FleetTable; readonly asked: { count: number } } {
  const asked = { count: 0 };
  const byId = new Map(items.map((item) => [item['id']?.S ?? '', item]));
  const answer = <T>(value: T): Promise<T> => {
    asked.count += 1;
    return Promise.resolve(value);
  };
  const table = {
    get: (id: string) => answer(byId.get(id)),
    scan: () => answer([...items]),
    update: (id: string) => answer(byId.has(id)),
  };
  return { table: table as unknown as FleetTable, asked };
}

/** Counts at a server what the product asks of it. */
function count({ server }: TestCluster, counted: () => void): void {
  const handle = server.handle.bind(server);
  server.handle = (request, response) => {
    const { actor } = request as typeof request & { actor?: { readonly product: boolean } };
    if (actor?.product === true) counted();
    return handle(request, response);
  };
}

const perHour = (share: Share, clusters: number, minutes: number): PerHour => {
  const each = (value: number): number => Math.round((value * 60) / minutes / Math.max(1, clusters));
  const { requests, invocations, messages, heartbeats } = share;
  return {
    requests: each(requests),
    invocations: each(invocations),
    messages: each(messages),
    heartbeats: each(heartbeats),
  };
};

const sum = (shares: readonly Share[]): Share =>
  shares.reduce(
    (all, one) => ({
      requests: all.requests + one.requests,
      invocations: all.invocations + one.invocations,
      messages: all.messages + one.messages,
      heartbeats: all.heartbeats + one.heartbeats,
    }),
    nothing(),
  );

/** A fleet with one bound API and one instance a cluster; in the busy ones somebody edits it every minute. On a virtual clock. */
export async function simulateFleet({ items, busy, minutes }: FleetOptions): Promise<FleetCost> {
  const members = items.flatMap((item) => {
    const uid = uidOf(item);
    return uid === undefined ? [] : [{ uid, name: item['name']?.S ?? '' }];
  });
  const random = warm(seeded(11));
  const time = new VirtualTime();
  using _taken = takeOverProcess(time, random.fork('process'));
  const faults = new Faults(random, { rate: 0, kinds: [], time, until: 0 });
  const network = new Network(time, faults, random);
  const shares = new Map(members.map(({ uid }) => [uid, nothing()]));
  const elsewhere = nothing();
  const queues = new SharedQueues(time, faults, (cluster) => shares.get(cluster) ?? elsewhere);
  for (const { name, uid } of members) {
    network.addCluster(name, uid);
    network.routes.set(`${name}.test`, { cluster: name, valid: true });
  }
  const busyOnes = members.slice(0, busy);
  const person = personOf(network);
  const run = async (work: Promise<unknown>): Promise<void> => {
    let ended = false;
    const finished = work.finally(() => (ended = true));
    await time.runUntil(time.elapsed() + MINUTE_MS, () => ended);
    await finished;
  };
  for (const [provider, some] of [
    [BUSY_PROVIDER, busyOnes],
    [IDLE_PROVIDER, members.slice(busy)],
  ] as const) {
    network.addCluster(provider, `d3000000-${provider}`);
    network.routes.set('provider.test', { cluster: provider, valid: true });
    const names = some.map(({ name }) => name);
    await run(setUp(network, person, names));
    for (const name of names) network.routes.set(`${name}-0.provider.test`, { cluster: provider, valid: true });
  }
  await time.runUntil(time.elapsed() + 3_000);
  await run(
    Promise.all(
      members.map(async ({ name }) => {
        const client = person.client(`${name}.test`);
        await client.create(resources.connections, connectionObject());
        const apis = ['widgets.example.org'];
        await client.create(resources.clusterBindings, bindingObject('ClusterBinding', { apis, adopt: false }));
      }),
    ),
  );
  const { table, asked } = countedTable(items);
  const resolver = {
    resolve: (reach: unknown) => Promise.resolve({ server: `https://${nameIn(reach)}.test` }),
    ingestKeys: () => Promise.resolve([]),
    forget: () => undefined,
  };
  const registry = new DynamoRegistry({ table, resolver, clock: time.clock(), cell: 'test' });
  const cell = new Cell({ time, faults, network, random, queues, registry, log: () => undefined }, members);
  cell.start('all');
  await time.runUntil(time.elapsed() + 2 * MINUTE_MS);
  const key = (name: string) => ({ namespace: 'team-a', name: `w-${name}` });
  await run(
    Promise.all(
      members.map(({ name }) =>
        person.client(`${name}.test`).create(widgets, {
          apiVersion: 'example.org/v1',
          kind: 'Widget',
          metadata: key(name),
          spec: { size: 0 },
        }),
      ),
    ),
  );
  await time.runUntil(time.elapsed() + SETTLING_MS);
  for (const { name, uid } of members) {
    const share = shares.get(uid) ?? elsewhere;
    const cluster = network.clusters.get(name);
    if (cluster !== undefined) count(cluster, () => (share.requests += 1));
  }
  const atProvider = { [IDLE_PROVIDER]: 0, [BUSY_PROVIDER]: 0 };
  for (const provider of [IDLE_PROVIDER, BUSY_PROVIDER] as const) {
    const cluster = network.clusters.get(provider);
    if (cluster !== undefined) count(cluster, () => (atProvider[provider] += 1));
  }
  for (const share of [...shares.values(), elsewhere]) Object.assign(share, nothing());
  queues.bySecond.fill(0);
  asked.count = 0;
  for (let minute = 1; minute <= minutes; minute += 1) {
    const edits = busyOnes.map(async ({ name }) => {
      const client = person.client(`${name}.test`);
      const { uid } = (await client.get(widgets, key(name))).metadata;
      const operations = [{ op: 'replace', path: '/spec/size', value: minute } as const];
      await client.patch(widgets, key(name), { read: { uid }, operations });
    });
    await time.runUntil(time.elapsed() + MINUTE_MS);
    await Promise.all(edits);
  }
  const sharesOf = (some: typeof members): Share => sum(some.flatMap(({ uid }) => shares.get(uid) ?? []));
  const idle = sharesOf(members.slice(busy));
  const lively = sharesOf(busyOnes);
  idle.requests += atProvider[IDLE_PROVIDER];
  lively.requests += atProvider[BUSY_PROVIDER];
  const cost = {
    idle: perHour(idle, members.length - busy, minutes),
    busy: perHour(lively, busy, minutes),
    tableRequests: Math.round((asked.count * 60) / minutes),
    refreshesBySecond: queues.bySecond.map((given) => given / (2 * minutes)),
    deadLetters: queues.dead.length,
  };
  await cell.stop();
  for (const cluster of network.clusters.values()) cluster.stop();
  forgetActors();
  return cost;
}

const nameIn = (reach: unknown): string => (reach as { readonly arn: string }).arn.split('/').at(-1) ?? '';

/** Adds that many clusters to a fleet's table, as an operator does. */
export async function registerClusters(table: FleetTable, clusters: number): Promise<void> {
  const admin = new FleetAdmin(table, systemClock);
  for (let index = 0; index < clusters; index += 1) {
    const name = `c${String(index).padStart(3, '0')}`;
    const uid = `b1000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
    const arn = `arn:aws:secretsmanager:eu-central-1:1:secret:kbind/test/kubeconfig/${name}`;
    await admin.add({ name, uid, reach: { type: 'secret', arn }, cell: 'test' });
  }
}
