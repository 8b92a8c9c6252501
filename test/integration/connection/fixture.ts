import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { createEvents } from '../../../lib/kube/events.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type Json, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock, type Clock } from '../../../lib/model/clock.ts';
import { findCondition } from '../../../lib/model/conditions.ts';
import { parseConnection, type Connection } from '../../../lib/model/kinds.ts';
import { noMetrics, silentLogger } from '../../../lib/model/log.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest, requestKey, type SweepRequest } from '../../../lib/model/request.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { reconcileConnection } from '../../../lib/reconcile/connection/reconcile.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import { ProviderPool } from '../../../lib/reconcile/provider-pool.ts';
import { createProviders } from '../../../lib/reconcile/providers.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { createOwnSide } from '../../../lib/reconcile/side.ts';
import { identityMapper, type World } from '../../../lib/reconcile/world.ts';
import { installOwnCrds, startCluster, type ClusterWithHands } from '../../support/apiserver/hands.ts';
import type { ClusterKind } from '../../support/apiserver/kinds.ts';

/** A consumer and its providers, with the Connection controller run by hand: no queue, no forwarder. */

const EGRESS = { allowLoopback: true };

export interface CrdOptions {
  readonly exported?: boolean;
  readonly versions?: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[];
  readonly scope?: 'Namespaced' | 'Cluster';
  /** Printer columns by JSON path, so that two manifests can differ. */
  readonly columns?: readonly string[];
}

/** A CRD `<plural>.<group>` with free-form spec and status. */
export function crdManifest(name: string, options: CrdOptions = {}): SentObject {
  const { exported = true, scope = 'Namespaced', columns = [] } = options;
  const { versions = [{ name: 'v1', served: true, storage: true }] } = options;
  const [plural = '', ...group] = name.split('.');
  const kind = plural.charAt(0).toUpperCase() + plural.slice(1, -1);
  const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name, ...(exported ? { labels: { 'core.kbind.io/exported': 'true' } } : {}) },
    spec: {
      group: group.join('.'),
      scope,
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: versions.map((version) => ({
        ...version,
        subresources: { status: {} },
        additionalPrinterColumns: columns.map((jsonPath) => ({ name: jsonPath, type: 'string', jsonPath })),
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: freeForm, status: freeForm } } },
      })),
    },
  };
}

/** A clock that runs with the machine's and can be put forward. */
export class TestClock implements Clock {
  #ahead = 0;
  now(): number {
    return systemClock.now() + this.#ahead;
  }
  monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }
  forward(ms: number): void {
    this.#ahead += ms;
  }
}

/** The container: what stays warm between reconciles. */
export class Konnector {
  readonly clock = new TestClock();
  readonly told: string[] = [];
  readonly sweeps: SweepRequest[] = [];
  /** Writes by the product since the last {@link writesOf}, as `consumer patch connections`. */
  readonly writes: string[] = [];
  /** Every request by the product, as `provider leases`. */
  readonly requests: string[] = [];
  /** Servers and tokens' users that clients were opened for. */
  readonly opened: ConnectionTarget[] = [];
  readonly closed: ConnectionTarget[] = [];
  /** Sees every request to a provider, and may fail it or lead it elsewhere. */
  providerClient: (client: KubeClient) => KubeClient = (client) => client;
  /** How much later than it is the consumer's API server shows to be, ms: for what takes 8 s otherwise. */
  serverAheadMs = 0;
  readonly #consumer: ClusterWithHands;
  readonly #client: OpenKubeClient;
  readonly #pool: ProviderPool;

  constructor(consumer: ClusterWithHands) {
    this.#consumer = consumer;
    const { clock } = this;
    const target = parseForeignKubeconfig(consumer.server.kubeconfig, EGRESS);
    this.#client = createKubeClient(target, { clock, egress: EGRESS, side: 'consumer' });
    this.#pool = new ProviderPool({ clock, allowLoopback: true, connect: (to) => this.#connect(to) });
  }

