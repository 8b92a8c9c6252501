/**
 * Everything that functions count, by name: alarms, the dashboard and docs/runbook.md are held to this list by a test. One
 * series for each without dimensions; those with dimensions have one more for each value. Clusters are no dimension: a
 * fleet of hundreds would pay for thousands of series; log lines name them.
 */
export const metricNames = {
  // Settling (lib/queue/settle.ts), by controller.
  Done: 'Work that needs nothing more.',
  Waiting: 'Work that waits for something: a deletion, a conflict, a refusal by permission.',
  Retried: 'Attempts that failed and are repeated.',
  Postponed: 'Work that was not started: no time left, or its cluster is left alone for a while.',
  Dropped: 'Messages of paused and removed clusters.',
  DeadLettered: 'Work that was given up, with its error and its trace.',
  SweepKeyFailed: 'Keys of a backstop that failed: the next backstop is their retry.',
  ReconcileFailed: 'Runs that ended in an error, by class of the error.',
  SyncLag: 'Milliseconds from the moment a message was sent until its work was done, without waits and retries.',
  // The batch loop.
  Malformed: 'Messages that could not be read, each a dead letter.',
  Unsettled: 'Messages that could not be settled: the queue delivers them again.',
  // The fleet.
  Ticked: 'Clusters that a tick asked a refresh of. None for minutes: the schedule stands still.',
  ClusterUnresolved: 'Clusters of the registry that cannot be reached or read.',
  ForwarderSilent: 'Forwarders that were not heard for three minutes.',
  ClusterHeldByAnother: 'Clusters that another installation holds.',
  ClusterHeld: 'Work of clusters that another installation holds: it waits.',
  RegistryFailed: 'Reads and notes for which the registry did not answer.',
  Heartbeat: 'Heartbeats of forwarders.',
  HeartbeatDropped: 'Heartbeats of clusters that are not known.',
  // The ingest webhook.
  IngestAccepted: 'Messages of signed requests that the queues took.',
  IngestFailed: 'Messages of signed requests that the queues did not take: the forwarder sends them again.',
  IngestRefused: 'Signed requests that were refused, by reason. A key that is wrong or a forwarder whose clock is.',
  // Refreshes and sweeps.
  Refreshed: 'Refreshes that were complete.',
  RefreshFailed: 'Refreshes that failed as a whole.',
  RefreshSkipped: 'Refreshes and keys of refreshes for which there was no time.',
  RefreshObjectFailed: 'Objects whose look in a refresh failed.',
  SweepEnqueued: 'Instances that a sweep found to need work, by reason.',
  BackstopFound:
    'Those of them that a ten-minute backstop found although an event should have: lost events, by reason.',
  SweepProviderLost: 'APIs whose comparison ended because the provider did not answer.',
  SweepApiFailed:
    'APIs that a sweep of several could not compare: each is swept again by itself, or by the next backstop.',
  CopiesWithoutSource: 'Provider copies of ours that no consumer object stands for. Nothing deletes them unasked.',
  CopiesLeftBehind: 'Provider copies that a drain had to leave.',
} as const;
export type MetricName = keyof typeof metricNames;

/** Few values each: every one is a series that is paid for. */
export interface MetricDimensions {
  readonly controller?: string;
  readonly class?: string;
  readonly reason?: string;
}
