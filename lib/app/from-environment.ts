import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { readConfig, type Config } from './config.ts';
import { createContainer, type Container } from './container.ts';
import { createIngestHandler, type IngestHandler } from './ingest-handler.ts';
import { createTickHandler, type TickHandler } from './tick-handler.ts';

/** One per configuration and process: warm invocations share connections and caches. */
const containers = new Map<string, Container>();

/**
 * The container that the environment asks for, made at the first event. A local runner may start again in the same process
 * with another environment: then it is another one.
 * @throws KbindError class `misconfigured` that names every problem of the configuration at once
 */
export function containerFromEnvironment(): Container {
  const config: Config = readConfig();
  const key = JSON.stringify(config);
  const container = containers.get(key) ?? createContainer(config);
  containers.set(key, container);
  return container;
}

/** The function that asks for refreshes and sweeps. */
export const tickFromEnvironment = (): TickHandler => createTickHandler(containerFromEnvironment());

/** The function that takes in signed keys. */
export function ingestFromEnvironment(): IngestHandler {
  const container = containerFromEnvironment();
  const { sqs, config, log } = container;
  return createIngestHandler({ ...container, sink: createSqsSink({ client: sqs, urls: config.queueUrls, log }) });
}

/** Ends all containers of this process; what was made in them must be closed. */
export function closeContainers(): void {
  const open = [...containers.values()];
  containers.clear();
  for (const container of open) container.close();
}
