import type { OpenKubeClient } from '../../../lib/kube/client.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import {
  keyOf,
  keyText,
  resources,
  type KubeObject,
  type ObjectKey,
  type ResourceRef,
} from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { findCondition, type Condition } from '../../../lib/model/conditions.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { noMetrics, silentLogger } from '../../../lib/model/log.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest, type ReconcileRequest } from '../../../lib/model/request.ts';
import { Trace } from '../../../lib/model/trace.ts';
import { reconcileBinding } from '../../../lib/reconcile/binding/reconcile.ts';
import { createReadsCache } from '../../../lib/reconcile/reads.ts';
import { createOwnSide } from '../../../lib/reconcile/side.ts';
import { IDENTITY_MAX_AGE_MS, identityMapper, type Side, type World } from '../../../lib/reconcile/world.ts';
import { handsOf, installOwnCrds, startCluster, until } from '../../support/apiserver/hands.ts';
import type { ClusterKind, TestCluster } from '../../support/apiserver/kinds.ts';

/** Two API servers with a Connection that is declared Ready by hand, and the binding controller, called by the test. */

/** How late it is for a deletion that is not to be waited for. */
const GRACE_MS = 9_000;
const shifted = (date: number | undefined, late: number): number | undefined =>
  date === undefined ? undefined : date + late;
const API = 'widgets.example.org';

export const { secrets, configmaps, namespaces, clusterBindings } = resources;

const role = (name: string, rules: readonly object[]): SentObject[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules,
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'User', name: 'limited', apiGroup: 'rbac.authorization.k8s.io' }],
  },
];

const rbac = (kind: string): ResourceRef => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: `${kind.toLowerCase()}s`,
  kind,
  namespaced: false,
});

interface Limited {
  readonly kubeconfig: string;
  readonly permit: () => Promise<void>;
}

/** A user who may do everything that is needed but create Secrets; `permit` gives that as well. */
async function limitedUser(cluster: TestCluster): Promise<Limited> {
  const { kubeconfig } = await cluster.addUser({ name: 'limited' });
  if (cluster.embedded !== undefined) {
    const permit = cluster.embedded.deny({ user: 'limited', resources: ['secrets'], verbs: ['create'] });
    return { kubeconfig, permit: () => Promise.resolve(permit()) };
  }
  const grant = async (granted: string, rules: readonly object[]): Promise<void> => {
    const admin = handsOf(cluster.kubeconfig, 'provider');
    for (const object of role(granted, rules)) await admin.create(rbac(object.kind), object);
    await admin.close();
  };
  await grant('limited', [
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get', 'list'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['*'] },
    { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'get', 'patch', 'delete'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
    { apiGroups: ['example.org'], resources: ['widgets'], verbs: ['list', 'watch'] },
  ]);
  const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['create'] }];
  return { kubeconfig, permit: () => grant('permitted', rules) };
}

/** One request of the controllers, as `consumer create secrets default/a`. */
type Intercepted = (line: string) => Promise<void>;

const VERBS = [
  'get',
  'find',
  'list',
  'listMetadata',
  'listAll',
  'listAllMetadata',
  'create',
  'apply',
  'update',
  'patch',
  'delete',
] as const;
const WRITES: ReadonlySet<string> = new Set(['create', 'apply', 'update', 'patch', 'delete']);

export class Pair {
  readonly uids: Readonly<Record<Side['which'], string>>;
  readonly hands: Readonly<Record<Side['which'], OpenKubeClient>>;
  readonly servers: readonly TestCluster[];
  readonly provider: TestCluster;
  readonly events: { reason: string; message: string }[] = [];
  /** Requests of the controllers, dry runs aside: `consumer create secrets default/a`. */
  readonly requests: string[] = [];
  /** Called before a request is sent: to change the world, or to throw. */
  before: Intercepted = () => Promise.resolve();
  /** Whose address leads to another cluster since the last answer to who it is: whoever asks now learns of it. */
  elsewhere: Side['which'] | undefined;
  /** The provider as the Connection's credential sees it; the admin's by default. */
  providerClient: OpenKubeClient;

  private constructor(servers: readonly [TestCluster, TestCluster], hands: Pair['hands'], uids: Pair['uids']) {
    this.servers = servers;
    this.provider = servers[1];
    this.hands = hands;
    this.uids = uids;
    this.providerClient = hands.provider;
  }

  static async start(kind: ClusterKind): Promise<Pair> {
    const [consumer, provider] = await Promise.all([
      startCluster(kind, 'consumer', 'consumer'),
      startCluster(kind, 'provider', 'provider'),
    ]);
    const hands = { consumer: consumer.hands, provider: provider.hands };
    const uids = { consumer: consumer.uid, provider: provider.uid };
    const pair = new Pair([consumer.server, provider.server], hands, uids);
    await pair.#install();
    return pair;
  }

