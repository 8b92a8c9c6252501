import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { SYNCER_FINALIZER } from '../../../lib/model/markers.ts';
import { copyOf } from '../../../lib/reconcile/instance/what-to-apply.ts';
import { Cell } from '../../invariants/campaign/cell.ts';
import { CONNECTION, connectionObject, personOf, setUp, type Person } from '../../invariants/campaign/setup.ts';
import { forgetActors, Network, type TestCluster } from '../faults/network.ts';
import { Faults } from '../faults/plan.ts';
import { seeded, type Random } from '../faults/random.ts';
import { takeOverProcess, VirtualTime } from '../faults/virtual-time.ts';
import { VirtualQueues } from '../queue/virtual-queue.ts';
import type { QueueMessage, QueueName } from '../../../lib/queue/queues.ts';

export interface IdleOptions {
  /** Each of an API of its own. */
  readonly bindings: number;
  /** Spread over the APIs. */
  readonly instances: number;
  readonly minutes: number;
}

/** What some virtual minutes at rest cost, of one cluster. */
export interface Idle {
  readonly minutes: number;
  /** At both API servers, the forwarder's among them; a watch that is opened anew counts. */
  readonly requests: number;
  readonly writes: number;
  readonly byRequest: Readonly<Record<string, number>>;
  /** Beside the forwarder's heartbeats, and the tick that all clusters share. */
  readonly invocations: number;
  readonly messages: number;
  readonly heartbeats: number;
}

const CONSUMER = { name: 'blue', uid: 'b1000000-0000-4000-8000-000000000001' };
const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
/** Until everything is set up and the first sweeps are done; the backstop that follows writes counts once. */
const SETTLING_MS = 15 * 60_000;

const refOf = (index: number): ResourceRef => ({
  group: 'example.org',
  version: 'v1',
  resource: index === 0 ? 'widgets' : `widgets${index}`,
  kind: index === 0 ? 'Widget' : `Widget${index}`,
  namespaced: true,
});

/** Chance that lets containers live: what is counted is a warm function. */
function warm(random: Random): Random {
  return { ...random, chance: () => false, fork: (name) => warm(random.fork(name)) };
}

class CountingQueues extends VirtualQueues {
  sent = 0;
  heartbeats = 0;

  override send(name: QueueName, messages: readonly QueueMessage[]): number[] {
    const beats = messages.filter(({ body }) => body.includes('"type":"heartbeat"')).length;
    this.heartbeats += beats;
    this.sent += messages.length - beats;
    return super.send(name, messages);
  }
}

interface Counted {
  requests: number;
  writes: number;
  by: Record<string, number>;
}

/** Counts at the server what the product asks of it. */
function count({ server, name }: TestCluster, counted: Counted): void {
  const handle = server.handle.bind(server);
  server.handle = (request, response) => {
    const { actor, method = '', url = '' } = request as typeof request & { actor?: { readonly product: boolean } };
    if (actor?.product === true) {
      counted.requests += 1;
      if (WRITES.has(method)) counted.writes += 1;
      const what = `${name} ${method} ${url.split('?')[0] ?? ''}${url.includes('watch=true') ? ' watch' : ''}`;
      counted.by[what] = (counted.by[what] ?? 0) + 1;
    }
    return handle(request, response);
  };
}

/** Lets an installation with one cluster come to rest and counts what it then costs, on a virtual clock. */
export async function simulateIdle(options: IdleOptions): Promise<Idle> {
  const random = warm(seeded(7));
  const time = new VirtualTime();
  using _taken = takeOverProcess(time, random.fork('process'));
  const faults = new Faults(random, { rate: 0, kinds: [], time, until: 0 });
  const network = new Network(time, faults, random);
  network.addCluster(CONSUMER.name, CONSUMER.uid);
  network.addCluster('provider', 'd3000000-0000-4000-8000-000000000003');
  for (const name of network.clusters.keys()) network.routes.set(`${name}.test`, { cluster: name, valid: true });
  const queues = new CountingQueues(time, faults);
  const person = personOf(network);
  const ready = setUp(network, person, [CONSUMER.name]);
  await time.runUntil(1_000);
  await ready;
  // The API servers establish the CRDs.
  await time.runUntil(3_000);
  const made = makeAll(person, options);
  await time.runUntil(4_000);
  await made;
  const cell = new Cell({ time, faults, network, random, queues, log: () => undefined }, [CONSUMER]);
  cell.start('all');
  await time.runUntil(60_000);
  await layOut(person, options);
  await time.runUntil(SETTLING_MS);
  const counted: Counted = { requests: 0, writes: 0, by: {} };
  for (const cluster of network.clusters.values()) count(cluster, counted);
  const before = { invocations: cell.invocations, sent: queues.sent, heartbeats: queues.heartbeats };
  await time.runUntil(SETTLING_MS + options.minutes * 60_000);
  const heartbeats = queues.heartbeats - before.heartbeats;
  const idle = {
    minutes: options.minutes,
    requests: counted.requests,
    writes: counted.writes,
    byRequest: counted.by,
    invocations: cell.invocations - before.invocations - heartbeats,
    messages: queues.sent - before.sent,
    heartbeats,
  };
  await cell.stop();
  for (const cluster of network.clusters.values()) cluster.stop();
  forgetActors();
  return idle;
}

async function makeAll(person: Person, { bindings }: IdleOptions): Promise<void> {
  const provider = person.client('provider.test');
  const consumer = person.client(`${CONSUMER.name}.test`);
  for (let index = 1; index < bindings; index += 1) {
    const { resource, kind, group } = refOf(index);
    const [widgets] = (await provider.list(resources.crds)).items.filter(({ metadata }) =>
      metadata.name.startsWith('widgets'),
    );
    await provider.create(resources.crds, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${resource}.${group}`, labels: { 'core.kbind.io/exported': 'true' } },
      spec: { ...(widgets?.spec as object), names: { plural: resource, kind } },
    });
  }
  await consumer.create(resources.connections, connectionObject());
  for (let index = 0; index < bindings; index += 1) {
    const { resource, group } = refOf(index);
    await consumer.create(resources.clusterBindings, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: 'ClusterBinding',
      metadata: { name: `binding-${index}` },
      spec: { connectionRef: { name: CONNECTION }, apis: [{ name: `${resource}.${group}` }] },
    });
  }
}

/** Synced pairs as reconciles leave them. */
async function layOut(person: Person, { bindings, instances }: IdleOptions): Promise<void> {
  const consumer = person.client(`${CONSUMER.name}.test`);
  const provider = person.client('provider.test');
  const namespace = 'team-a';
  if (instances > 0)
    await provider.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (let index = 0; index < instances; index += 1) {
    const ref = refOf(index % bindings);
    const key = { namespace, name: `w-${index}` };
    const source = await consumer.create(ref, {
      apiVersion: 'example.org/v1',
      kind: ref.kind,
      metadata: { ...key, finalizers: [SYNCER_FINALIZER] },
      spec: { size: index },
    });
    const owner = { cluster: CONSUMER.uid, object: source.metadata.uid };
    await provider.create(ref, copyOf(source, { ref, key }, owner));
  }
}
