import { SQSClient } from '@aws-sdk/client-sqs';
import type { IngestKeyring } from '../fleet/ingest-keys.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import { systemClock, type Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import type { Queues } from '../queue/queues.ts';
import { createSqsQueues } from '../queue/sqs.ts';
import type { Config } from './config.ts';
import { createCounters, type Counters } from './counters.ts';
import { createFleet } from './fleet.ts';
import { createLogger } from './logging.ts';

/**
 * What every function has, whatever it does: nothing here speaks to a Kubernetes API, so that the functions that only count
 * clusters and take in keys start without those that do.
 */
export interface Container {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Counters;
  readonly sqs: SQSClient;
  readonly queues: Queues;
  readonly registry: FleetRegistry;
  readonly keyring: IngestKeyring;
  /** Ends all connections. */
  close(): void;
}

/** Parts that tests and the local runner put in place of the real ones. */
export type ContainerOverrides = Partial<
  Pick<Container, 'clock' | 'log' | 'metrics' | 'queues' | 'registry' | 'keyring'>
>;

/** Makes no request. */
export function createContainer(config: Config, overrides: ContainerOverrides = {}): Container {
  const clock = overrides.clock ?? systemClock;
  const sqs = createSqsClient(config);
  const fleet = createFleet(config, clock);
  return {
    config,
    clock,
    log: overrides.log ?? createLogger(config),
    metrics: overrides.metrics ?? createCounters(config),
    sqs,
    queues: overrides.queues ?? createSqsQueues(sqs, config.queueUrls),
    registry: overrides.registry ?? fleet.registry,
    keyring: overrides.keyring ?? fleet.keyring,
    close() {
      sqs.destroy();
      fleet.close();
    },
  };
}

/** The SDK finds credentials, and what is not configured, by its own rules. */
function createSqsClient({ region, sqsEndpoint }: Config): SQSClient {
  return new SQSClient({
    ...(region === undefined ? {} : { region }),
    ...(sqsEndpoint === undefined ? {} : { endpoint: sqsEndpoint }),
  });
}
