import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { createForwarder } from '../forwarder/forwarder.ts';
import { startHealthServer } from '../forwarder/http.ts';
import { createOpenProvider } from '../forwarder/providers.ts';
import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { createKubeClient } from '../kube/client.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import { loadInClusterTarget, loadOperatorTarget } from '../kube/operator-config.ts';
import { systemClock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import type { ForwarderConfig } from './forwarder-config.ts';

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
  const sqs = new SQSClient(config.region === undefined ? {} : { region: config.region });
  const forwarder = createForwarder({
    client,
    clusterUid,
    openProvider: createOpenProvider({ consumer: client, clock, egress }),
    sink: createSqsSink({ client: sqs, urls: config.queueUrls, log }),
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
      sqs.destroy();
      log.info('forwarder stopped', { undelivered });
      return undelivered;
    },
  };
}
