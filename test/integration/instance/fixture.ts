import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { noMetrics, silentLogger } from '../../../lib/model/log.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest, type ReconcileRequest, type SweepRequest } from '../../../lib/model/request.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { reconcileInstance } from '../../../lib/reconcile/instance/reconcile.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { createOwnSide } from '../../../lib/reconcile/side.ts';
import { identityMapper, type Side, type World } from '../../../lib/reconcile/world.ts';
import {
  installOwnCrds,
  startCluster,
  stopCluster,
  until,
  type ClusterWithHands,
} from '../../support/apiserver/hands.ts';
import type { ClusterKind } from '../../support/apiserver/kinds.ts';

/** Two API servers with bindings that are declared Ready by hand: instance reconciles and sweeps, nothing around them. */

export const CONNECTION = 'demo';

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
export const WIDGETS = 'widgets.example.org';

const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A CRD manifest; both sides get the same one. */
export function crdManifest(
  ref: ResourceRef,
  options: { spec?: unknown; status?: unknown; statusSubresource?: boolean } = {},
): SentObject {
  const { spec = freeForm, status = freeForm, statusSubresource = true } = options;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${ref.resource}.${ref.group}` },
    spec: {
      group: ref.group,
      scope: ref.namespaced ? 'Namespaced' : 'Cluster',
      names: { plural: ref.resource, singular: ref.kind.toLowerCase(), kind: ref.kind, listKind: `${ref.kind}List` },
      versions: [
        {
          name: ref.version,
          served: true,
          storage: true,
          ...(statusSubresource ? { subresources: { status: {} } } : {}),
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
        },
      ],
    },
  };
}

export interface Counts {
  reads: number;
  writes: number;
}

/** One cluster of the fixture: `client` is the product's, counted. */
export interface Cluster extends ClusterWithHands {
  readonly client: KubeClient;
  readonly counts: Counts;
}

async function startCounted(kind: ClusterKind, which: 'consumer' | 'provider'): Promise<Cluster> {
  const cluster = await startCluster(kind, which, which);
  const counts = { reads: 0, writes: 0 };
  const client = interceptClient(cluster.hands, (call, send) => {
    counts[call.kind === 'read' ? 'reads' : 'writes'] += 1;
    return send();
  });
  return { ...cluster, client, counts };
}

export class Fixture {
  readonly consumer: Cluster;
  readonly provider: Cluster;
  readonly told: ReconcileRequest[] = [];
  readonly sweeps: SweepRequest[] = [];
  readonly events: { name: string; reason: string; message: string }[] = [];
  /** Whether the reads are shared with earlier reconciles: off, so that a test sees what it has just written. */
  readonly #sides: { consumer: Side; provider: Side };

  private constructor(consumer: Cluster, provider: Cluster) {
    this.consumer = consumer;
    this.provider = provider;
    const clock = systemClock;
    this.#sides = {
      consumer: createOwnSide({ which: 'consumer', uid: consumer.uid, client: consumer.client, clock }),
      provider: createOwnSide({ which: 'provider', uid: provider.uid, client: provider.client, clock }),
    };
  }

  static async start(kind: ClusterKind): Promise<Fixture> {
    const [consumer, provider] = await Promise.all([startCounted(kind, 'consumer'), startCounted(kind, 'provider')]);
    const fixture = new Fixture(consumer, provider);
    await fixture.#install();
    return fixture;
  }

  async #install(): Promise<void> {
    await installOwnCrds(this.consumer.hands);
    await this.#declare(resources.connections, CONNECTION, {
      kubeconfigSecretRef: { namespace: 'kbind', name: 'demo', key: 'kubeconfig' },
    });
    await this.export(widgets, crdManifest(widgets));
  }

  /** Serves an API on both sides, as if it were pulled through the Connection. */
  async export(ref: ResourceRef, manifest: SentObject): Promise<void> {
    const managed = {
      ...manifest,
      metadata: {
        ...manifest.metadata,
        labels: { 'core.kbind.io/managed': 'true' },
        annotations: { 'core.kbind.io/connection': CONNECTION },
      },
    };
    await this.provider.hands.create(resources.crds, manifest);
    await this.consumer.hands.create(resources.crds, managed);
    await until('the provider serves it', () => this.provider.hands.list(ref));
    await until('the consumer serves it', () => this.consumer.hands.list(ref));
  }

  /** An object of our own kinds with Ready=True. */
  async #declare(ref: ResourceRef, name: string, spec: unknown, namespace?: string): Promise<KubeObject> {
    const { hands } = this.consumer;
    const apiVersion = `${ref.group}/${ref.version}`;
    const made = await hands.create(ref, { apiVersion, kind: ref.kind, metadata: { name, namespace }, spec });
    return this.setReady(ref, made, 'True');
  }

  async setReady(ref: ResourceRef, object: KubeObject, status: 'True' | 'False'): Promise<KubeObject> {
    const { generation = 1, uid, namespace, name } = object.metadata;
    const condition = {
      type: 'Ready',
      status,
      reason: status === 'True' ? 'AsExpected' : 'Pending',
      message: '',
      observedGeneration: generation,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const ids = { remoteClusterUID: this.provider.uid, localClusterUID: this.consumer.uid };
    const value = { ...(ref === resources.connections ? ids : {}), conditions: [condition] };
    return this.consumer.hands.patch(
      ref,
      { namespace, name },
      { read: { uid }, operations: [{ op: 'add', path: '/status', value }], subresource: 'status' },
    );
  }

  bind(name: string, apis: readonly string[], conflictPolicy: 'Fail' | 'Adopt' = 'Fail'): Promise<KubeObject> {
    const spec = { connectionRef: { name: CONNECTION }, apis: apis.map((api) => ({ name: api })), conflictPolicy };
    return this.#declare(resources.clusterBindings, name, spec);
  }

  bindNamespace(namespace: string, name: string, apis: readonly string[]): Promise<KubeObject> {
    const spec = { connectionRef: { name: CONNECTION }, apis: apis.map((api) => ({ name: api })) };
    return this.#declare(resources.bindings, name, spec, namespace);
  }

  world(overrides: Partial<World> = {}): World {
    const warn = (object: KubeObject, reason: string, message: string): Promise<void> => {
      this.events.push({ name: object.metadata.name, reason, message });
      return Promise.resolve();
    };
    return {
      cluster: this.consumer.uid,
      consumer: this.#sides.consumer,
      providers: {
        open: () => Promise.resolve(this.#sides.provider),
        probe: () => Promise.reject(new Error('instances never probe')),
      },
      reads: createReadsCache(this.consumer.hands, systemClock).viewFor(undefined),
      tell: {
        reconcile: (requests) => {
          this.told.push(...requests);
          return Promise.resolve();
        },
        sweep: (request) => {
          this.sweeps.push(request);
          return Promise.resolve();
        },
      },
      events: { warn, normal: warn },
      clock: systemClock,
      log: silentLogger,
      metrics: noMetrics,
      trace: new Trace(),
      signal: new AbortController().signal,
      mapper: identityMapper,
      component: 'kbind-konnector',
      ...overrides,
    };
  }

  get sides(): { readonly consumer: Side; readonly provider: Side } {
    return this.#sides;
  }

  reconcile(key: ObjectKey, overrides: Partial<World> = {}, api: string = WIDGETS): Promise<Outcome> {
    return reconcileInstance(this.world(overrides), reconcileRequest(this.consumer.uid, 'instance', key, { api }));
  }

  /** Runs something and says what it cost at each side, shared reads aside. */
  async counted(run: () => Promise<unknown>): Promise<Counts> {
    const all = [this.consumer.counts, this.provider.counts];
    const before = all.map((counts) => ({ ...counts }));
    await run();
    const sum = (what: keyof Counts): number =>
      all.reduce((total, counts, index) => total + counts[what] - (before[index]?.[what] ?? 0), 0);
    return { reads: sum('reads'), writes: sum('writes') };
  }

  create(side: Cluster, key: ObjectKey, fields: Record<string, unknown>, ref = widgets): Promise<KubeObject> {
    const { metadata = {}, ...rest } = fields as { metadata?: object };
    const apiVersion = `${ref.group}/${ref.version}`;
    return side.hands.create(
      ref,
      { apiVersion, kind: ref.kind, metadata: { ...metadata, ...key }, ...rest },
      { fieldManager: 'hands' },
    );
  }

  /** What a user's edit does: replaces one field whatever happened in between. */
  async set(
    side: Cluster,
    key: ObjectKey,
    change: readonly [path: string, value: unknown],
    options: { ref?: ResourceRef; subresource?: 'status' } = {},
  ): Promise<KubeObject> {
    const { ref = widgets, subresource } = options;
    const [path, value] = change;
    const { uid } = (await side.hands.get(ref, key)).metadata;
    const operation = value === undefined ? { op: 'remove' as const, path } : { op: 'add' as const, path, value };
    return side.hands.patch(
      ref,
      key,
      { read: { uid }, operations: [operation], subresource },
      { fieldManager: 'hands' },
    );
  }

  async remove(side: Cluster, key: ObjectKey, ref = widgets): Promise<void> {
    const { uid, resourceVersion } = (await side.hands.get(ref, key)).metadata;
    await side.hands.delete(ref, key, { uid, resourceVersion });
  }

  async ensureNamespace(name: string): Promise<void> {
    await this.consumer.hands.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }

  async stop(): Promise<void> {
    for (const cluster of [this.consumer, this.provider]) await stopCluster(cluster);
  }
}
