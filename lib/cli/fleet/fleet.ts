import type { FleetCluster, FleetMember, FleetRegistry } from '../../fleet/registry.ts';
import type { Reach } from '../../fleet/reach.ts';

/** A cluster as the operator wrote it down, whether it answers or not. */
export interface FleetEntry {
  readonly name: string;
  readonly paused: boolean;
  /** Known without asking it. */
  readonly uid?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly activity?: FleetMember['activity'];
  /** Why it cannot be asked at all: an unusable kubeconfig. */
  readonly problem?: string | undefined;
}

/** How to reach a cluster that is added. */
export type NewReach = { readonly kubeconfig: string } | Reach;

/** What is written down of a cluster that is added. */
export interface NewCluster {
  readonly name: string;
  /** What the cluster itself said. */
  readonly uid: string;
  readonly reach: NewReach;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Whereabouts of its webhook forwarder's key in Secrets Manager. */
  readonly ingestKeyArn?: string | undefined;
}

/** The fleet as an operator sees and changes it. Two adapters: a directory of kubeconfigs, and the table of a deployed cell. */
export interface Fleet {
  /** Where it is, for messages. */
  readonly place: string;
  /** All of them by name, without asking any. */
  entries(): Promise<readonly FleetEntry[]>;
  /**
   * A cluster that can be worked on, by name or UID.
   * @throws CliError `notFound`; KbindError when it does not answer, or its credentials cannot be read
   */
  open(nameOrUid: string, signal: AbortSignal): Promise<FleetCluster>;
  /** What dry runs look clusters up in. */
  readonly registry: FleetRegistry;
  /** Where a cluster would be found that is reached like this; for the preflight. */
  target(reach: NewReach): Promise<FleetCluster['target']>;
  add(cluster: NewCluster): Promise<void>;
  pause(name: string): Promise<void>;
  /** Answers with since when a sweep is owed that somebody must ask for; undefined where the cell sees to it, or was not paused. */
  resume(name: string): Promise<{ readonly uid: string; readonly owedSince: number } | undefined>;
  remove(name: string): Promise<void>;
  close(): void;
}
