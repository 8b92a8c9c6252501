import type { Controller } from '../model/request.ts';
import { apiOf, clusterOf, type DeadEntry } from './entry.ts';

/** Which dead entries are meant; what is absent matches everything. */
export interface DeadFilter {
  /** UID of the consumer cluster. */
  readonly cluster?: string | undefined;
  readonly controller?: Controller | 'sweep' | undefined;
  /** `<plural>.<group>`. */
  readonly api?: string | undefined;
  readonly namespace?: string | undefined;
  /** A name; `*` stands for any text. */
  readonly name?: string | undefined;
  /** An error class, or a part of the message. */
  readonly error?: string | undefined;
  /** Seconds since the last failure, at least. */
  readonly olderThanSeconds?: number | undefined;
  /** Seconds since the last failure, at most. */
  readonly newerThanSeconds?: number | undefined;
  /** Message ids, or their beginnings. */
  readonly ids?: readonly string[] | undefined;
}

/** True when an entry is meant. Pure. */
export function matches(filter: DeadFilter, entry: DeadEntry, nowMs: number): boolean {
  const age = (nowMs - entry.lastFailure) / 1000;
  return (
    (filter.cluster === undefined || clusterOf(entry) === filter.cluster) &&
    matchesKey(filter, entry) &&
    (filter.error === undefined || matchesError(filter.error, entry)) &&
    (filter.olderThanSeconds === undefined || age >= filter.olderThanSeconds) &&
    (filter.newerThanSeconds === undefined || age <= filter.newerThanSeconds) &&
    (filter.ids === undefined || filter.ids.some((id) => entry.message.id.startsWith(id)))
  );
}

function matchesKey({ controller, api, namespace, name }: DeadFilter, entry: DeadEntry): boolean {
  const { request } = entry;
  if (controller === undefined && api === undefined && namespace === undefined && name === undefined) return true;
  if (request === undefined) return api !== undefined && namespace === undefined && apiOf(entry) === api;
  if (request.type === 'sweep') {
    const ofApi = api === undefined || (request.apis?.includes(api) ?? true);
    return (controller ?? 'sweep') === 'sweep' && ofApi && namespace === request.namespace && name === undefined;
  }
  return (
    (controller === undefined || request.controller === controller) &&
    (api === undefined || request.api === api) &&
    (namespace === undefined || request.namespace === namespace) &&
    (name === undefined || matchesName(name, request.name))
  );
}

function matchesName(pattern: string, name: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 'u').test(name);
}

const matchesError = (wanted: string, { error }: DeadEntry): boolean =>
  error.class === wanted || error.message.toLowerCase().includes(wanted.toLowerCase());

/** True when a filter names nothing: everything would be meant. */
export const isEmptyFilter = (filter: DeadFilter): boolean =>
  Object.values(filter).every((value) => value === undefined);
