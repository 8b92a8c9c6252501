import type { ConnectionTarget } from '../kube/target.ts';

/** Which consumer clusters this installation serves. The directory adapter is for local runs; DynamoDB comes later. */

export interface FleetCluster {
  /** The operator's name for it. */
  readonly name: string;
  /** UID of the consumer cluster: what messages name it by. */
  readonly uid: string;
  /** Messages of a paused cluster are dropped and counted (design.md, rule 14). */
  readonly paused: boolean;
  /** How to reach it. */
  readonly target: ConnectionTarget;
}

export type Lookup =
  | { readonly found: 'cluster'; readonly cluster: FleetCluster }
  /** Every cluster of the registry is known, and it is none of them. */
  | { readonly found: 'unknown' }
  /** A tombstone: late messages are dropped with a count (design.md, rule 13). */
  | { readonly found: 'removed' }
  /** It may be one whose UID could not be asked for yet: look again. */
  | { readonly found: 'unresolved'; readonly reason: string };

export interface FleetListing {
  readonly clusters: readonly FleetCluster[];
  /** Entries whose UID is not known yet, each with why. */
  readonly unresolved: readonly { readonly name: string; readonly reason: string }[];
}

export interface Heartbeat {
  /** Epoch milliseconds at the forwarder. */
  readonly at: number;
  readonly watches: number;
}

export interface FleetRegistry {
  list(): Promise<FleetListing>;
  lookup(uid: string): Promise<Lookup>;
  /** The forwarder of that cluster lives. */
  heartbeat(uid: string, beat: Heartbeat): Promise<void>;
}
