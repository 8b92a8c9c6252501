import type { App } from '../../../lib/app/compose.ts';
import type { ReconcileRequest } from '../../../lib/model/request.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { reconcileMessage } from '../../../lib/queue/queues.ts';
import { Network, forgetActors } from '../../support/faults/network.ts';
import { MOST_LATE_MS } from '../../support/faults/bodies.ts';
import {
  allFaults,
  Faults,
  queueFaults,
  watchFaults,
  type Episode,
  type FaultKind,
} from '../../support/faults/plan.ts';
import { seeded, type Random } from '../../support/faults/random.ts';
import { takeOverProcess, VirtualTime } from '../../support/faults/virtual-time.ts';
import { eventOf, VirtualQueues } from '../../support/queue/virtual-queue.ts';
import { whatIsWrong } from './at-rest.ts';
import { Cell, composeFor, registryOf, startProcess, type Consumer, type Parts } from './cell.ts';
import { flavourOf, randomHistory, type Action } from './actions.ts';
import { perform } from './perform.ts';
import { Monitor } from './monitor.ts';
import { bindingsOf, instancesOf, objectsOf } from './seen.ts';
import { apis, personOf, setUp, type ApiName } from './setup.ts';

/** Everything that a run depends on. The same plan does the same, always. */
export interface Plan {
  readonly seed: number;
  readonly history: readonly Action[];
  /** Probability of a fault per request. */
  readonly rate: number;
  readonly kinds: readonly FaultKind[];
  /** Which backstops there are: the 30-second refresh always, the ten-minute sweeps or not (then events alone must do). */
  readonly ticks: 'all' | 'refresh';
  /** Kills the function that comes to the n-th await of all functions after that time. 0 only counts. */
  readonly crash?: { readonly afterMs: number; readonly atAwait: number };
  /** How long it takes until nothing happens any more. */
  readonly quietMs?: number;
}

/** What came of a run. */
export interface Result {
  readonly plan: Plan;
  readonly violations: readonly string[];
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly requests: number;
  readonly writes: number;
  readonly reconciles: number;
  readonly invocations: number;
  readonly deadLetters: number;
  readonly cutShort: number;
  /** Awaits of functions that were counted for {@link Plan.crash}. */
  readonly awaits: number;
  readonly log: readonly string[];
}

const CONSUMERS: readonly Consumer[] = [
  { name: 'blue', uid: 'b1000000-0000-4000-8000-000000000001' },
  { name: 'green', uid: 'c2000000-0000-4000-8000-000000000002' },
];
/** What comes to rest: retries of at most 300 s, deliveries that come back after 180 and 360 s, one backstop. */
const QUIET_MS = 21 * 60_000;
/** What follows a step is done by then, the first walks of a deletion among it; later there are only refreshes. */
const CRASH_WINDOW_MS = 14_000;
/** A watch that fell silent is noticed by then; one that failed has rested for the longest time that it rests. */
const SILENCE_MS = 240_000;
const RESTED_MS = 45_000;
/** An empty list of exports was seen twice by then, a minute apart. */
const EMPTY_TWICE_MS = 160_000;
/** A ten-minute sweep has passed by then. */
const BACKSTOP_MS = 630_000;
/** What a reconcile wrote has come back as events by then, and a 30-second refresh has looked. */
const LOOKED_MS = 40_000;
const FEW_KINDS = 4;
const FOCUSED_RATES = [0.1, 0.2, 0.3];
const FAULTS_OF_A_KIND: readonly (readonly FaultKind[])[] = [
  queueFaults,
  ['send-refused', 'send-partial', 'forwarder-killed'],
  ['other-cluster', 'plain-404', 'outage'],
  [...watchFaults, 'compacted', 'forwarder-killed'],
  ['killed', 'duplicate', 'reordered', 'late'],
];
const RATES = [0, 0.01, 0.03, 0.06, 0.12];