  async #install(): Promise<void> {
    const { consumer, provider } = this.hands;
    await installOwnCrds(consumer);
    const freeForm = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    await provider.create(resources.crds, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: API, labels: { 'core.kbind.io/exported': 'true' } },
      spec: {
        group: 'example.org',
        scope: 'Namespaced',
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: freeForm } }],
      },
    });
    for (const client of [consumer, provider]) {
      await until('the namespace default is there', () => client.find(namespaces, { name: 'default' }));
    }
    await this.#connect();
  }

  async #connect(): Promise<void> {
    const { consumer } = this.hands;
    const made = await consumer.create(resources.connections, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: 'Connection',
      metadata: { name: 'demo' },
      spec: { kubeconfigSecretRef: { namespace: 'kbind', name: 'demo' }, schema: { source: 'CRD' } },
    });
    const value = {
      localClusterUID: this.uids.consumer,
      remoteClusterUID: this.uids.provider,
      activeSchemaSource: 'CRD',
      secretVersion: 'sha256:0000000000000001',
      exportedAPIs: [{ name: API, group: 'example.org', resource: 'widgets', scope: 'Namespaced', versions: ['v1'] }],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'AsExpected',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    };
    await consumer.patch(resources.connections, keyOf(made), {
      read: { uid: made.metadata.uid },
      operations: [{ op: 'add', path: '/status', value }],
      subresource: 'status',
    });
  }

  /** A client whose every request is noted, and may be stopped. */
  #watched(which: Side['which'], client: KubeClient): KubeClient {
    const methods = VERBS.map((verb) => {
      const call = client[verb] as (ref: ResourceRef, second?: unknown, ...rest: unknown[]) => Promise<unknown>;
      const watched = async (ref: ResourceRef, second?: unknown, ...rest: unknown[]): Promise<unknown> => {
        const name = verb.startsWith('list') ? '' : ` ${keyText(nameIn(second))}`;
        const line = `${which} ${verb} ${ref.resource}${name}`;
        if (!rest.some((option) => (option as { dryRun?: boolean } | undefined)?.dryRun === true))
          this.requests.push(line);
        await this.before(line);
        return call(ref, second, ...rest);
      };
      return [verb, watched] as const;
    });
    return { ...client, ...Object.fromEntries(methods) };
  }

  get writes(): string[] {
    return this.requests.filter((line) => WRITES.has(line.split(' ')[1] ?? ''));
  }

  world(late = 0): World {
    const watched = this.#watched('consumer', this.hands.consumer);
    const serverDate = (): number | undefined => shifted(watched.serverDate(), late);
    const cache = createReadsCache({ ...watched, serverDate }, systemClock);
    const note = (_object: KubeObject, reason: string, message: string): Promise<void> => {
      this.events.push({ reason, message });
      return Promise.resolve();
    };
    const side = (which: Side['which'], client: KubeClient): Side => {
      const own = createOwnSide({ which, uid: this.uids[which], client, clock: systemClock });
      return { ...own, confirmIdentity: (maxAgeMs) => this.#confirm(own, maxAgeMs) };
    };
    return {
      cluster: this.uids.consumer,
      consumer: side('consumer', cache.client),
      providers: {
        open: () => Promise.resolve(side('provider', this.#watched('provider', this.providerClient))),
        probe: () => Promise.reject(new Error('nothing here probes')),
      },
      reads: cache.viewFor(undefined),
      tell: { reconcile: () => Promise.resolve(), sweep: () => Promise.resolve() },
      events: { warn: note, normal: note },
      clock: { now: () => systemClock.now() + late, monotonic: () => systemClock.monotonic() },
      log: silentLogger,
      metrics: noMetrics,
      trace: new Trace(),
      signal: new AbortController().signal,
      mapper: identityMapper,
      component: 'kbind-konnector',
    };
  }

  /** The last answer, which was right, is as old as any write may believe it. */
  #confirm(side: Side, maxAgeMs: number): Promise<void> {
    if (this.elsewhere !== side.which) return side.confirmIdentity(maxAgeMs);
    return maxAgeMs >= IDENTITY_MAX_AGE_MS
      ? Promise.resolve()
      : Promise.reject(new KbindError('identity', 'another cluster', { side: side.which }));
  }

  bind(name: string, relatedResources: readonly object[], namespace?: string): Promise<KubeObject> {
    const ref = bindingRef(namespace);
    return this.hands.consumer.create(ref, {
      apiVersion: 'core.kbind.io/v1alpha1',
      kind: ref.kind,
      metadata: { name, namespace },
      spec: { connectionRef: { name: 'demo' }, apis: [{ name: API }], relatedResources },
    });
  }

  async edit(name: string, relatedResources: readonly object[]): Promise<void> {
    const { metadata } = await this.hands.consumer.get(resources.clusterBindings, { name });
    await this.hands.consumer.patch(
      resources.clusterBindings,
      { name },
      {
        read: metadata,
        operations: [{ op: 'replace', path: '/spec/relatedResources', value: relatedResources }],
      },
    );
  }

  reconcile(name: string, namespace?: string): Promise<Outcome> {
    return reconcileBinding(this.world(), this.#request(name, namespace));
  }

  #request(name: string, namespace: string | undefined): ReconcileRequest {
    const controller = namespace === undefined ? 'clusterbinding' : 'binding';
    return reconcileRequest(this.uids.consumer, controller, { namespace, name });
  }

  /** Reconciles until the condition `Ready` is there, and a pass has written nothing and waits for nothing. */
  async settle(name: string, namespace?: string): Promise<void> {
    await until(`${name} is settled`, async () => {
      this.requests.splice(0);
      const { type, reason } = await this.reconcile(name, namespace);
      if (type !== 'done' || this.writes.length > 0) throw new Error(`${type} (${reason}) after ${this.writes.join()}`);
      return (await this.condition(name, 'Ready', namespace)) !== undefined;
    });
  }

  async condition(name: string, type: string, namespace?: string): Promise<Condition | undefined> {
    const object = await this.hands.consumer.find(bindingRef(namespace), { namespace, name });
    return findCondition((object?.status as { conditions?: Condition[] } | undefined)?.conditions, type);
  }

  /** One walk of a deletion chart, by clocks that have the 8 s behind them. */
  walk(name: string, attempt: number): Promise<Outcome> {
    return reconcileBinding(this.world(GRACE_MS), { ...this.#request(name, undefined), attempt });
  }

  /** Deletes a binding and walks its chart until it is gone, by clocks that have the 8 s behind them. */
  async unbind(name: string, namespace?: string): Promise<void> {
    const ref = bindingRef(namespace);
    const { uid, resourceVersion } = (await this.hands.consumer.get(ref, { namespace, name })).metadata;
    await this.hands.consumer.delete(ref, { namespace, name }, { uid, resourceVersion });
    await until(`${name} is gone`, async () => {
      await reconcileBinding(this.world(GRACE_MS), this.#request(name, namespace));
      return (await this.hands.consumer.find(ref, { namespace, name })) === undefined;
    });
  }

  make(
    which: Side['which'],
    ref: ResourceRef,
    key: ObjectKey,
    fields: { metadata?: object; [field: string]: unknown } = {},
  ) {
    const { metadata, ...rest } = fields;
    const object = { apiVersion: 'v1', kind: ref.kind, metadata: { ...metadata, ...key }, ...rest };
    return this.hands[which].create(ref, object);
  }

  async patch(
    which: Side['which'],
    ref: ResourceRef,
    key: ObjectKey,
    operations: readonly { op: 'add' | 'remove' | 'replace'; path: string; value?: unknown }[],
  ): Promise<void> {
    const { metadata } = await this.hands[which].get(ref, key);
    await this.hands[which].patch(ref, key, { read: { uid: metadata.uid }, operations });
  }

  async remove(which: Side['which'], ref: ResourceRef, key: ObjectKey): Promise<void> {
    const { uid, resourceVersion } = (await this.hands[which].get(ref, key)).metadata;
    await this.hands[which].delete(ref, key, { uid, resourceVersion });
  }

  find(which: Side['which'], ref: ResourceRef, key: ObjectKey): Promise<KubeObject | undefined> {
    return this.hands[which].find(ref, key);
  }

  /** The Connection's credential becomes one that may not create Secrets. */
  async limit(): Promise<{ readonly permit: () => Promise<void> }> {
    const user = await limitedUser(this.provider);
    const limited = handsOf(user.kubeconfig, 'provider');
    this.providerClient = limited;
    return {
      permit: user.permit,
    };
  }

  async stop(): Promise<void> {
    if (this.providerClient !== this.hands.provider) await this.providerClient.close();
    for (const hand of Object.values(this.hands)) await hand.close();
    for (const server of this.servers) await server.stop();
  }
}

const bindingRef = (namespace: string | undefined): ResourceRef =>
  namespace === undefined ? resources.clusterBindings : resources.bindings;

/** The key in a second argument: a key, or an object that is sent. */
function nameIn(second: unknown): ObjectKey {
  const { metadata, ...key } = second as ObjectKey & { readonly metadata?: ObjectKey };
  return metadata ?? key;
}
