import { jsonEqual } from '../../kube/json.ts';
import type { Belief } from '../../kube/types.ts';
import { resources, type KubeObject } from '../../model/api.ts';
import { mergeConditions, type WantedCondition } from '../../model/conditions.ts';
import { KbindError } from '../../model/errors.ts';
import { parseConnection, type Connection, type ConnectionStatus } from '../../model/kinds.ts';
import { isDeleting } from '../../model/crd.ts';
import { writeStatus } from '../object-writes.ts';
import { tellConnectionDependents } from '../tell-dependents.ts';
import type { World } from '../world.ts';
import { nodes } from './chart.ts';

/** A Connection as one run of the controller read it. */
export interface Pass {
  readonly connection: Connection;
  /** When the read that shows it was sent. */
  readonly belief: Belief;
}

/** What a run says in the status; everything else of it stays. An `undefined` member is taken away. */
export type StatusChange = {
  readonly [Field in Exclude<keyof ConnectionStatus, 'conditions'>]?: ConnectionStatus[Field] | undefined;
} & { readonly conditions: readonly WantedCondition[] };

/** The whole status as it should stand. */
export function wantedStatus(connection: Connection, change: StatusChange, nowMs: number): ConnectionStatus {
  const at = { generation: connection.metadata.generation ?? 0, nowMs };
  const conditions = mergeConditions(connection.status.conditions ?? [], change.conditions, at);
  const merged = { ...connection.status, ...change, conditions };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined)) as ConnectionStatus;
}

/** Writes the status where anything of it differs; answers with the Connection as it stands then. */
export async function writeChangedStatus(
  world: World,
  connection: Connection,
  change: StatusChange,
): Promise<Connection> {
  const wanted = wantedStatus(connection, change, world.clock.now());
  if (jsonEqual(connection.status, wanted)) return connection;
  const target = { ref: resources.connections, object: connection.raw };
  return parseConnection(await writeStatus(world.consumer.client, target, wanted, { signal: world.signal }));
}

/** Writes a changed status, then tells whom it concerns if they were not told of this state yet (design.md, rule 6). */
export async function persist(world: World, connection: Connection, change: StatusChange): Promise<KubeObject> {
  world.trace.step(nodes.status);
  const after = await writeChangedStatus(world, connection, change);
  return tellConnectionDependents(world, resources.connections, after);
}

/**
 * What a write that rests on "this Connection is there and not deleting" may rest on now: asking a provider takes longer
 * than a read is believed.
 * @throws KbindError `stale` when the Connection is no longer the one of this pass.
 */
export async function believeAgain(world: World, { connection }: Pick<Pass, 'connection'>): Promise<Belief> {
  const { name, uid } = connection.metadata;
  const { value, sentAt } = await world.reads.connection(name);
  if (value?.metadata.uid === uid && !isDeleting(value) && sameSpec(value, connection)) return { sentAt };
  throw new KbindError('stale', `Connection ${name} changed while its provider was asked`);
}

const sameSpec = (a: Connection, b: Connection): boolean => a.metadata.generation === b.metadata.generation;