/** The plan of a seed. */
export function planOf(seed: number): Plan {
  const random = seeded(seed).fork('plan');
  const consumers = random.chance(0.5) ? CONSUMERS : CONSUMERS.slice(0, 1);
  const history = randomHistory(random.fork('history'), {
    actions: 4 + random.below(22),
    consumers: consumers.map(({ name }) => name),
    pauseMs: random.pick([100, 300, 3_000, 12_000]),
  });
  const kinds = faultKinds(random);
  const rate = random.pick(kinds.length <= FEW_KINDS ? FOCUSED_RATES : RATES);
  return { seed, history, rate, kinds, ticks: random.pick(['all', 'refresh', 'refresh']) };
}

/** All, many, those of one part, or a few kinds that then come often: what needs two of one kind in a row is found so. */
function faultKinds(random: Random): readonly FaultKind[] {
  if (random.chance(0.25)) return allFaults;
  if (random.chance(0.33)) return allFaults.filter(() => random.chance(0.6));
  if (random.chance(0.5)) return random.pick(FAULTS_OF_A_KIND);
  return Array.from({ length: 1 + random.below(FEW_KINDS) }, () => random.pick(allFaults));
}

function episodesOf(random: Random, until: number): Episode[] {
  return (['outage', 'other-cluster', 'expired-token'] as const).flatMap((kind) =>
    ['provider', 'blue', 'green'].flatMap((cluster) => {
      if (!random.chance(0.25)) return [];
      const from = random.below(until);
      return [{ kind, cluster, from, to: from + 500 + random.below(25_000) }];
    }),
  );
}

/** Runs a plan to its end and says what was not as it must be. */
export async function run(plan: Plan, options: { readonly verbose?: boolean } = {}): Promise<Result> {
  const random = seeded(plan.seed).fork('run');
  const time = new VirtualTime();
  using _taken = takeOverProcess(time, random.fork('process'));
  const end = (plan.history.at(-1)?.at ?? 0) + 15_000;
  const faults = new Faults(random.fork('faults'), { rate: plan.rate, kinds: plan.kinds, time, until: end });
  faults.episodes = episodesOf(random.fork('episodes'), end);
  const network = new Network(time, faults, random.fork('network'));
  const consumers = consumersOf(plan);
  for (const { name, uid } of consumers) network.addCluster(name, uid, random.below(1_000));
  network.addCluster('provider', 'd3000000-0000-4000-8000-000000000003');
  network.addCluster('impostor', 'e4000000-0000-4000-8000-000000000004');
  for (const name of network.clusters.keys()) network.routes.set(`${name}.test`, { cluster: name, valid: true });
  const log: string[] = [];
  const monitor = new Monitor(network, consumers);
  const counts = { reconciles: 0, awaits: 0 };
  const parts: Parts = {
    time,
    faults,
    network,
    random: random.fork('cell'),
    queues: new VirtualQueues(time, faults),
    crashes: crashOf(plan, time, counts),
    log(message, fields) {
      if (message === 'work settled' || message === 'work failed') counts.reconciles += 1;
      monitor.said(message, fields);
      if (options.verbose === true) log.push(`${Math.round(time.elapsed())} ${message} ${JSON.stringify(fields)}`);
    },
  };
  parts.queues.onSend = (body) => monitor.sent(body);
  const person = personOf(network);
  const done = setUp(
    network,
    person,
    consumers.map(({ name }) => name),
  );
  await time.runUntil(1_000);
  await done;
  const cell = new Cell(parts, consumers);
  cell.start(plan.ticks);
  const violations = await live({ plan, consumers, parts, cell, end, log, options, person, monitor });
  await cell.stop();
  for (const cluster of network.clusters.values()) {
    for (const stream of cluster.streams) stream.destroy();
    cluster.stop();
  }
  forgetActors();
  return {
    plan,
    violations,
    faults: faults.counts,
    requests: network.requests,
    writes: monitor.writes,
    reconciles: counts.reconciles,
    invocations: cell.invocations,
    deadLetters: parts.queues.dead.length,
    cutShort: cell.cutShort.size,
    awaits: counts.awaits,
    log,
  };
}

