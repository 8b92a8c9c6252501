import { readFile } from 'node:fs/promises';
import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { createForwarder } from '../forwarder/forwarder.ts';
import { startHealthServer } from '../forwarder/http.ts';
import { createOpenProvider } from '../forwarder/providers.ts';
import { createHttpSink } from '../forwarder/http-sink.ts';
import type { Sink } from '../forwarder/sink.ts';
import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { createKubeClient } from '../kube/client.ts';
import { parseIngestKeys } from '../fleet/ingest-keys.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import { loadInClusterTarget, loadOperatorTarget } from '../kube/operator-config.ts';
import { systemClock, type Clock } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import type { ForwarderConfig } from './config.ts';

export interface ForwarderProcess {
  /** Port of `/healthz`, `/readyz` and `/metrics`. */
  readonly port: number;
  /** Stops watching, delivers what is pending, and answers with how many keys were not delivered. */
  stop(): Promise<number>;
}

/**
 * The forwarder of one cluster, wired: the pod's main, and what a test starts. Throws class `credential` for an unusable
 * kubeconfig, `identity` for a cluster with another UID than the configured one, and what the first look at it throws.
 */
export async function startForwarderProcess(config: ForwarderConfig, log: Logger): Promise<ForwarderProcess> {
  const clock = systemClock;
  const egress = { allowLoopback: config.allowLoopback };
  const target = config.kubeconfig === undefined ? loadInClusterTarget() : loadOperatorTarget(config.kubeconfig);
  const client = createKubeClient(target, { clock, egress, side: 'consumer' });
  // A configured UID is confirmed by the forwarder before each use; it may start before its cluster answers.
  const clusterUid = config.clusterUid ?? (await readClusterIdentity(client));
  const registry = new Registry();
  const { sink, closeSink } = sinkOf(config, { clusterUid, clock, log });
  const forwarder = createForwarder({
    client,
    clusterUid,
    openProvider: createOpenProvider({ consumer: client, clock, egress }),
    sink,
    clock,
    log: log.child({ cluster: clusterUid }),
    registry,
  });
  const health = await startHealthServer({ port: config.port, registry, ready: () => forwarder.ready() });
  await forwarder.start();
  log.info('forwarder started', { cluster: clusterUid, server: client.host, port: health.port });
  return {
    port: health.port,
    async stop() {
      const { undelivered } = await forwarder.stop();
      await Promise.all([health.close(), client.close()]);
      closeSink();
      log.info('forwarder stopped', { undelivered });
      return undelivered;
    },
  };
}

interface SinkTools {
  readonly clusterUid: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Either way of sending. The SDK is not even asked for credentials when keys go through the webhook. */
function sinkOf(
  { send, allowLoopback }: ForwarderConfig,
  tools: SinkTools,
): { sink: Sink; readonly closeSink: () => void } {
  if (send.to === 'ingest') {
    const { url, keyFile } = send;
    return {
      sink: createHttpSink({ url, key: () => readKey(keyFile), allowLoopback, ...tools }),
      closeSink: () => undefined,
    };
  }
  const client = new SQSClient(send.region === undefined ? {} : { region: send.region });
  return { sink: createSqsSink({ client, urls: send.urls, log: tools.log }), closeSink: () => client.destroy() };
}

/** The first key of the file signs; where there are two, the receiver takes both. */
export async function readKey(path: string): Promise<Uint8Array> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KbindError('misconfigured', `${path} cannot be read`, {}, error);
  });
  const [key] = parseIngestKeys(text);
  if (key === undefined) throw new KbindError('credential', `${path} holds no key`);
  return key;
}
