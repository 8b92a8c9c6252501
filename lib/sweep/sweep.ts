import type { KubeObject } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';
import { isDeleting } from '../model/crd.ts';
import type { Connection } from '../model/kinds.ts';
import { connectionIsReady } from '../model/may-act.ts';
import type { SweepCursor, SweepRequest } from '../model/request.ts';
import { instanceApi } from '../reconcile/instance/which-api.ts';
import type { BindingLists } from '../reconcile/instance/which-binding.ts';
import { readBindings } from '../reconcile/instance/work.ts';
import type { Side, World } from '../reconcile/world.ts';
import { writeCounts } from './binding-counts.ts';
import { compareApi, type PassResult } from './compare-api.ts';
import { leaveApart } from './left-apart.ts';
import { planFate, tidyPlan } from './done-plans.ts';
import type { SweptApi } from './needs-work.ts';
import { Outbox, type ReadBacklog } from './outbox.ts';
import { emptyTally, type Tally } from './tally.ts';

export interface SweepOptions {
  /** Epoch milliseconds by which the sweep should have stopped. */
  readonly deadline: number;
  /** How many keys of all clusters wait to be reconciled; absent: they are told however many that are. */
  readonly backlog?: ReadBacklog;
}

/** How a sweep that is not done goes on. */
export interface SweepRest {
  readonly request: SweepRequest;
  /** Seconds until then: its keys leave room for others'. */
  readonly afterSeconds: number;
}

/** The shortest pause that a queue knows. */
const CROWDED_SECONDS = 1;

/** What a whole sweep shares: read once, because it only decides which keys are looked at again. */
interface Sweep {
  readonly world: World;
  readonly request: SweepRequest;
  readonly outbox: Outbox;
  readonly lists: BindingLists;
  readonly connections: ReadonlyMap<string, Connection>;
  /** Opened once per Connection. */
  readonly opened: Map<string, Promise<Side | undefined>>;
  readonly outOfTime: () => boolean;
  readonly tallies: Map<string, Tally>;
}

/**
 * Compares both sides of APIs and enqueues the keys that need work (design.md, rule 10): all managed CRDs, bound or not,
 * or those that the request names. Only a tick's full sweep counts for the bindings' status and tidies plans.
 * @returns how it goes on, when its time was up or too many keys wait; undefined when it is done.
 * @throws KbindError for what makes the consumer's side unreadable: the sweep is then done again. What is wrong with one API of
 * several is left apart.
 */
export async function runSweep(
  world: World,
  request: SweepRequest,
  { deadline, backlog }: SweepOptions,
): Promise<SweepRest | undefined> {
  const [crds, connections, lists] = await Promise.all([
    world.reads.managedCrds(),
    world.reads.connections(),
    readBindings(world),
  ]);
  const outbox = new Outbox(world, request, backlog);
  const sweep: Sweep = {
    world,
    request,
    outbox,
    lists: lists.value,
    connections: new Map(connections.value.map((connection) => [connection.metadata.name, connection])),
    opened: new Map(),
    outOfTime: () => world.signal.aborted || world.clock.now() >= deadline,
    tallies: new Map(),
  };
  const cursor = await sweepApis(sweep, apisToSweep(crds.value, request));
  await outbox.flush();
  // Another cluster behind the address has nothing that needs work; what this sweep was to cover would be lost.
  await world.consumer.confirmIdentity(0);
  if (isBackstop(request)) await writeCounts(world, sweep.lists, sweep.tallies);
  world.log.info('swept', { sweep: request.id, enqueued: outbox.told, finished: cursor === undefined });
  if (cursor === undefined) return undefined;
  return { request: { ...request, cursor }, afterSeconds: outbox.crowded ? CROWDED_SECONDS : 0 };
}

/** A tick's sweep over everything. */
const isBackstop = ({ apis, namespace, retry }: SweepRequest): boolean =>
  apis === undefined && namespace === undefined && !retry;

