import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { KbindError } from '../../model/errors.ts';
import { checkReach, type Reach } from '../reach.ts';
import type { Activity, FleetMember } from '../registry.ts';

/**
 * The table: `id` is its only key. `cluster/UID` holds a cluster, so that a UID can be claimed once; `name/NAME` holds the UID
 * that has this name. Structured values are JSON texts.
 */
export type Item = Record<string, AttributeValue>;

export const clusterId = (uid: string): string => `cluster/${uid}`;
export const nameId = (name: string): string => `name/${name}`;

/** A cluster as the table has it. */
export interface StoredCluster extends FleetMember {
  readonly state: 'active' | 'removed';
  readonly reach: Reach;
  /** Secret with the key of a forwarder that sends through the webhook. */
  readonly ingestKeyArn?: string | undefined;
  readonly activity: Activity;
}

const text = (item: Item, name: string): string | undefined => item[name]?.S;
const number = (item: Item, name: string): number | undefined => {
  const value = item[name]?.N;
  return value === undefined ? undefined : Number(value);
};

/** UID of a cluster item; undefined for items of another kind. */
export const uidOf = (item: Item): string | undefined =>
  text(item, 'id')?.startsWith('cluster/') === true ? text(item, 'uid') : undefined;

export const isTombstone = (item: Item): boolean => text(item, 'state') === 'removed';

/** Reads an item. Throws class `misconfigured` with the cluster's name for one that somebody damaged. */
export function readItem(item: Item): StoredCluster {
  const uid = text(item, 'uid');
  const name = text(item, 'name');
  if (uid === undefined || name === undefined) throw new KbindError('misconfigured', 'a registry item has no name');
  const cell = text(item, 'cell');
  const ingestKeyArn = text(item, 'ingestKeyArn');
  return {
    name,
    uid,
    paused: item['paused']?.BOOL === true,
    state: isTombstone(item) ? 'removed' : 'active',
    reach: reachOf(item, name),
    labels: labelsOf(item),
    ...(cell === undefined ? {} : { cell }),
    ...(ingestKeyArn === undefined ? {} : { ingestKeyArn }),
    activity: activityOf(item),
  };
}

function reachOf(item: Item, name: string): Reach {
  try {
    return checkReach(JSON.parse(text(item, 'reach') ?? ''));
  } catch (error) {
    throw new KbindError('misconfigured', `cluster ${name}: ${(error as Error).message}`, {}, error);
  }
}

function labelsOf(item: Item): Readonly<Record<string, string>> {
  const labels = text(item, 'labels');
  return labels === undefined ? {} : (JSON.parse(labels) as Record<string, string>);
}

function activityOf(item: Item): Activity {
  const at = number(item, 'heartbeatAt');
  const optional = {
    heardAt: number(item, 'heardAt'),
    heartbeat: at === undefined ? undefined : { at, watches: number(item, 'watches') ?? 0 },
    sweptAt: number(item, 'sweptAt'),
    heldBy: text(item, 'heldBy'),
    sweepOwedSince: number(item, 'sweepOwedSince'),
  };
  const known = Object.entries(optional).filter(([, value]) => value !== undefined);
  return { since: number(item, 'since') ?? 0, ...Object.fromEntries(known) };
}
