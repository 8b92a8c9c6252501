import { instant } from '../model/clock.ts';
import { keyOf, keyText, resources, type KubeObject, type ObjectKey, type ResourceRef } from '../model/api.ts';
import { findCondition, type Condition } from '../model/conditions.ts';
import { KbindError, toKbindError } from '../model/errors.ts';
import type { Outcome } from '../model/outcome.ts';
import type { ReconcileRequest } from '../model/request.ts';
import { Trace, type TraceStep } from '../model/trace.ts';
import type { FleetCluster, Lookup } from '../fleet/registry.ts';
import { WouldWrite } from '../kube/dry-run.ts';
import type { KubeClient } from '../kube/types.ts';

import { chainKey, errorRecord, type ChainedRequest } from '../queue/dead-letters.ts';
import type { Finding, Prospect } from '../replay/examine.ts';
import { dryRunWorld, WouldTell } from '../reconcile/dry-run.ts';
import { nodes as instanceNodes } from '../reconcile/instance/chart.ts';
import { instanceApi } from '../reconcile/instance/which-api.ts';
import { interceptClient } from '../reconcile/intercept-client.ts';
import type { Side, World } from '../reconcile/world.ts';
import { differences, type Difference } from './differences.ts';
import type { Engine } from './engine.ts';

/** What a reconcile of one key would do now, and how it comes to that. */
export interface Explanation {
  readonly request: ReconcileRequest;
  /** The one line that names the key. */
  readonly key: string;
  readonly finding: Finding;
  /** The path through the flowchart, with the answer at every node. */
  readonly trace: readonly TraceStep[];
  /** Whether the object is there; undefined where that could not be read. */
  readonly exists: boolean | undefined;
  /** The first write that it would make; what follows depends on its answer. */
  readonly write?: PlannedWrite | undefined;
  /** Events of the object, the latest first. */
  readonly events: readonly EventNote[];
}

export interface PlannedWrite {
  readonly verb: WouldWrite['verb'];
  readonly side: 'consumer' | 'provider';
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly object: string;
  /** What it would change, as the server itself says; contents of Secrets masked. */
  readonly diff: readonly Difference[];
  /** Why the server could not say. */
  readonly refused?: string | undefined;
}

export interface EventNote {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** RFC 3339. */
  readonly last: string;
}

export interface ExplainOptions {
  readonly signal: AbortSignal;
}

const MAX_EVENTS = 20;
const silentVisit = { enterConsumer: () => 0, guard: <T>(providers: T): T => providers, succeeded() {}, failed() {} };

/** What a lookup of the registry means for work of that cluster. */
function prospectOf(lookup: Lookup): Finding | undefined {
  switch (lookup.found) {
    case 'cluster':
      return undefined;
    case 'unknown':
      return { prospect: 'cluster-unknown', detail: 'the fleet knows no such cluster' };
    case 'removed':
      return { prospect: 'cluster-removed', detail: 'the cluster was removed from the fleet' };
    case 'unresolved':
      return { prospect: 'unresolved', detail: lookup.reason };
    default:
      throw new KbindError('internal', 'a registry answered with something else');
  }
}

/** Does something in a world of that cluster in which nothing can be written. */
function inDryWorld<T>(
  engine: Engine,
  cluster: FleetCluster,
  { signal, trace }: ExplainOptions & { readonly trace: Trace },
  use: (world: World) => Promise<T>,
): Promise<T> {
  const arrived = instant(engine.clock);
  const occasion = { sentAt: arrived.wall, arrived, signal, trace, log: engine.log, visit: silentVisit };
  return engine.inWorld(cluster, occasion, (world) => use(goingOn(dryRunWorld(world))));
}

/**
 * Before the first apply, a patch of `managedFields` alone changes who owns what and nothing that anybody sees. It is only
 * tried, so that the explanation comes to the apply behind it.
 */
