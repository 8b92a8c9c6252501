import { isDeleting } from '../../model/crd.ts';
import { isError, KbindError } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { bindingIsReady, connectionIsReady, providerEpoch } from '../../model/may-act.ts';
import { done, wait, waitForDeletion, waitForPermission, type Outcome } from '../../model/outcome.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import { doneAsAbsent } from '../absent.ts';
import { addFinalizer, hasFinalizer } from '../object-writes.ts';
import { withReadAgain } from '../read-again.ts';
import {
  emptyReport,
  relatedRemarks,
  summary,
  withCollisions,
  withDenials,
  type RelatedReport,
} from '../related/report.ts';
import { routesOf, syncRelated, type RelatedResult } from '../related/sync.ts';
import type { Side, World } from '../world.ts';
import { announce } from './bound-by.ts';
import { nodes } from './chart.ts';
import { deleteBinding } from './delete.ts';
import {
  condition,
  conflictsCondition,
  droppedVersions,
  permissionCondition,
  remarks,
  whyNotReady,
  type NotReady,
} from './is-it-ready.ts';
import { shadowedApis } from './is-it-shadowed.ts';
import { processApis, type ApiResult } from './process-apis.ts';
import { apisLeft } from './what-is-left.ts';
import { boundApis, persist, wantedStatus } from './status.ts';
import { olderOf, readTarget, rewritten, type Pass, type Target } from './target.ts';

/** The ClusterBinding and Binding controllers: one flow (spec §4). */
export function reconcileBinding(world: World, request: ReconcileRequest): Promise<Outcome> {
  return withReadAgain(world, () => reconcile(world, request));
}

async function reconcile(world: World, request: ReconcileRequest): Promise<Outcome> {
  const { trace } = world;
  trace.step(nodes.start);
  trace.step(nodes.getBinding);
  const target = await readTarget(world, request);
  if (!trace.decide(nodes.exists, target !== undefined) || target === undefined) {
    return doneAsAbsent(world, 'the binding is gone');
  }
  if (isDeleting(target.binding)) return deleteBinding(world, target, request);
  refuseUnreadable(target);
  if (!hasFinalizer(target.binding, CLEANUP_FINALIZER)) return addOurFinalizer(world, target);
  return setUp(world, target);
}

/** A binding whose spec does not parse is never reconciled: people mend it, which is an event. */
function refuseUnreadable({ binding }: Target): void {
  if (binding.unreadable === undefined) return;
  throw new KbindError(
    'misconfigured',
    `${binding.kind} ${binding.metadata.name} cannot be read: ${binding.unreadable}`,
  );
}

/** Before anything else is made; the event of this write continues. */
async function addOurFinalizer(world: World, { ref, binding }: Target): Promise<Outcome> {
  const options = { signal: world.signal };
  await world.consumer.confirmIdentity(0);
  await addFinalizer(world.consumer.client, { ref, object: binding.raw }, CLEANUP_FINALIZER, options);
  return done('finalizer added');
}

async function setUp(world: World, target: Target): Promise<Outcome> {
  const { name } = target.binding.spec.connectionRef;
  const { value: connection, sentAt } = await world.reads.connection(name);
  if (!world.trace.decide(nodes.connection, connectionIsReady(connection)) || connection === undefined) {
    return setPending(world, target, connection, whyPending(name, connection));
  }
  const pass: Pass = { target, connection, belief: { sentAt: olderOf(sentAt, target.sentAt) } };
  const provider = await openProvider(world, pass);
  if (typeof provider === 'string') return setPending(world, target, connection, provider);

  const results = await processApis(world, pass, provider);
  for (const { api, state } of results) world.trace.step(nodes.schemas, `${api}: ${state}`);
  world.trace.step(nodes.counts);
  return conclude(world, { pass, provider, results });
}

function whyPending(name: string, connection: Connection | undefined): string {
  if (connection === undefined) return `Connection ${name} does not exist`;
  return connection.metadata.deletionTimestamp === undefined
    ? `Connection ${name} is not Ready: its own conditions say why`
    : `Connection ${name} is being deleted`;
}

async function setPending(
  world: World,
  target: Target,
  connection: Connection | undefined,
  message: string,
): Promise<Outcome> {
  world.trace.step(nodes.pending, message);
  const conditions = [
    condition('Ready', 'False', 'Pending', message),
    condition('Synced', 'Unknown', 'Pending', message),
  ];
  world.trace.step(nodes.status);
  await persist(world, target, wantedStatus(target, { conditions }, world.clock.now()), connection);
  return done('the Connection is not Ready');
}

/** The provider, or why there is none: the Connection's condition will say the same, and its readiness continues. */
async function openProvider(world: World, { connection }: Pass): Promise<Side | string> {
  try {
    const side = await world.providers.open(connection);
    world.trace.step(nodes.provider);
    return side;
  } catch (error) {
    if (!isError(error, 'credential', 'identity')) throw error;
    world.trace.step(nodes.provider, error.errorClass);
    return error.message;
  }
}

