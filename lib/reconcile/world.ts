import type { KubeObject, ObjectKey } from '../model/api.ts';
import type { Clock, Instant } from '../model/clock.ts';
import type { AnyBinding, Connection } from '../model/kinds.ts';
import type { Logger, Metrics } from '../model/log.ts';
import type { ReconcileRequest, SweepRequest } from '../model/request.ts';
import type { Trace } from '../model/trace.ts';
import type { KubeClient } from '../kube/types.ts';

/**
 * Everything that a reconcile may touch, as one argument. Built per message by lib/app; tests build it by hand around
 * wrapped clients.
 */
export interface World {
  /** UID of the consumer cluster that the message names. */
  readonly cluster: string;
  readonly consumer: Side;
  readonly providers: Providers;
  readonly reads: SharedReads;
  readonly tell: Tell;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly trace: Trace;
  /** Aborted when the invocation's time is up; a reconcile ends soon after, and its client's requests at once. */
  readonly signal: AbortSignal;
  /** Compile-time seam between consumer and provider keys (spec §7); identity by default, round-trip checked. */
  readonly mapper: Mapper;
  /** Who writes, for Events and Leases: `kbind-konnector`. */
  readonly component: string;
}

/** One cluster: a client whose every request goes to the cluster with this UID, as far as was last seen. */
export interface Side {
  readonly which: 'consumer' | 'provider';
  readonly uid: string;
  readonly client: KubeClient;
  /**
   * Makes sure that the cluster behind the client is still the one with `uid`: asks again unless the last answer is younger.
   * Throws class `identity` for another cluster and whatever a failed read throws.
   */
  confirmIdentity(maxAgeMs: number): Promise<void>;
}

/** Clients of provider clusters, made from vetted kubeconfigs only and cached per container by their bytes. */
export interface Providers {
  /**
   * A side for a Connection whose Secret and pinned `remoteClusterUID` are used; the identity is confirmed before the first
   * use. Throws class `credential` (Secret or key missing, unusable kubeconfig: message names the field), `identity`,
   * `forbidden`, or what the connection attempt threw.
   */
  open(connection: Connection): Promise<Side>;
  /** The same without a pin, for the Connection controller: answers with whatever identity the address has now. */
  probe(connection: Connection): Promise<Probe>;
}

export interface Probe {
  readonly side: Side;
  /** Hash of the Secret's uid and the kubeconfig's bytes (spec §2.8). */
  readonly secretVersion: string;
  /** Namespace of the kubeconfig's current context, if it names one: home of the heartbeat Lease. */
  readonly contextNamespace: string | undefined;
}

/** A value with the moment from which it may be believed for 5 s: when its request was sent. */
export interface Believed<T> {
  readonly value: T;
  readonly sentAt: Instant;
}

/**
 * What many keys share, cached for 2 s per container and cluster, and never older than the message that asks (design.md,
 * rule 9). `fresh` skips the cache and takes complete lists without resourceVersion, sent after it is asked for: for
 * irreversible decisions. Those who ask at the same time may share one.
 */
export interface SharedReads {
  connection(name: string): Promise<Believed<Connection | undefined>>;
  connections(options?: { readonly fresh?: boolean }): Promise<Believed<readonly Connection[]>>;
  clusterBindings(options?: { readonly fresh?: boolean }): Promise<Believed<readonly AnyBinding[]>>;
  /** Bindings of all namespaces, or of one. */
  bindings(options?: {
    readonly namespace?: string;
    readonly fresh?: boolean;
  }): Promise<Believed<readonly AnyBinding[]>>;
  /** Any consumer CRD by name, managed or not. */
  crd(name: string, options?: { readonly fresh?: boolean }): Promise<Believed<KubeObject | undefined>>;
  /** All consumer CRDs with the managed label. */
  managedCrds(options?: { readonly fresh?: boolean }): Promise<Believed<readonly KubeObject[]>>;
  secret(key: ObjectKey): Promise<Believed<KubeObject | undefined>>;
}

/** Puts work on the queues. Resolves only when the queue has acknowledged everything; throws otherwise. */
export interface Tell {
  /** `change` names the change that asks (uid and resourceVersion of the teller, a sweep's id): it goes into deduplication ids. */
  reconcile(requests: readonly ReconcileRequest[], change: string): Promise<void>;
  sweep(request: SweepRequest): Promise<void>;
}

/** Warning and Normal Events on consumer objects. Best effort: never throws. Same object, reason and message count up. */
export interface Events {
  warn(object: KubeObject, reason: string, message: string): Promise<void>;
  normal(object: KubeObject, reason: string, message: string): Promise<void>;
}

export interface Mapper {
  toProvider(api: string, key: ObjectKey): ObjectKey;
  toConsumer(api: string, key: ObjectKey): ObjectKey;
}

export const identityMapper: Mapper = { toProvider: (_api, key) => key, toConsumer: (_api, key) => key };

export { BELIEF_MARGIN_MS, BELIEF_MS } from '../model/belief.ts';
/** Nothing final is decided sooner than this after a deletionTimestamp, ms (spec §8). */
export const DELETION_GRACE_MS = 8_000;
/**
 * The oldest identity answer that a look at a Connection and the renewal of its Lease may rest on, ms. Spec §2.3 lets creates,
 * prunes and replacements of CRDs rest on it as well: here these ask anew, after the reads that they rest on.
 */
export const IDENTITY_MAX_AGE_MS = 10_000;
