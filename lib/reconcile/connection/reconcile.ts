import { resources } from '../../model/api.ts';
import { isDeleting } from '../../model/crd.ts';
import { parseConnection, type Connection } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { done, wait, waitForProvider, type Outcome } from '../../model/outcome.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import { doneAsAbsent } from '../absent.ts';
import { hasFinalizer, setMarkers } from '../object-writes.ts';
import { withReadAgain } from '../read-again.ts';
import { tellNewlyExported } from '../tell-dependents.ts';
import type { Probe, World } from '../world.ts';
import { maintainAutoBinding } from './auto-bind.ts';
import { nodes } from './chart.ts';
import { deleteConnection } from './delete.ts';
import { announceSource, autoAdvice, discover, fallbackText, silentText, type Exports } from './discovery.ts';
import { renewHeartbeat } from './heartbeat.ts';
import { identifyProvider, unlessForbidden } from './provider.ts';
import { bringSchemas, type SchemasOutcome } from './schemas.ts';
import { holdSecret, recordSecretRef, secretRefRecord, whatIsWrongWithRef } from './secret.ts';
import { persist, writeChangedStatus, type Pass } from './status.ts';
import { conditionsFor, type Finding } from './what-was-found.ts';

/** The Connection controller (spec §2). */
export function reconcileConnection(world: World, request: ReconcileRequest): Promise<Outcome> {
  return withReadAgain(world, () => reconcile(world, request.name));
}

async function reconcile(world: World, name: string): Promise<Outcome> {
  const { trace } = world;
  trace.step(nodes.start);
  const { value: connection, sentAt } = await world.reads.connection(name);
  if (!trace.decide(nodes.exists, connection !== undefined) || connection === undefined) {
    return doneAsAbsent(world, 'the Connection is gone');
  }
  const pass: Pass = { connection, belief: { sentAt } };
  if (trace.decide(nodes.deleting, isDeleting(connection))) return deleteConnection(world, pass);
  if (!trace.decide(nodes.finalizer, hasFinalizer(connection, CLEANUP_FINALIZER))) return takeCharge(world, connection);
  return setUp(world, { ...pass, connection: await recordSecretRef(world, connection) });
}

/** Before anything else is made; the event of this write continues. With it goes the record: nothing is used before that. */
async function takeCharge(world: World, connection: Connection): Promise<Outcome> {
  world.trace.step(nodes.addFinalizer);
  await world.consumer.confirmIdentity(0);
  const target = { ref: resources.connections, object: connection.raw };
  const changes = { ...secretRefRecord(connection), finalizer: CLEANUP_FINALIZER };
  await setMarkers(world.consumer.client, target, changes, { signal: world.signal });
  return done('finalizer added');
}

async function setUp(world: World, pass: Pass): Promise<Outcome> {
  world.trace.step(nodes.secret);
  const refused = await unlessForbidden(() => holdSecret(world, pass), { identified: false });
  if (refused !== undefined) return concludeNotReady(world, pass.connection, refused);
  const wrongRef = whatIsWrongWithRef(pass.connection);
  if (wrongRef !== undefined) return concludeNotReady(world, pass.connection, wrongRef);
  const found = await identifyProvider(world, pass);
  if ('is' in found) return concludeNotReady(world, pass.connection, found);
  const connection = await pin(world, pass.connection, found);
  await renewHeartbeat(world, connection, found);
  return offer(world, connection, found);
}

/** Before anything is made in the name of either cluster. */
async function pin(world: World, connection: Connection, { side }: Probe): Promise<Connection> {
  const { remoteClusterUID, localClusterUID } = connection.status;
  if (remoteClusterUID !== undefined && localClusterUID !== undefined) return connection;
  world.trace.step(nodes.pin);
  return writeChangedStatus(world, connection, {
    remoteClusterUID: side.uid,
    localClusterUID: world.consumer.uid,
    conditions: conditionsFor({ is: 'identified' }),
  });
}

/** From discovery to Ready. A 403 on the way is a condition; other errors are retried. */
async function offer(world: World, connection: Connection, probe: Probe): Promise<Outcome> {
  const provider = probe.side;
  const exports = await unlessForbidden(() => discover(world, connection, provider), {
    identified: true,
    advice: autoAdvice(connection),
  });
  if ('is' in exports) return concludeNotReady(world, connection, exports);
  await announceSource(world, connection, exports);
  const settled = await unlessForbidden(
    async () => ({
      schemas: await bringSchemas(world, { connection, provider, exports }),
      remark: await maintainAutoBinding(world, { connection, provider, exports }),
    }),
    { identified: true },
  );
  if ('is' in settled) return concludeNotReady(world, connection, settled);
  return concludeReady(world, connection, { probe, exports, ...settled });
}

interface Offer {
  readonly probe: Probe;
  readonly exports: Exports;
  readonly schemas: SchemasOutcome;
  readonly remark: string | undefined;
}

async function concludeReady(world: World, connection: Connection, offer: Offer): Promise<Outcome> {
  const { exports, schemas } = offer;
  world.trace.step(nodes.ready);
  const after = await persist(world, connection, {
    activeSchemaSource: exports.source,
    exportedAPIs: exports.apis,
    exportsEmptySince: exports.emptySince,
    secretVersion: offer.probe.secretVersion,
    conditions: conditionsFor({ is: 'ready', message: readyMessage(offer), schemas: schemas.condition }),
  });
  await tellNewlyExported(world, connection, parseConnection(after));
  return schemas.unsettled ? wait('schemas are on their way', 2, 30) : done(nodes.status);
}

function readyMessage({ exports, remark }: Offer): string {
  const offered =
    exports.apis.length === 1 ? 'the provider exports 1 API' : `the provider exports ${exports.apis.length} APIs`;
  return [offered, exports.fellBack ? fallbackText : undefined, silentText(exports.silent), remark]
    .filter((text) => text !== undefined)
    .join('; ');
}

async function concludeNotReady(world: World, connection: Connection, finding: Finding): Promise<Outcome> {
  world.trace.step(nodes.notReady, finding.is);
  if (finding.is === 'another cluster') {
    await world.events.warn(connection.raw, 'ClusterIdentityChanged', finding.message);
  }
  await persist(world, connection, { conditions: conditionsFor(finding) });
  return finding.is === 'unreachable' ? waitForProvider(finding.message) : done(finding.is);
}