/** Only those that anything happens on: an idle one costs as much as any other. */
const consumersOf = ({ history }: Plan): readonly Consumer[] =>
  CONSUMERS.filter(({ name }) => history.some(({ consumer }) => consumer === name));

function crashOf({ crash }: Plan, time: VirtualTime, counts: { awaits: number }): (() => boolean) | undefined {
  if (crash === undefined) return undefined;
  return () => {
    if (time.elapsed() < crash.afterMs || time.elapsed() > crash.afterMs + CRASH_WINDOW_MS) return false;
    counts.awaits += 1;
    return counts.awaits === crash.atAwait;
  };
}

interface Life {
  readonly plan: Plan;
  readonly consumers: readonly Consumer[];
  readonly parts: Parts;
  readonly cell: Cell;
  readonly end: number;
  readonly log: string[];
  readonly options: { readonly verbose?: boolean };
  readonly person: ReturnType<typeof personOf>;
  readonly monitor: Monitor;
}

async function live(life: Life): Promise<string[]> {
  const { plan, consumers, parts, cell, end, monitor } = life;
  const { time, network } = parts;
  scheduleMischief(life);
  for (const action of plan.history) {
    await time.runUntil(action.at);
    if (life.options.verbose === true) life.log.push(`${Math.round(time.elapsed())} ### ${describeAction(action)}`);
    await perform({ network, person: life.person, cell, queues: parts.queues }, action);
  }
  await time.runUntil(end);
  const provider = network.clusters.get('provider');
  if (provider !== undefined) provider.away = false;
  network.clearTraps();
  network.lead(/\.provider\.test$/, 'provider');
  parts.queues.clearAims();
  cell.clearDoubles();
  if (life.options.verbose === true) life.log.push(`${Math.round(time.elapsed())} ### faults stop`);
  const quiet = end + (plan.quietMs ?? QUIET_MS);
  const silent = plan.rate > 0 && parts.faults.kinds.has('silent-watch');
  const backstop = plan.ticks === 'all' ? BACKSTOP_MS : 0;
  const followsExports = plan.history.some(followsEmptyExports) ? EMPTY_TWICE_MS : 0;
  const late = plan.rate > 0 && parts.faults.kinds.has('late-watch');
  const heard = late ? MOST_LATE_MS + RESTED_MS : silent ? SILENCE_MS : RESTED_MS;
  const noticed = end + Math.max(backstop, followsExports, heard);
  let lastWork = noticed;
  await time.runUntil(quiet, () => {
    if (!isAtRest(life)) lastWork = Math.max(lastWork, time.elapsed());
    return time.elapsed() > lastWork + LOOKED_MS;
  });
  await time.runUntil(quiet + 120_000, () => !cell.busy);
  cell.stopped = true;
  const found = [
    ...monitor.violations,
    ...whatIsWrong(network, consumers, monitor, cell.cutShort),
    ...deadLetterProblems(parts),
  ];
  return found.length > 0 ? found : [...(await secondLook(life)), ...monitor.violations];
}

/** A Connection that has to tell an empty list from one that failed. */
function followsEmptyExports({ what, value }: Action): boolean {
  const { source, autoBind } = flavourOf(value);
  return what === 'auto bind' || (what.endsWith('create connection') && (autoBind || source === 'Auto'));
}

/** Nothing is under way but refreshes. */
function isAtRest({ parts: { queues }, cell }: Life): boolean {
  const waiting = [queues.control, queues.instances, queues.work].flatMap(({ held }) => held);
  return (
    !cell.busy && waiting.every(({ body }) => body.includes('"type":"refresh"') || body.includes('"type":"heartbeat"'))
  );
}

