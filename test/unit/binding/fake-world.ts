import { resources, type KubeObject, type ResourceRef } from '../../../lib/model/api.ts';
import type { Clock } from '../../../lib/model/clock.ts';
import { findCondition, type Condition } from '../../../lib/model/conditions.ts';
import { noMetrics, silentLogger } from '../../../lib/model/log.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import {
  reconcileRequest,
  type Controller,
  type ReconcileRequest,
  type SweepRequest,
} from '../../../lib/model/request.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { reconcileBinding } from '../../../lib/reconcile/binding/reconcile.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { reconcileSyncer } from '../../../lib/reconcile/syncer/reconcile.ts';
import { identityMapper, type Side, type World } from '../../../lib/reconcile/world.ts';
import { FakeCluster } from './fake-cluster.ts';

export const NOW = Date.parse('2026-11-30T12:00:00Z');
export const API = 'widgets.example.org';
export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

/** A moment relative to {@link NOW}, as Kubernetes prints it. */
export const ago = (seconds: number): string => `${new Date(NOW - seconds * 1000).toISOString().slice(0, 19)}Z`;

type Fields = Record<string, unknown>;

/** A provider's or consumer's CRD. */
export function crd(
  metadata: Fields = {},
  spec: Fields = {},
  conditions?: readonly unknown[],
): { metadata: object; [field: string]: unknown } {
  return {
    metadata: { name: API, ...metadata },
    spec: {
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      ...spec,
    },
    status: {
      conditions: conditions ?? [
        { type: 'NamesAccepted', status: 'True' },
        { type: 'Established', status: 'True' },
      ],
    },
  };
}

export const managed = (connection = 'demo'): Fields => ({
  labels: { 'core.kbind.io/managed': 'true' },
  annotations: { 'core.kbind.io/connection': connection },
});

export const exported = (metadata: Fields = {}): Fields => ({
  labels: { 'core.kbind.io/exported': 'true' },
  ...metadata,
});

/** Two clusters in memory, a Ready Connection `demo`, and what was told. */
export class FakeWorld {
  time = NOW;
  readonly clock: Clock = { now: () => this.time, monotonic: () => this.time - NOW };
  readonly consumer = new FakeCluster(this.clock);
  readonly provider = new FakeCluster(this.clock);
  readonly told: { change: string; keys: readonly string[] }[] = [];
  readonly sweeps: SweepRequest[] = [];
  readonly events: { reason: string; message: string }[] = [];
  readonly confirmed: string[] = [];
  /** What opening the provider throws. */
  providerError: Error | undefined;
  /** What the question who a cluster is meets. */
  readonly identityErrors: Partial<Record<Side['which'], Error>> = {};
  trace = new Trace();

  connection(change: { spec?: Fields; status?: Fields; metadata?: Fields; ready?: boolean } = {}): KubeObject {
    const ready = {
      type: 'Ready',
      status: change.ready === false ? 'False' : 'True',
      reason: 'AsExpected',
      message: '',
      lastTransitionTime: ago(3600),
    };
    return this.consumer.put(resources.connections, {
      metadata: { name: 'demo', ...change.metadata },
      spec: { kubeconfigSecretRef: { namespace: 'kbind', name: 'demo' }, ...change.spec },
      status: {
        localClusterUID: 'consumer-uid',
        remoteClusterUID: 'provider-uid',
        secretVersion: 'sha256:1',
        activeSchemaSource: 'CRD',
        exportedAPIs: [{ name: API, group: 'example.org', resource: 'widgets', scope: 'Namespaced', versions: ['v1'] }],
        conditions: [ready],
        ...change.status,
      },
    });
  }

  binding(
    change: { metadata?: Fields; spec?: Fields; status?: Fields; kind?: 'ClusterBinding' | 'Binding' } = {},
  ): KubeObject {
    const ref = change.kind === 'Binding' ? resources.bindings : resources.clusterBindings;
    const namespace = change.kind === 'Binding' ? { namespace: 'team-a' } : {};
    return this.consumer.put(ref, {
      metadata: { name: 'b', uid: 'b-uid', ...namespace, finalizers: ['core.kbind.io/cleanup'], ...change.metadata },
      spec: { connectionRef: { name: 'demo' }, apis: [{ name: API }], ...change.spec },
      ...(change.status === undefined ? {} : { status: change.status }),
    });
  }

