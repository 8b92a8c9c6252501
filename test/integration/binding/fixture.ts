import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { keyOf, resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { findCondition, type Condition } from '../../../lib/model/conditions.ts';
import { noMetrics, silentLogger } from '../../../lib/model/log.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest, type ReconcileRequest, type SweepRequest } from '../../../lib/model/request.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { reconcileBinding } from '../../../lib/reconcile/binding/reconcile.ts';
import { reconcileInstance } from '../../../lib/reconcile/instance/reconcile.ts';
import { interceptClient } from '../../../lib/reconcile/intercept-client.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { createOwnSide } from '../../../lib/reconcile/side.ts';
import { reconcileSyncer } from '../../../lib/reconcile/syncer/reconcile.ts';
import { identityMapper, type World } from '../../../lib/reconcile/world.ts';
import {
  installOwnCrds,
  startCluster,
  stopCluster,
  until,
  type ClusterWithHands,
} from '../../support/apiserver/hands.ts';
import type { ClusterKind } from '../../support/apiserver/kinds.ts';

/** Two API servers, a Connection that is declared Ready by hand, and the controllers, called one by one. */

/** How late it is for a deletion whose 8 s are not to be waited for. */
const GRACE_MS = 9_000;

export const API = 'widgets.example.org';
export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A version of the widgets API. */
export const version = (name: string, more: object = {}): object => ({
  name,
  served: true,
  storage: false,
  subresources: { status: {} },
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: freeForm, status: freeForm } } },
  ...more,
});

/** The widgets CRD, as a provider exports it. */
export const widgetsCrd = (spec: object = {}, metadata: object = {}): SentObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: API, labels: { 'core.kbind.io/exported': 'true' }, ...metadata },
  spec: {
    group: 'example.org',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [version('v1', { storage: true })],
    ...spec,
  },
});

export class Fixture {
  readonly consumer: ClusterWithHands;
  readonly provider: ClusterWithHands;
  readonly told: ReconcileRequest[] = [];
  readonly sweeps: SweepRequest[] = [];
  readonly events: { reason: string; message: string }[] = [];
  /** Writes to the consumer that the controllers sent, dry runs aside: the resource of each. */
  readonly writes: string[] = [];
  readonly #counted: KubeClient;
  /** How much later than it is the clocks of the controllers and of the consumer's API server show, ms. */
  #aheadMs = 0;

