import { FleetAdmin } from '../fleet/dynamodb/admin.ts';
import { sendAll, type Queues } from '../queue/queues.ts';
import type { Clock } from '../model/clock.ts';
import type { Config } from './config.ts';
import { createFleetTable } from './fleet.ts';
import { resumeMessages } from './tick-handler.ts';

/** The operator's side of a fleet's table. Close it at the end. */
export function openFleetAdmin(
  config: Pick<Config, 'region' | 'endpoints'>,
  table: string,
  clock: Clock,
): { readonly admin: FleetAdmin; close(): void } {
  const opened = createFleetTable(config, table);
  return { admin: new FleetAdmin(opened.table, clock), close: () => opened.close() };
}

/**
 * Lets a paused cluster work again and asks for the sweep that this owes it, 8 s later (design.md, rule 14). It stays owed in
 * the table, so that the next tick asks as well: one sweep too many does no harm, none would lose what was dropped.
 * @returns false when the cluster was not paused
 */
export async function resumeCluster(
  name: string,
  { admin, queues, clock }: { readonly admin: FleetAdmin; readonly queues: Queues; readonly clock: Clock },
): Promise<boolean> {
  const resumed = await admin.resume(name);
  if (resumed === undefined) return false;
  await sendAll(queues, resumeMessages(resumed.uid, resumed.owedSince, clock.now()));
  return true;
}