/** The managed CRDs in question by name, from where the sweep goes on. */
function apisToSweep(crds: readonly KubeObject[], { apis, cursor }: SweepRequest): readonly KubeObject[] {
  return crds
    .filter(({ metadata: { name } }) => apis?.includes(name) ?? true)
    .filter(({ metadata: { name } }) => cursor === undefined || name >= cursor.api)
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

async function sweepApis(sweep: Sweep, crds: readonly KubeObject[]): Promise<SweepCursor | undefined> {
  for (const [index, crd] of crds.entries()) {
    const { name } = crd.metadata;
    if (index > 0 && (sweep.outOfTime() || sweep.outbox.crowded)) return { api: name };
    const from = sweep.request.cursor?.api === name ? sweep.request.cursor : undefined;
    try {
      const result = await sweepApi(sweep, crd, from);
      if (result !== undefined && 'cursor' in result) return { ...result.cursor, tally: result.tally };
      if (result !== undefined) await finishApi(sweep, crd, result.tally);
    } catch (thrown) {
      if (crds.length === 1) throw thrown;
      await leaveApart(sweep.world, sweep.request, { api: name, thrown });
    }
  }
  return undefined;
}

async function sweepApi(sweep: Sweep, crd: KubeObject, from: SweepCursor | undefined): Promise<PassResult | undefined> {
  const { world, request, outbox, outOfTime } = sweep;
  const swept = sweptApi(sweep, crd);
  if (swept === undefined || (request.namespace !== undefined && !swept.api.ref.namespaced)) return undefined;
  const provider = await providerOf(sweep, swept.connection);
  return compareApi({ world, swept, request, outbox, provider, outOfTime }, from, from?.tally ?? emptyTally);
}

/** What the API is compared by; a CRD that cannot be used must not stop the others. */
function sweptApi({ world, lists, connections }: Sweep, crd: KubeObject): SweptApi | undefined {
  try {
    const api = instanceApi(crd);
    return {
      api,
      cluster: world.cluster,
      lists,
      connection: connections.get(api.connection ?? ''),
      serverDate: world.consumer.client.serverDate(),
    };
  } catch (error) {
    if (!(error instanceof KbindError)) throw error;
    world.log.warn('API cannot be swept', { api: crd.metadata.name, error: error.message });
    return undefined;
  }
}

/** The provider to compare with; without one the consumer's side is swept alone, and that is said. */
function providerOf({ world, opened }: Sweep, connection: Connection | undefined): Promise<Side | undefined> {
  const name = connection?.metadata.name ?? '';
  const known = opened.get(name);
  if (known !== undefined) return known;
  const opening = openProvider(world, connection);
  opened.set(name, opening);
  return opening;
}

async function openProvider(world: World, connection: Connection | undefined): Promise<Side | undefined> {
  const name = connection?.metadata.name ?? 'none';
  if (connection === undefined || !(connectionIsReady(connection) || isDeleting(connection))) {
    world.log.info('sweep sees the consumer only: the Connection is not Ready', { connection: name });
    return undefined;
  }
  try {
    return await world.providers.open(connection);
  } catch (error) {
    if (!(error instanceof KbindError) || error.errorClass === 'aborted') throw error;
    world.log.warn('sweep sees the consumer only', { connection: name, error: error.message });
    world.metrics.count('SweepProviderLost', 1);
    return undefined;
  }
}

async function finishApi(sweep: Sweep, crd: KubeObject, tally: Tally): Promise<void> {
  const { world, request, outbox, connections } = sweep;
  if (!isBackstop(request)) return;
  sweep.tallies.set(crd.metadata.name, tally);
  const connection = connections.get(sweptConnection(crd));
  await tidyPlan(world, outbox, { crd, fate: planFate(crd, connection, tally.finalizers), retry: request.retry });
}

const sweptConnection = (crd: KubeObject): string => instanceApi(crd).connection ?? '';
