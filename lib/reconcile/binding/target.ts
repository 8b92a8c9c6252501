import { resources, type ResourceRef } from '../../model/api.ts';
import type { Instant } from '../../model/clock.ts';
import type { AnyBinding, BindingStatus, Connection } from '../../model/kinds.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import type { World } from '../world.ts';

/** The binding that a reconcile is about, as read; both kinds share one flow (spec §4). */
export interface Target {
  readonly ref: ResourceRef;
  readonly binding: AnyBinding;
  /** From when on what was read of the binding is believed. */
  readonly sentAt: Instant;
}

/** How people name a binding. */
export const nameOf = ({ kind, metadata }: AnyBinding): string =>
  metadata.namespace === undefined ? `${kind} ${metadata.name}` : `${kind} ${metadata.namespace}/${metadata.name}`;

/** The namespace that a Binding is confined to; undefined for a ClusterBinding, which acts everywhere. */
export const scopeOf = ({ kind, metadata }: AnyBinding): string | undefined =>
  kind === 'Binding' ? metadata.namespace : undefined;

/** Reads the binding that a request names, from the list that the whole batch shares. */
export async function readTarget(world: World, request: ReconcileRequest): Promise<Target | undefined> {
  const cluster = request.controller === 'clusterbinding';
  const { value, sentAt } = cluster
    ? await world.reads.clusterBindings()
    : await world.reads.bindings({ namespace: request.namespace ?? '' });
  const binding = value.find(({ metadata }) => metadata.name === request.name);
  if (binding === undefined) return undefined;
  return { ref: cluster ? resources.clusterBindings : resources.bindings, binding, sentAt };
}

/** The target after a write to its object. */
export function rewritten({ ref, binding, sentAt }: Target, raw: AnyBinding['raw']): Target {
  const status = (raw.status ?? {}) as BindingStatus;
  return { ref, sentAt, binding: { ...binding, metadata: raw.metadata, status, raw } };
}

/** The older of two moments, by the monotonic clock: a belief is as old as the oldest read under it. */
export const olderOf = (a: Instant, b: Instant): Instant => (a.mono <= b.mono ? a : b);

/** What the boxes of the chart work on once the Connection is known to be Ready. */
export interface Pass {
  readonly target: Target;
  readonly connection: Connection;
  /** The older of the reads of binding and Connection. */
  readonly belief: { readonly sentAt: Instant };
}