/** What a dead letter may be of: something that crashed five times, or failed ten times. Nothing here is refused for what it is. */
function deadLetterProblems({ queues }: Parts): string[] {
  return queues.dead.filter(({ from }) => from === 'settled').map(({ body }) => `a dead letter: ${body.slice(0, 700)}`);
}

function scheduleMischief({ parts, consumers, end, cell }: Life): void {
  const { time, faults, network } = parts;
  for (const consumer of consumers) {
    if (faults.active && faults.kinds.has('forwarder-killed') && faults.random.chance(0.4)) {
      time.after(faults.random.below(end), () => {
        faults.count('forwarder-killed');
        cell.killForwarder(consumer.name);
      });
    }
  }
  for (const cluster of network.clusters.values()) {
    if (!faults.active || !faults.kinds.has('compacted') || !faults.random.chance(0.4)) continue;
    time.after(faults.random.below(end), () => {
      faults.count('compacted');
      cluster.world.store.compact();
    });
  }
}

/** Lines 5 and 6: one more reconcile of every key, in a process that remembers nothing, writes nothing. */
async function secondLook({ parts, consumers, monitor }: Life): Promise<string[]> {
  const process = startProcess(parts, 'second-look');
  const sent = { send: () => Promise.resolve(), backlog: () => Promise.resolve(0) };
  const app = composeFor(parts, process, { registry: registryOf(consumers), queues: sent });
  monitor.watched.length = 0;
  const looking = lookAgain(app, parts, consumers);
  let looked = false;
  const settled = looking.finally(() => (looked = true));
  await parts.time.runUntil(parts.time.elapsed() + 600_000, () => looked);
  await settled;
  await app.close();
  const writes = monitor.watched.filter(
    (line) => line.startsWith(process.name) && !/ (coordination\.k8s\.io\/leases|\/events) /.test(line),
  );
  return writes.map((line) => `a second reconcile wrote: ${line}`);
}

async function lookAgain(app: App, parts: Parts, consumers: readonly Consumer[]): Promise<void> {
  for (const request of everyKey(parts, consumers)) {
    const { queue, message } = reconcileMessage(request, 'second look');
    const held = {
      id: 'look',
      body: message.body,
      group: message.group,
      sentAt: Math.floor(parts.time.now()),
      visibleAt: 0,
      receives: 1,
      firstReceivedAt: undefined,
      inFlight: true,
    };
    const handler = queue === 'instances' ? app.handlers.instances : app.handlers.control;
    await handler(eventOf([held]), { getRemainingTimeInMillis: () => 30_000 });
  }
}

function everyKey({ network }: Parts, consumers: readonly Consumer[]): ReconcileRequest[] {
  return consumers.flatMap(({ name, uid }) => {
    const cluster = network.clusters.get(name);
    if (cluster === undefined) return [];
    const connections = objectsOf(cluster, 'core.kbind.io', 'connections').map(({ metadata }) =>
      reconcileRequest(uid, 'connection', metadata),
    );
    const bindings = bindingsOf(cluster).map((binding) =>
      reconcileRequest(uid, binding.kind === 'ClusterBinding' ? 'clusterbinding' : 'binding', binding.metadata),
    );
    const crds = (Object.keys(apis) as ApiName[]).filter((api) =>
      objectsOf(cluster, 'apiextensions.k8s.io', 'customresourcedefinitions').some(
        ({ metadata }) => metadata.name === api,
      ),
    );
    const instances = crds.flatMap((api) =>
      instancesOf(cluster, api).map(({ metadata }) => reconcileRequest(uid, 'instance', metadata, { api })),
    );
    return [
      ...connections,
      ...bindings,
      ...crds.map((api) => reconcileRequest(uid, 'crd', { name: api })),
      ...instances,
    ];
  });
}

export const describeAction = ({ at, what, consumer, api, key, value }: Action): string =>
  `${at} ms ${consumer} ${what} ${api} ${key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`} (${value})`;