function goingOn(world: World): World {
  const { providers } = world;
  const pastOwnership = (side: Side): Side => ({
    which: side.which,
    uid: side.uid,
    client: tryingOwnership(side.client),
    confirmIdentity: (maxAgeMs) => side.confirmIdentity(maxAgeMs),
  });
  return {
    ...world,
    providers: {
      open: async (connection) => pastOwnership(await providers.open(connection)),
      probe: (connection) => providers.probe(connection),
    },
  };
}

function tryingOwnership(client: KubeClient): KubeClient {
  return {
    ...interceptClient(client, (_call, send) => send()),
    patch: (ref, key, change, options) => {
      const ownership = change.operations.every(({ path }) => path.startsWith('/metadata/managedFields'));
      return client.patch(ref, key, change, ownership ? { ...options, belief: undefined, dryRun: true } : options);
    },
  };
}

/** See {@link App.inspect}. */
export async function inspect<T>(
  engine: Engine,
  uid: string,
  { signal }: ExplainOptions,
  use: (world: World) => Promise<T>,
): Promise<T> {
  const lookup = await engine.registry.lookup(uid);
  if (lookup.found === 'cluster') return inDryWorld(engine, lookup.cluster, { signal, trace: new Trace() }, use);
  throw new KbindError('absent', prospectOf(lookup)?.detail ?? lookup.found);
}

/** See {@link App.explain}. */
export async function explain(
  engine: Engine,
  request: ReconcileRequest,
  { signal }: ExplainOptions,
): Promise<Explanation> {
  const trace = new Trace();
  const blank = { request, key: chainKey(request), events: [], exists: undefined };
  try {
    const lookup = await engine.registry.lookup(request.cluster);
    if (lookup.found !== 'cluster') {
      return { ...blank, trace: [], finding: prospectOf(lookup) ?? failing(new KbindError('internal', lookup.found)) };
    }
    const explained = await inDryWorld(engine, lookup.cluster, { signal, trace }, (world) =>
      explainIn(engine, world, request),
    );
    return { ...blank, ...explained, trace: trace.steps };
  } catch (thrown) {
    return { ...blank, trace: trace.steps, finding: failing(toKbindError(thrown)) };
  }
}

/** For dead letters: what {@link explain} finds, in one line. */
export async function examine(engine: Engine, request: ChainedRequest, options: ExplainOptions): Promise<Finding> {
  try {
    const lookup = await engine.registry.lookup(request.cluster);
    const elsewhere = prospectOf(lookup);
    if (elsewhere !== undefined) return elsewhere;
    if (lookup.found === 'cluster' && lookup.cluster.paused) {
      return { prospect: 'cluster-paused', detail: 'work of a paused cluster is dropped; resuming it sweeps' };
    }
    if (request.type === 'sweep')
      return { prospect: 'sweep', detail: 'what it would find is not known before it runs' };
    return (await explain(engine, request, options)).finding;
  } catch (thrown) {
    const { message } = errorRecord(toKbindError(thrown));
    return { prospect: 'unresolved', detail: `the fleet registry does not answer: ${message}` };
  }
}

function failing(error: KbindError): Finding {
  const { class: errorClass, message } = errorRecord(error);
  return { prospect: 'failing', detail: `${errorClass}: ${message}` };
}

type Ended =
  { readonly outcome: Outcome } | { readonly stopped: WouldWrite | WouldTell } | { readonly error: KbindError };

async function explainIn(
  engine: Engine,
  world: World,
  request: ReconcileRequest,
): Promise<Pick<Explanation, 'finding' | 'exists' | 'write' | 'events'>> {
  const ended = await runDry(engine, world, request);
  const object = await objectOf(world, request).catch((error: unknown) => toKbindError(error));
  const known = object instanceof KbindError ? undefined : object;
  const exists = object instanceof KbindError ? undefined : object !== undefined;
  const finding = findingOf(ended, { exists, object: known, steps: world.trace.steps });
  const events = known === undefined ? [] : await eventsOf(world, known);
  if (!('stopped' in ended) || !(ended.stopped instanceof WouldWrite)) return { finding, exists, events };
  return { finding, exists, events, write: await planned(world, ended.stopped) };
}

