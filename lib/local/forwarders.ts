import { setTimeout as delay } from 'node:timers/promises';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { createForwarder, type Forwarder } from '../forwarder/forwarder.ts';
import { createOpenProvider } from '../forwarder/providers.ts';
import { readIngestKeyFile } from '../fleet/directory-files.ts';
import { createHttpSink } from '../forwarder/http-sink.ts';
import type { ForwarderQueue, Sink } from '../forwarder/sink.ts';
import { createSqsSink } from '../forwarder/sqs-sink.ts';
import { createKubeClient } from '../kube/client.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import type { KubeClient } from '../kube/types.ts';
import { KbindError } from '../model/errors.ts';
import type { Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';

/** Pause between attempts to reach a cluster that has not answered yet, ms. */
const CONNECT_RETRY_MS = 2_000;

/** A consumer cluster of the fleet, and how its operator reaches it. */
export interface ConsumerCluster {
  readonly name: string;
  readonly target: ConnectionTarget;
}

export interface ForwardersOptions {
  readonly sqs: SQSClient;
  readonly urls: Readonly<Record<ForwarderQueue, string>>;
  /** Clusters with a key (`NAME.hmac`) send through the webhook. */
  readonly ingest: { readonly url: string | undefined; readonly fleetDir: string };
  readonly allowLoopback: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told once per cluster: it answered, and this is its UID. */
  readonly onConnected?: ((cluster: string, uid: string) => void) | undefined;
  /** Told each time that a cluster does not answer; it is tried again. */
  readonly onUnreachable?: ((cluster: string, why: string) => void) | undefined;
}

/** The forwarder of one cluster of the fleet; outside of a local run it would run inside that cluster. */
export interface LocalForwarder {
  readonly cluster: string;
  /** True while the watches of the control plane stand. */
  ready(): boolean;
  /** Stops watching, delivers what is pending and closes the connections. Answers with how many keys were not delivered. */
  stop(): Promise<number>;
}

/** Starts a cluster's forwarder as soon as the cluster answers; returns at once. */
export function startForwarder(cluster: ConsumerCluster, options: ForwardersOptions): LocalForwarder {
  const { allowLoopback, clock } = options;
  const stopping = new AbortController();
  const egress = { allowLoopback };
  const client = createKubeClient(cluster.target, { clock, egress, side: 'consumer' });
  let forwarder: Forwarder | undefined;
  const started = (async () => {
    const clusterUid = await identityOf(cluster.name, client, { ...options, signal: stopping.signal });
    if (clusterUid === undefined) return;
    options.onConnected?.(cluster.name, clusterUid);
    forwarder = createForwarder({
      client,
      clusterUid,
      openProvider: createOpenProvider({ consumer: client, clock, egress }),
      sink: await sinkOf(cluster.name, clusterUid, options),
      clock,
      log: options.log.child({ cluster: cluster.name }),
    });
    await forwarder.start();
  })();
  return {
    cluster: cluster.name,
    ready: () => forwarder?.ready() ?? false,
    async stop() {
      stopping.abort();
      await started;
      const stopped = await forwarder?.stop();
      await client.close();
      return stopped?.undelivered ?? 0;
    },
  };
}

/** The way to the queues of a cluster that holds cloud credentials, or of one that holds a key. */
async function sinkOf(name: string, clusterUid: string, options: ForwardersOptions): Promise<Sink> {
  const { ingest, sqs, urls, log, clock, allowLoopback } = options;
  const { url, fleetDir } = ingest;
  const key = async (): Promise<Uint8Array | undefined> => (await readIngestKeyFile(fleetDir, name))?.[0];
  if (url === undefined || (await key()) === undefined) return createSqsSink({ client: sqs, urls, log });
  const always = async (): Promise<Uint8Array> => {
    const found = await key();
    if (found === undefined) throw new KbindError('misconfigured', `the key of ${name} is gone`);
    return found;
  };
  return createHttpSink({ url, clusterUid, key: always, clock, log, allowLoopback });
}

type Tools = ForwardersOptions & { readonly signal: AbortSignal };

/** Asks until the cluster says who it is, or undefined when the run ends before. */
async function identityOf(name: string, client: KubeClient, tools: Tools): Promise<string | undefined> {
  while (!tools.signal.aborted) {
    try {
      return await readClusterIdentity(client, { signal: tools.signal });
    } catch (error) {
      if (tools.signal.aborted) return undefined;
      tools.onUnreachable?.(name, (error as Error).message);
      tools.log.warn('a cluster of the fleet does not answer', { cluster: name, error: (error as Error).message });
      await delay(CONNECT_RETRY_MS, undefined, { signal: tools.signal }).catch(() => undefined);
    }
  }
  return undefined;
}
