import type { ConnectionTarget } from '../kube/target.ts';

/**
 * Which consumer clusters this installation serves. Two adapters: a directory of kubeconfigs for local runs, DynamoDB for
 * deployed cells; one contract suite holds both.
 */

/** What was seen of a cluster. Epoch milliseconds, by our clock unless said otherwise. */
export interface Activity {
  /** Since when it is in the fleet. */
  readonly since: number;
  /** When its forwarder was heard last. */
  readonly heardAt?: number | undefined;
  /** What it said then. */
  readonly heartbeat?: Heartbeat | undefined;
  /** When a sweep over all its APIs was complete last. */
  readonly sweptAt?: number | undefined;
  /** Another installation holds the cluster, so this one stays out (design.md, rule 13): the condition that says who. */
  readonly heldBy?: string | undefined;
  /** It was resumed then, and the sweep that this owes it was not asked for yet (design.md, rule 14). */
  readonly sweepOwedSince?: number | undefined;
}

/** A cluster of the fleet. */
export interface FleetMember {
  /** The operator's name for it. */
  readonly name: string;
  /** UID of the consumer cluster: what messages name it by. */
  readonly uid: string;
  /** Messages of a paused cluster are dropped and counted (design.md, rule 14). */
  readonly paused: boolean;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The stage that serves it; absent where there is only one. */
  readonly cell?: string | undefined;
  readonly activity?: Activity | undefined;
}

/** A cluster that can be worked on. */
export interface FleetCluster extends FleetMember {
  /** How to reach it. */
  readonly target: ConnectionTarget;
  /** Changes when another way to reach it is registered, also one that leads to the same address. */
  readonly revision?: string | undefined;
}

export type Lookup =
  | { readonly found: 'cluster'; readonly cluster: FleetCluster }
  /** Every cluster of the registry is known, and it is none of them. */
  | { readonly found: 'unknown' }
  /** A tombstone, or another cell's now: late messages are dropped with a count (design.md, rule 13). */
  | { readonly found: 'removed' }
  /** Its UID could not be asked for yet, or its credentials cannot be read: look again. */
  | { readonly found: 'unresolved'; readonly reason: string };

export interface FleetListing {
  readonly clusters: readonly FleetMember[];
  /** Entries whose UID is not known yet, or that cannot be read, each with why. */
  readonly unresolved: readonly { readonly name: string; readonly reason: string }[];
}

export interface Heartbeat {
  /** Epoch milliseconds at the forwarder. */
  readonly at: number;
  readonly watches: number;
}

/** What became of a heartbeat. */
export type HeartbeatAnswer = 'recorded' | Exclude<Lookup['found'], 'cluster'>;

export interface FleetRegistry {
  list(): Promise<FleetListing>;
  /** Believed for at most 5 s per container (design.md, rule 9); nobody is called unknown or removed from memory. */
  lookup(uid: string): Promise<Lookup>;
  /** The forwarder of that cluster lives. Paused clusters' forwarders do as well. */
  heartbeat(uid: string, beat: Heartbeat): Promise<HeartbeatAnswer>;
  /** A sweep over all APIs of that cluster was complete at that time, epoch ms. */
  swept(uid: string, at: number): Promise<void>;
  /** The sweep that was owed since then is on its way; one that is owed since later stays owed. */
  sweepAsked(uid: string, owedSince: number): Promise<void>;
  /** Another installation holds that cluster, or (undefined) none does any more. */
  held(uid: string, by: string | undefined): Promise<void>;
  /** The cluster refused the credential, or another one answered at its address: what is remembered of it is read anew. */
  distrust(uid: string): void;
}

/** A forwarder that was not heard for longer is silent, ms (design.md, rule 12). */
export const SILENT_AFTER_MS = 180_000;

/** True when the forwarder of an active cluster has not been heard for three minutes, or never since the cluster is there. */
export const isSilent = ({ activity, paused }: FleetMember, now: number): boolean =>
  !paused && activity !== undefined && now - (activity.heardAt ?? activity.since) > SILENT_AFTER_MS;