  private constructor(consumer: ClusterWithHands, provider: ClusterWithHands) {
    this.consumer = consumer;
    this.provider = provider;
    this.#counted = interceptClient(consumer.hands, (call, send) => {
      if (call.kind === 'write' && call.dryRun !== true) this.writes.push(call.ref?.resource ?? '');
      return send();
    });
  }

  static async start(kind: ClusterKind): Promise<Fixture> {
    const [consumer, provider] = await Promise.all([
      startCluster(kind, 'consumer', 'consumer'),
      startCluster(kind, 'provider', 'provider'),
    ]);
    const fixture = new Fixture(consumer, provider);
    await installOwnCrds(consumer.hands);
    await fixture.namespace('team-a');
    return fixture;
  }

  async namespace(name: string): Promise<void> {
    await this.consumer.hands.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }

  /** A Connection with Ready=True that exports what is said. */
  async connect(name: string, schema: object = {}, exported: readonly string[] = [API]): Promise<KubeObject> {
    const made = await this.consumer.hands.create(resources.connections, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: 'Connection',
      metadata: { name },
      spec: { kubeconfigSecretRef: { namespace: 'kbind', name: 'demo' }, schema: { source: 'CRD', ...schema } },
    });
    return this.declareReady(made, 'True', exported);
  }

  async declareReady(
    made: KubeObject,
    status: 'True' | 'False',
    exported: readonly string[] = [API],
  ): Promise<KubeObject> {
    const value = {
      localClusterUID: this.consumer.uid,
      remoteClusterUID: this.provider.uid,
      activeSchemaSource: 'CRD',
      secretVersion: 'sha256:0000000000000001',
      exportedAPIs: exported.map((api) => {
        const [resource = '', ...group] = api.split('.');
        return { name: api, group: group.join('.'), resource, scope: 'Namespaced', versions: ['v1'] };
      }),
      conditions: [
        {
          type: 'Ready',
          status,
          reason: 'AsExpected',
          message: '',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    };
    return this.consumer.hands.patch(resources.connections, keyOf(made), {
      read: { uid: made.metadata.uid },
      operations: [{ op: 'add', path: '/status', value }],
      subresource: 'status',
    });
  }

  bind(
    name: string,
    spec: { apis?: readonly string[]; connection?: string; namespace?: string; conflictPolicy?: string } = {},
  ): Promise<KubeObject> {
    const { apis = [API], connection = 'demo', namespace, conflictPolicy = 'Fail' } = spec;
    const ref = namespace === undefined ? resources.clusterBindings : resources.bindings;
    return this.consumer.hands.create(ref, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: ref.kind,
      metadata: { name, namespace },
      spec: { connectionRef: { name: connection }, apis: apis.map((api) => ({ name: api })), conflictPolicy },
    });
  }

  world(): World {
    const ahead = this.#aheadMs;
    const serverDate = (): number | undefined => {
      const date = this.#counted.serverDate();
      return date === undefined ? undefined : date + ahead;
    };
    const cache = createReadsCache({ ...this.#counted, serverDate }, systemClock);
    const note = (_object: KubeObject, reason: string, message: string): Promise<void> => {
      this.events.push({ reason, message });
      return Promise.resolve();
    };
    const side = (which: 'consumer' | 'provider', client: KubeClient): ReturnType<typeof createOwnSide> =>
      createOwnSide({ which, uid: this[which].uid, client, clock: systemClock });
    return {
      cluster: this.consumer.uid,
      consumer: side('consumer', cache.client),
      providers: {
        open: () => Promise.resolve(side('provider', this.provider.hands)),
        probe: () => Promise.reject(new Error('nothing here probes')),
      },
      reads: cache.viewFor(undefined),
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
      events: { warn: note, normal: note },
      clock: { now: () => systemClock.now() + ahead, monotonic: () => systemClock.monotonic() },
      log: silentLogger,
      metrics: noMetrics,
      trace: new Trace(),
      signal: new AbortController().signal,
      mapper: identityMapper,
      component: 'kbind-konnector',
    };
  }

  reconcileBinding(name: string, namespace?: string): Promise<Outcome> {
    const controller = namespace === undefined ? 'clusterbinding' : 'binding';
    return reconcileBinding(this.world(), reconcileRequest(this.consumer.uid, controller, { namespace, name }));
  }

  reconcileCrd(name: string = API): Promise<Outcome> {
    return reconcileSyncer(this.world(), reconcileRequest(this.consumer.uid, 'crd', { name }));
  }

  reconcileInstance(key: ObjectKey, api: string = API): Promise<Outcome> {
    return reconcileInstance(this.world(), reconcileRequest(this.consumer.uid, 'instance', key, { api }));
  }

  /** Runs the instance requests that were told so far. */
  async runTold(): Promise<void> {
    for (const request of this.told.splice(0)) await reconcileInstance(this.world(), request);
  }

  /** Has the sweeps that were told so far reconcile every instance of their APIs. */
  async runSweeps(ref: ResourceRef = widgets): Promise<void> {
    if (this.sweeps.splice(0).length === 0) return;
    const { items } = await this.consumer.hands.listAllMetadata(ref);
    for (const item of items) await this.reconcileInstance(keyOf(item), `${ref.resource}.${ref.group}`);
  }

  async bindingOf(name: string, namespace?: string): Promise<KubeObject | undefined> {
    const ref = namespace === undefined ? resources.clusterBindings : resources.bindings;
    return this.consumer.hands.find(ref, { namespace, name });
  }

  async ready(name: string, namespace?: string): Promise<Condition | undefined> {
    const object = await this.bindingOf(name, namespace);
    return findCondition((object?.status as { conditions?: Condition[] } | undefined)?.conditions, 'Ready');
  }

  /** Reconciles a binding until it is Ready. */
  async untilReady(name: string, namespace?: string): Promise<void> {
    await until(`${name} is Ready`, async () => {
      await this.reconcileBinding(name, namespace);
      return (await this.ready(name, namespace))?.status === 'True';
    });
  }

  /** Deletes a binding and walks its chart, with the instances that it tells, until it is gone; the 8 s count as over. */
  async unbind(name: string, namespace?: string): Promise<void> {
    await this.requestDeletion(namespace === undefined ? resources.clusterBindings : resources.bindings, {
      namespace,
      name,
    });
    this.#aheadMs = GRACE_MS;
    try {
      await until(`${name} is gone`, async () => {
        await this.reconcileBinding(name, namespace);
        await this.runTold();
        return (await this.bindingOf(name, namespace)) === undefined;
      });
    } finally {
      this.#aheadMs = 0;
    }
  }

  async requestDeletion(ref: ResourceRef, key: ObjectKey, side: 'consumer' | 'provider' = 'consumer'): Promise<void> {
    await until(`${key.name} is being deleted`, async () => {
      const { hands } = this[side];
      const { uid, resourceVersion } = (await hands.get(ref, key)).metadata;
      await hands.delete(ref, key, { uid, resourceVersion });
      return true;
    });
  }

  crd(name: string = API): Promise<KubeObject | undefined> {
    return this.consumer.hands.find(resources.crds, { name });
  }

  createWidget(key: ObjectKey, more: object = {}, ref: ResourceRef = widgets): Promise<KubeObject> {
    return until(`${ref.resource} are served`, () =>
      this.consumer.hands.create(ref, {
        apiVersion: `${ref.group}/${ref.version}`,
        kind: ref.kind,
        metadata: { ...key },
        spec: { size: 'large' },
        ...more,
      }),
    );
  }

  /** Replaces fields of a provider's CRD. */
  async editProviderCrd(spec: object, name: string = API): Promise<void> {
    await until(`${name} is edited`, async () => {
      const crd = await this.provider.hands.get(resources.crds, { name });
      await this.provider.hands.update(resources.crds, { ...crd, spec: { ...(crd.spec as object), ...spec } });
      return true;
    });
  }

  async stop(): Promise<void> {
    for (const cluster of [this.consumer, this.provider]) await stopCluster(cluster);
  }
}
