import type { ObjectKey } from './api.ts';

/**
 * The identity of one piece of work. A request names a key, never carries an object or a command: whoever handles it
 * reads the world again, so it may be late, doubled or reordered (design.md, rule 1).
 */

export const controllers = ['connection', 'clusterbinding', 'binding', 'crd', 'instance'] as const;
export type Controller = (typeof controllers)[number];

/** Reconcile one key of one consumer cluster. Travels on control.fifo, or instances.fifo for instances. */
export interface ReconcileRequest {
  readonly v: 1;
  readonly type: 'reconcile';
  /** UID of the consumer cluster. */
  readonly cluster: string;
  readonly controller: Controller;
  /** `<plural>.<group>`; instances only. */
  readonly api?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** False only for keys that a tick's sweep enqueued: those start no chain of retries and leave no dead letter. */
  readonly retry: boolean;
  /** Failed attempts before this one. Waits do not count. */
  readonly attempt: number;
  /** Epoch milliseconds of the first failure of this chain. */
  readonly firstFailure?: number | undefined;
  /** Seconds that the last wait of this chain took. */
  readonly waited?: number | undefined;
}

/** The forwarder lives. Travels on control.fifo. */
export interface HeartbeatRequest {
  readonly v: 1;
  readonly type: 'heartbeat';
  readonly cluster: string;
  /** Epoch milliseconds at the forwarder. */
  readonly at: number;
  /** Watches that stand. */
  readonly watches: number;
}

/** A requeue under way: `work` holds it until it is due, then puts the key back into its group (design.md, rule 4). */
export interface DueRequest {
  readonly v: 1;
  readonly type: 'due';
  readonly request: ReconcileRequest;
  /** Epoch milliseconds. */
  readonly dueAt: number;
  /** Seconds that were asked for: decides the width of the bucket in which chains collapse. */
  readonly delaySeconds: number;
}

/** Where a sweep that ran out of time goes on. */
export interface SweepCursor {
  readonly api: string;
  /** Continue token of the consumer's list; absent at its start, `null` at its end. */
  readonly consumer?: string | null | undefined;
  readonly provider?: string | null | undefined;
  /** The last key that was compared: both lists go on after it. */
  readonly after?: string | undefined;
  /** What was counted of that API so far. */
  readonly tally?: SweepTally | undefined;
}

/** What a pass over one API has counted; travels in the cursor of a sweep that goes on. */
export interface SweepTally {
  /** Instances that carry our finalizer. */
  readonly finalizers: number;
  /** Instances and synced ones, by the UID of the binding that covers them. */
  readonly bindings: Readonly<Record<string, readonly [instances: number, synced: number]>>;
  /** False once a part was seen without the provider: how many are synced is not known then. */
  readonly bothSides: boolean;
}

/** Compare both sides of APIs and enqueue the keys that need work. Travels on work. */
export interface SweepRequest {
  readonly v: 1;
  readonly type: 'sweep';
  readonly cluster: string;
  /** `<plural>.<group>` each; absent: every managed CRD. */
  readonly apis?: readonly string[] | undefined;
  /** Keys of one namespace only. */
  readonly namespace?: string | undefined;
  /** Names this sweep in deduplication ids: carries the change that asked for it (design.md, rule 3). */
  readonly id: string;
  /** What the enqueued keys' `retry` is: false for a tick's sweep. */
  readonly retry: boolean;
  readonly cursor?: SweepCursor | undefined;
  /** Failed attempts before this one; absent is 0. */
  readonly attempt?: number | undefined;
  /** Epoch milliseconds of the first failure of this chain. */
  readonly firstFailure?: number | undefined;
  /** Seconds that the last wait of this chain took. */
  readonly waited?: number | undefined;
}

/** The 30-second refresh of one cluster's Connections, bindings and plans. Travels on work. */
export interface RefreshRequest {
  readonly v: 1;
  readonly type: 'refresh';
  readonly cluster: string;
  /** Names the half minute: deduplication ids of what it enqueues carry it. */
  readonly id: string;
}

export type WorkRequest = DueRequest | SweepRequest | RefreshRequest;
export type Request = ReconcileRequest | HeartbeatRequest | WorkRequest;

/** A first request for a key, as an event or a sweep makes it. */
export function reconcileRequest(
  cluster: string,
  controller: Controller,
  key: ObjectKey,
  extra: { readonly api?: string; readonly retry?: boolean } = {},
): ReconcileRequest {
  const { namespace, name } = key;
  return {
    v: 1,
    type: 'reconcile',
    cluster,
    controller,
    ...(extra.api === undefined ? {} : { api: extra.api }),
    ...(namespace === undefined || namespace === '' ? {} : { namespace }),
    name,
    retry: extra.retry ?? true,
    attempt: 0,
  };
}

/** The one line by which logs, groups and dead letters name a key. */
export function requestKey(request: ReconcileRequest): string {
  return [request.cluster, request.controller, request.api ?? '', request.namespace ?? '', request.name].join('|');
}
