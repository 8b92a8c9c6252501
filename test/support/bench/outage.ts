import { isDeepStrictEqual } from 'node:util';
import { keyOf, resources, type KubeObject } from '../../../lib/model/api.ts';
import { Cell } from '../../invariants/campaign/cell.ts';
import {
  bindingObject,
  connectionObject,
  personOf,
  setUp,
  widgets,
  type Person,
} from '../../invariants/campaign/setup.ts';
import { forgetActors, Network, type Away, type TestCluster } from '../faults/network.ts';
import { Faults } from '../faults/plan.ts';
import { seeded, type Random } from '../faults/random.ts';
import { takeOverProcess, VirtualTime } from '../faults/virtual-time.ts';
import { VirtualQueues } from '../queue/virtual-queue.ts';

export interface OutageOptions {
  readonly instances: number;
  readonly minutes: number;
  /** Edits of instances a second while the provider is away. */
  readonly editsPerSecond: number;
  readonly away: Away;
}

/** What an outage of a provider under load cost, and how it ended. */
export interface Outage {
  /** Attempts to reach the provider in each minute of the outage; those of the client's own retries among them. */
  readonly attemptsByMinute: readonly number[];
  /** Edits that were made meanwhile. */
  readonly edits: number;
  /** Seconds after the provider's return until every copy had the last spec; undefined: not within ten minutes. */
  readonly convergedAfterSeconds: number | undefined;
  readonly deadLetters: readonly string[];
}

const CONSUMER = { name: 'blue', uid: 'b1000000-0000-4000-8000-000000000001' };
const NAMESPACE = 'team-a';
const SETTLING_MS = 120_000;
const LONGEST_RETURN_MS = 600_000;

/** Chance that lets containers live. */
function warm(random: Random): Random {
  return { ...random, chance: () => false, fork: (name) => warm(random.fork(name)) };
}

/** Takes a provider away for some virtual minutes while its instances are edited. */
export async function simulateOutage(options: OutageOptions): Promise<Outage> {
  const random = warm(seeded(11));
  const time = new VirtualTime();
  using _taken = takeOverProcess(time, random.fork('process'));
  const faults = new Faults(random, { rate: 0, kinds: [], time, until: 0 });
  const network = new Network(time, faults, random);
  network.addCluster(CONSUMER.name, CONSUMER.uid);
  const provider = network.addCluster('provider', 'd3000000-0000-4000-8000-000000000003');
  for (const name of network.clusters.keys()) network.routes.set(`${name}.test`, { cluster: name, valid: true });
  const queues = new VirtualQueues(time, faults);
  const person = personOf(network);
  const ready = setUp(network, person, [CONSUMER.name]);
  await time.runUntil(1_000);
  await ready;
  await time.runUntil(3_000);
  const made = bind(person);
  await time.runUntil(4_000);
  await made;
  const cell = new Cell({ time, faults, network, random, queues, log: () => undefined }, [CONSUMER]);
  cell.start('all');
  await time.runUntil(30_000);
  const created = createAll(person, options.instances);
  await time.runUntil(SETTLING_MS);
  await created;

  const run = { person, provider, time };
  const during = await away(run, options);
  const convergedAfterSeconds = await untilConverged(run);
  // What was on its way to a dead letter would be one by now.
  await time.runUntil(time.elapsed() + LONGEST_RETURN_MS);
  const outage = { ...during, convergedAfterSeconds, deadLetters: queues.dead.map(({ body }) => body) };
  await cell.stop();
  for (const cluster of network.clusters.values()) cluster.stop();
  forgetActors();
  return outage;
}

interface Run {
  readonly person: Person;
  readonly provider: TestCluster;
  readonly time: VirtualTime;
}

async function bind(person: Person): Promise<void> {
  const consumer = person.client(`${CONSUMER.name}.test`);
  await consumer.create(resources.connections, connectionObject());
  await consumer.create(
    resources.clusterBindings,
    bindingObject('ClusterBinding', { apis: ['widgets.example.org'], adopt: false }),
  );
}

const nameOf = (index: number): string => `w-${String(index).padStart(4, '0')}`;

async function createAll(person: Person, instances: number): Promise<void> {
  const consumer = person.client(`${CONSUMER.name}.test`);
  for (let index = 0; index < instances; index += 1) {
    await consumer.create(widgets, {
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      metadata: { namespace: NAMESPACE, name: nameOf(index) },
      spec: { revision: 0 },
    });
  }
}

async function away(
  { person, provider, time }: Run,
  { minutes, editsPerSecond, away: how }: OutageOptions,
): Promise<Pick<Outage, 'attemptsByMinute' | 'edits'>> {
  const consumer = person.client(`${CONSUMER.name}.test`);
  const { items } = await meanwhile(time, consumer.list(widgets));
  const attemptsByMinute: number[] = [];
  const since = time.elapsed();
  let [counted, edits] = [provider.attempts, 0];
  provider.outage = how;
  for (const stream of provider.streams) {
    if (how === 'silent') stream.silence();
    else stream.reset();
  }
  for (let second = 1; second <= minutes * 60; second += 1) {
    for (let edit = 0; edit < editsPerSecond; edit += 1) {
      edits += 1;
      const edited = items[edits % items.length] as KubeObject;
      const operations = [{ op: 'add', path: '/spec/revision', value: edits }] as const;
      const read = { uid: edited.metadata.uid };
      await meanwhile(time, consumer.patch(widgets, keyOf(edited), { read, operations }));
    }
    await time.runUntil(since + second * 1000);
    if (second % 60 !== 0) continue;
    attemptsByMinute.push(provider.attempts - counted);
    counted = provider.attempts;
  }
  provider.outage = undefined;
  return { attemptsByMinute, edits };
}

/** People's requests take no time; what they wake goes on. */
async function meanwhile<T>(time: VirtualTime, request: Promise<T>): Promise<T> {
  await time.runUntil(time.elapsed() + 1);
  return request;
}

async function untilConverged({ person, time }: Run): Promise<number | undefined> {
  const since = time.elapsed();
  for (let seconds = 0; seconds * 1000 < LONGEST_RETURN_MS; seconds += 1) {
    if (await isConverged(person, time)) return seconds;
    await time.runUntil(since + (seconds + 1) * 1000);
  }
  return undefined;
}

async function isConverged(person: Person, time: VirtualTime): Promise<boolean> {
  const lists = [person.client(`${CONSUMER.name}.test`).list(widgets), person.client('provider.test').list(widgets)];
  const [sources, copies] = await meanwhile(time, Promise.all(lists));
  const specs = (items: readonly KubeObject[] = []): unknown =>
    Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec]));
  return isDeepStrictEqual(specs(sources?.items), specs(copies?.items));
}