  instance(name: string, metadata: Fields = {}): KubeObject {
    return this.consumer.put(widgets, { metadata: { name, namespace: 'team-a', ...metadata } });
  }

  world(): World {
    this.trace = new Trace();
    const cache = createReadsCache(this.consumer.client, this.clock);
    const side = (which: Side['which'], cluster: FakeCluster): Side => ({
      which,
      uid: `${which}-uid`,
      client: which === 'consumer' ? cache.client : cluster.client,
      confirmIdentity: (maxAgeMs) => {
        this.confirmed.push(`${which} ${maxAgeMs}`);
        const error = this.identityErrors[which];
        return error === undefined ? Promise.resolve() : Promise.reject(error);
      },
    });
    const note = (_object: KubeObject, reason: string, message: string): Promise<void> => {
      this.events.push({ reason, message });
      return Promise.resolve();
    };
    return {
      cluster: 'consumer-uid',
      consumer: side('consumer', this.consumer),
      providers: {
        open: () =>
          this.providerError === undefined
            ? Promise.resolve(side('provider', this.provider))
            : Promise.reject(this.providerError),
        probe: () => Promise.reject(new Error('bindings never probe')),
      },
      reads: cache.viewFor(undefined),
      tell: {
        reconcile: (requests: readonly ReconcileRequest[], change: string) => {
          this.told.push({ change, keys: requests.map(({ namespace, name }) => `${namespace ?? ''}/${name}`) });
          return Promise.resolve();
        },
        sweep: (request) => {
          this.sweeps.push(request);
          return Promise.resolve();
        },
      },
      events: { warn: note, normal: note },
      clock: this.clock,
      log: silentLogger,
      metrics: noMetrics,
      trace: this.trace,
      signal: new AbortController().signal,
      mapper: identityMapper,
      component: 'kbind-konnector',
    };
  }

  reconcile(kind: 'ClusterBinding' | 'Binding' = 'ClusterBinding', waited?: number): Promise<Outcome> {
    const controller: Controller = kind === 'Binding' ? 'binding' : 'clusterbinding';
    const namespace = kind === 'Binding' ? 'team-a' : undefined;
    return reconcileBinding(this.world(), {
      ...reconcileRequest('consumer-uid', controller, { namespace, name: 'b' }),
      waited,
    });
  }

  reconcileCrd(): Promise<Outcome> {
    return reconcileSyncer(this.world(), reconcileRequest('consumer-uid', 'crd', { name: API }));
  }

  /** A condition of the binding as `status/reason`. */
  condition(type: string, kind: 'ClusterBinding' | 'Binding' = 'ClusterBinding'): string | undefined {
    const found = this.#conditionOf(type, kind);
    return found === undefined ? undefined : `${found.status}/${found.reason}`;
  }

  message(type: string, kind: 'ClusterBinding' | 'Binding' = 'ClusterBinding'): string {
    return this.#conditionOf(type, kind)?.message ?? '';
  }

  #conditionOf(type: string, kind: 'ClusterBinding' | 'Binding'): Condition | undefined {
    return findCondition(this.bindingNow(kind)?.conditions, type);
  }

  bindingNow(
    kind: 'ClusterBinding' | 'Binding' = 'ClusterBinding',
  ): { conditions?: Condition[]; boundAPIs?: unknown[] } | undefined {
    const object =
      kind === 'Binding'
        ? this.consumer.at(resources.bindings, { namespace: 'team-a', name: 'b' })
        : this.consumer.at(resources.clusterBindings, { name: 'b' });
    return object?.status as { conditions?: Condition[]; boundAPIs?: unknown[] } | undefined;
  }

  get crdNow(): KubeObject | undefined {
    return this.consumer.at(resources.crds, { name: API });
  }

  /** The trace as `node → answer` lines. */
  get lines(): string[] {
    return this.trace.lines();
  }

  /** Writes that were no dry runs, as `verb api`. */
  get writes(): string[] {
    return this.consumer.writes.filter(({ dryRun }) => !dryRun).map(({ verb, api }) => `${verb} ${api}`);
  }
}