async function runDry(engine: Engine, world: World, request: ReconcileRequest): Promise<Ended> {
  try {
    return { outcome: await engine.controllers.reconcile[request.controller](world, request) };
  } catch (thrown) {
    if (thrown instanceof WouldWrite || thrown instanceof WouldTell) return { stopped: thrown };
    return { error: toKbindError(thrown) };
  }
}

interface Seen {
  readonly exists: boolean | undefined;
  readonly object: KubeObject | undefined;
  readonly steps: readonly TraceStep[];
}

function findingOf(ended: Ended, seen: Seen): Finding {
  if ('error' in ended) return failing(ended.error);
  if ('stopped' in ended) return { prospect: 'would-act', detail: ended.stopped.message };
  const { type, reason } = ended.outcome;
  return { prospect: type === 'wait' ? 'waiting' : whatDoneMeans(seen), detail: reason };
}

/** A reconcile that ends without a write either found everything as it should be, or nothing that it may do. */
function whatDoneMeans({ exists, object, steps }: Seen): Prospect {
  if (exists === false) return 'gone';
  const { conditions } = (object?.status ?? {}) as { readonly conditions?: readonly Condition[] };
  const ready = object?.apiVersion.startsWith(`${resources.connections.group}/`)
    ? findCondition(conditions, 'Ready')?.status === 'True'
    : object?.kind === resources.crds.kind || steps.some(({ node }) => node === instanceNodes.status);
  return ready ? 'healed' : 'idle';
}

async function objectOf(world: World, request: ReconcileRequest): Promise<KubeObject | undefined> {
  const ref = await refOf(world, request);
  const { namespace, name } = request;
  const key: ObjectKey = namespace === undefined ? { name } : { namespace, name };
  return ref === undefined ? undefined : world.consumer.client.find(ref, key, { signal: world.signal });
}

async function refOf(world: World, { controller, api }: ReconcileRequest): Promise<ResourceRef | undefined> {
  switch (controller) {
    case 'connection':
      return resources.connections;
    case 'clusterbinding':
      return resources.clusterBindings;
    case 'binding':
      return resources.bindings;
    case 'crd':
      return resources.crds;
    case 'instance': {
      const { value: crd } = await world.reads.crd(api ?? '');
      return crd === undefined ? undefined : instanceApi(crd).ref;
    }
    default:
      throw new KbindError('internal', 'no such controller');
  }
}

async function planned({ consumer }: World, stopped: WouldWrite): Promise<PlannedWrite> {
  const { verb, api, key, host } = stopped;
  const side = host === consumer.client.host ? 'consumer' : 'provider';
  const write = { verb, side, api, object: keyText(key) } as const;
  try {
    const { before, after } = await stopped.preview();
    return { ...write, diff: differences(before, after) };
  } catch (thrown) {
    return { ...write, diff: [], refused: errorRecord(toKbindError(thrown)).message };
  }
}

/** Best effort: an explanation without them is one as well. */
async function eventsOf({ consumer, signal }: World, object: KubeObject): Promise<readonly EventNote[]> {
  const { namespace = 'default' } = keyOf(object);
  const fieldSelector = `involvedObject.uid=${object.metadata.uid}`;
  try {
    const { items } = await consumer.client.list(resources.events, { namespace, fieldSelector, signal, limit: 100 });
    return items
      .map(noteOf)
      .sort((a, b) => (a.last < b.last ? 1 : -1))
      .slice(0, MAX_EVENTS);
  } catch (thrown) {
    const { errorClass, message } = toKbindError(thrown);
    return [{ type: 'Warning', reason: 'EventsUnread', message: `${errorClass}: ${message}`, count: 1, last: '' }];
  }
}

function noteOf(event: KubeObject): EventNote {
  const {
    type = '',
    reason = '',
    message = '',
    count = 1,
    lastTimestamp = '',
  } = event as Partial<Record<'type' | 'reason' | 'message' | 'lastTimestamp', string> & { count: number }>;
  return { type, reason, message, count, last: lastTimestamp };
}