  #connect(target: ConnectionTarget): OpenKubeClient {
    this.opened.push(target);
    const client = createKubeClient(target, { clock: this.clock, egress: EGRESS, side: 'provider' });
    const seen = this.#noting('provider', client);
    const led = interceptClient(this.providerClient(seen), (_call, send) => send());
    return {
      ...led,
      close: async () => {
        this.closed.push(target);
        await client.close();
      },
    };
  }

  #noting(side: string, client: KubeClient): KubeClient {
    return interceptClient(client, (call, send) => {
      this.requests.push(`${side} ${call.ref?.resource ?? 'discovery'}`);
      if (call.kind === 'write' && call.dryRun !== true) this.writes.push(`${side} ${call.ref?.resource ?? ''}`);
      return send();
    });
  }

  world(trace = new Trace()): World {
    const { clock } = this;
    const shown = (date: number | undefined) => (date === undefined ? undefined : date + this.serverAheadMs);
    const client = { ...this.#noting('consumer', this.#client), serverDate: () => shown(this.#client.serverDate()) };
    const cache = createReadsCache(client, clock);
    const reads = cache.viewFor(undefined);
    return {
      cluster: this.#consumer.uid,
      consumer: createOwnSide({ which: 'consumer', uid: this.#consumer.uid, client: cache.client, clock }),
      providers: createProviders(this.#pool, reads),
      reads,
      tell: {
        reconcile: (requests) => {
          this.told.push(...requests.map((request) => requestKey(request).split('|').slice(1).join('|')));
          return Promise.resolve();
        },
        sweep: (request) => {
          this.sweeps.push(request);
          return Promise.resolve();
        },
      },
      events: createEvents(this.#client, clock, 'kbind-konnector', silentLogger),
      clock,
      log: silentLogger,
      metrics: noMetrics,
      trace,
      signal: new AbortController().signal,
      mapper: identityMapper,
      component: 'kbind-konnector',
    };
  }

  reconcile(name: string, world: World = this.world()): Promise<Outcome> {
    return reconcileConnection(world, reconcileRequest(this.#consumer.uid, 'connection', { name }));
  }

  /** What the product wrote while `run` ran. */
  async writesOf(run: () => Promise<unknown>): Promise<string[]> {
    this.writes.length = 0;
    await run();
    return [...this.writes];
  }

  async close(): Promise<void> {
    await this.#pool.close();
    await this.#client.close();
  }
}

/** The consumer as a user sees it. */
export class Consumer {
  readonly cluster: ClusterWithHands;
  constructor(cluster: ClusterWithHands) {
    this.cluster = cluster;
  }

  static async start(kind: ClusterKind): Promise<Consumer> {
    const cluster = await startCluster(kind, 'consumer');
    const consumer = new Consumer(cluster);
    await installOwnCrds(cluster.hands);
    await consumer.create(resources.namespaces, { name: 'kbind' });
    return consumer;
  }

  create(ref: ResourceRef, metadata: SentObject['metadata'], rest: object = {}): Promise<KubeObject> {
    const apiVersion = ref.group === '' ? ref.version : `${ref.group}/${ref.version}`;
    return this.cluster.hands.create(ref, { apiVersion, kind: ref.kind, metadata, ...rest });
  }

  connect(name: string, secret: string, spec: object = { schema: { source: 'CRD' } }): Promise<KubeObject> {
    const kubeconfigSecretRef = { namespace: 'kbind', name: secret };
    return this.create(resources.connections, { name }, { spec: { kubeconfigSecretRef, ...spec } });
  }

  secret(name: string, kubeconfig: string): Promise<KubeObject> {
    const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') };
    return this.create(resources.secrets, { namespace: 'kbind', name }, { data });
  }

  bind(name: string, connection: string, apis: readonly string[]): Promise<KubeObject> {
    const spec = { connectionRef: { name: connection }, apis: apis.map((api) => ({ name: api })) };
    return this.create(resources.clusterBindings, { name }, { spec });
  }

  /** What a user's edit does: one field, whatever happened in between. */
  async set(ref: ResourceRef, key: ObjectKey, path: string, value: Json | undefined): Promise<KubeObject> {
    const { uid } = (await this.cluster.hands.get(ref, key)).metadata;
    const operation = value === undefined ? { op: 'remove' as const, path } : { op: 'add' as const, path, value };
    return this.cluster.hands.patch(ref, key, { read: { uid }, operations: [operation] });
  }

  setKubeconfig(secret: string, kubeconfig: string): Promise<KubeObject> {
    const key = { namespace: 'kbind', name: secret };
    return this.set(resources.secrets, key, '/data/kubeconfig', Buffer.from(kubeconfig).toString('base64'));
  }

  async remove(ref: ResourceRef, key: ObjectKey): Promise<void> {
    const { uid, resourceVersion } = (await this.cluster.hands.get(ref, key)).metadata;
    await this.cluster.hands.delete(ref, key, { uid, resourceVersion });
  }

  find(ref: ResourceRef, key: ObjectKey): Promise<KubeObject | undefined> {
    return this.cluster.hands.find(ref, key);
  }

  async connection(name: string): Promise<Connection> {
    return parseConnection(await this.cluster.hands.get(resources.connections, { name }));
  }

  /** A condition as `status/reason`. */
  async condition(name: string, type: string): Promise<string> {
    const found = findCondition((await this.connection(name)).status.conditions, type);
    return found === undefined ? 'absent' : `${found.status}/${found.reason}`;
  }

  async message(name: string, type: string): Promise<string> {
    return findCondition((await this.connection(name)).status.conditions, type)?.message ?? '';
  }
}