interface SetUp {
  readonly pass: Pass;
  readonly provider: Side;
  readonly results: readonly ApiResult[];
}

/** The lower half of the chart: from what became of the APIs to the persisted status. */
async function conclude(world: World, { pass, provider, results }: SetUp): Promise<Outcome> {
  const { trace } = world;
  const unready = whyNotReady(results);
  let related: RelatedResult | undefined;
  if (trace.decide(nodes.missing, unready?.reason === 'APINotExported')) trace.step(nodes.notExported);
  else if (trace.decide(nodes.waiting, unready !== undefined)) trace.step(nodes.pending, unready?.reason);
  else related = await relatedResources(world, pass, provider);
  const target = related === undefined ? pass.target : rewritten(pass.target, related.raw);
  const report = related?.report ?? emptyReport();
  const notReady = unready ?? whyRelatedNotReady(report);
  const conditions = [
    ...(notReady === undefined
      ? readyConditions([...(await remarksFor(world, pass, results)), ...relatedRemarks(target.binding, report)])
      : notReadyConditions(notReady)),
    withCollisions(conflictsCondition(results), report),
    withDenials(permissionCondition(results), report),
  ];
  const boundAPIs = boundApis(results, target.binding.status.boundAPIs);
  if (notReady === undefined) {
    await tellDropped(world, target, results);
    await announce(world, target, results, await believeAgain(world, pass));
  }
  trace.step(nodes.status);
  await persist(world, target, wantedStatus(target, { conditions, boundAPIs }, world.clock.now()), pass.connection);
  return whenAgain(results, report);
}

/** The two boxes before Ready. */
async function relatedResources(world: World, pass: Pass, provider: Side): Promise<RelatedResult | undefined> {
  const { target, connection } = pass;
  let related: RelatedResult | undefined;
  if (routesOf(target.binding).length === 0) {
    world.trace.step(nodes.related, 'none selected');
  } else {
    related = await syncRelated(world, { ...target, connection, provider, belief: pass.belief });
    world.trace.step(nodes.related, summary(related.report));
  }
  world.trace.step(nodes.conditions);
  return related;
}

/** An entry that cannot be asked for is not set up, whatever else is. */
const whyRelatedNotReady = ({ invalid }: RelatedReport): NotReady | undefined =>
  invalid.length === 0 ? undefined : { reason: 'Pending', message: invalid.join('; ') };

const notReadyConditions = ({ reason, message }: NotReady): ReturnType<typeof condition>[] => [
  condition('Ready', 'False', reason, message),
  condition('Synced', 'False', reason, message),
];

/** Once, when the binding turns Ready: the condition says it for as long as it lasts (L13). */
async function tellDropped(world: World, { binding }: Target, results: readonly ApiResult[]): Promise<void> {
  if (bindingIsReady(binding)) return;
  for (const sentence of droppedVersions(results)) {
    await world.events.normal(binding.raw, 'VersionsDropped', sentence);
  }
}

const readyConditions = (said: readonly string[]): ReturnType<typeof condition>[] => {
  const message = said.length === 0 ? 'the requested APIs are set up' : said.join('; ');
  return [
    condition('Ready', 'True', 'AsExpected', message),
    condition('Synced', 'True', 'AsExpected', 'the requested APIs are set up'),
  ];
};

async function remarksFor(world: World, { target }: Pass, results: readonly ApiResult[]): Promise<string[]> {
  const { binding } = target;
  const [clusterBindings, bindings] = await Promise.all([world.reads.clusterBindings(), world.reads.bindings()]);
  const lists = { clusterBindings: clusterBindings.value, bindings: bindings.value };
  return [...remarks(results, shadowedApis(binding, lists)), ...(await apisLeft(world, binding, lists))];
}

/** Setting up many APIs takes longer than a read is believed: the Connection must still be the same, and Ready. */
async function believeAgain(world: World, { connection }: Pass): Promise<Pass['belief']> {
  const { value, sentAt } = await world.reads.connection(connection.metadata.name);
  if (providerEpoch(value) === providerEpoch(connection) && connectionIsReady(value)) return { sentAt };
  throw new KbindError('stale', `Connection ${connection.metadata.name} changed while its APIs were set up`);
}

/** Most of what is waited for comes with an event or the 30-second refresh; these do not. */
function whenAgain(results: readonly ApiResult[], { waiting, denied }: RelatedReport): Outcome {
  const states = new Set(results.map(({ state }) => state));
  if (states.has('establishing')) return wait('the API server establishes a CRD', 1, 30);
  if (states.has('terminating')) return waitForDeletion('a CRD is being deleted');
  if (waiting) return waitForDeletion('a related copy or its namespace is on its way out');
  const deniedApis = results.some(({ denied: why }) => why !== undefined);
  if (states.has('forbidden') || deniedApis || denied.length > 0) return waitForPermission('a request is forbidden');
  return done(nodes.status);
}
