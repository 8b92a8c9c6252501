import { findCondition } from './conditions.ts';
import type { AnyBinding, Connection } from './kinds.ts';

/** When a Connection or binding may be acted on: the questions that several controllers ask in the same words. */

/** Ready, and not deleting: a Connection with a deletionTimestamp counts as not Ready everywhere (spec §2). */
export const connectionIsReady = (connection: Connection | undefined): connection is Connection =>
  connection !== undefined &&
  connection.metadata.deletionTimestamp === undefined &&
  findCondition(connection.status.conditions, 'Ready')?.status === 'True';

/**
 * The provider epoch (spec §2.8): the Secret's version together with the time at which Ready last turned True; empty while
 * not Ready. A watch or client of another epoch belongs to the past.
 */
export function providerEpoch(connection: Connection | undefined): string {
  if (!connectionIsReady(connection)) return '';
  const since = findCondition(connection.status.conditions, 'Ready')?.lastTransitionTime ?? '';
  return `${connection.status.secretVersion ?? ''}@${since}`;
}

/** Ready for the generation that was read, and not deleting (spec §4). */
export function bindingIsReady(binding: AnyBinding): boolean {
  const ready = findCondition(binding.status.conditions, 'Ready');
  return (
    binding.metadata.deletionTimestamp === undefined &&
    ready?.status === 'True' &&
    ready.observedGeneration === binding.metadata.generation
  );
}

/** True when the binding lists that `<plural>.<group>`. */
export const listsApi = (binding: AnyBinding, api: string): boolean =>
  binding.spec.apis.some(({ name }) => name === api);
