import type { Network, TestCluster } from '../../support/faults/network.ts';
import type { Consumer } from './cell.ts';
import type { Monitor } from './monitor.ts';

/** One consumer beside its provider. */
export interface Scene {
  readonly network: Network;
  readonly cluster: TestCluster;
  readonly provider: TestCluster;
  readonly consumer: Consumer;
  readonly monitor: Monitor;
}
