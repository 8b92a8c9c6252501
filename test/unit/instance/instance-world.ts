import type { KubeClient } from '../../../lib/kube/types.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { Outcome } from '../../../lib/model/outcome.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { reconcileInstance } from '../../../lib/reconcile/instance/reconcile.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { API, ago, crd, FakeWorld, managed, NOW, widgets } from '../binding/fake-world.ts';
import type { FakeCluster } from '../binding/fake-cluster.ts';

export { API, ago, NOW, widgets };

export const KEY = { namespace: 'team-a', name: 'w' };
export const FINALIZER = 'core.kbind.io/syncer';
export const ready = (generation = 1): object => ({
  conditions: [{ type: 'Ready', status: 'True', reason: 'AsExpected', message: '', observedGeneration: generation }],
});

type Fields = Record<string, unknown>;

/** In-memory clusters with one instance, its managed CRD, a Ready Connection and a Ready ClusterBinding. */
export class InstanceWorld extends FakeWorld {
  source: KubeObject;
  /** What the provider's POST answers, once. */
  createError: KbindError | undefined;

  constructor(metadata: Fields = {}, spec: unknown = { size: 'x' }) {
    super();
    this.consumer.date = NOW;
    this.connection();
    this.binding({ metadata: { finalizers: [] }, status: ready() as Fields });
    this.crd();
    this.source = this.put({ finalizers: [FINALIZER], ...metadata }, { spec });
  }

  crd(metadata: Fields = managed()): void {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const versions = [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }];
    this.consumer.put(resources.crds, crd(metadata, { versions }));
  }

  put(metadata: Fields, fields: Fields = { spec: { size: 'x' } }): KubeObject {
    this.source = this.consumer.put(widgets, { metadata: { ...KEY, uid: 'source-uid', ...metadata }, ...fields });
    return this.source;
  }

  /** A provider object under the instance's name; ours unless said otherwise. */
  copy(annotations: Fields | undefined, metadata: Fields = {}, fields: Fields = {}): KubeObject {
    const ours = {
      'core.kbind.io/consumer-cluster-uid': 'consumer-uid',
      'core.kbind.io/consumer-object-uid': 'source-uid',
    };
    return this.provider.put(widgets, {
      metadata: { ...KEY, annotations: annotations ?? ours, ...metadata },
      spec: { size: 'old' },
      ...fields,
    });
  }

  override world(): World {
    const world = super.world();
    const providers = {
      ...world.providers,
      open: async (connection: Parameters<World['providers']['open']>[0]) => {
        const side = await world.providers.open(connection);
        return { ...side, client: this.#provider(side.client) };
      },
    };
    return { ...world, providers };
  }

  /** The fake with server-side apply (spec replaced, markers joined), finalizers on delete, and one failing create. */
  #provider(client: KubeClient): KubeClient {
    return {
      ...client,
      create: (ref, object, options) => {
        const error = this.createError;
        this.createError = undefined;
        return error === undefined ? client.create(ref, object, options) : Promise.reject(error);
      },
      apply: async (ref, object, read, options) => {
        const { namespace, name = '' } = object.metadata;
        const present = await client.get(ref, { namespace, name });
        if (present.metadata.resourceVersion !== read.resourceVersion) throw new KbindError('conflict', 'stale');
        const { labels, annotations } = present.metadata;
        const metadata = {
          ...present.metadata,
          labels: { ...labels, ...object.metadata.labels },
          annotations: { ...annotations, ...object.metadata.annotations },
        };
        const applied = { ...present, ...object, metadata };
        return options?.dryRun === true ? applied : this.provider.put(ref, applied);
      },
      delete: (ref, key, read, options) => deleteKeepingFinalizers(this.provider, client, [ref, key, read, options]),
    };
  }

  instanceOutcome(attempt = 0): Promise<Outcome> {
    const request = reconcileRequest('consumer-uid', 'instance', KEY, { api: API });
    return reconcileInstance(this.world(), { ...request, attempt });
  }

  get copyNow(): KubeObject | undefined {
    return this.provider.at(widgets, KEY);
  }

  get sourceNow(): KubeObject | undefined {
    return this.consumer.at(widgets, KEY);
  }
}

async function deleteKeepingFinalizers(
  cluster: FakeCluster,
  client: KubeClient,
  [ref, key, read, options]: Parameters<KubeClient['delete']>,
): Promise<void> {
  const present = await client.get(ref, key);
  if ((present.metadata.finalizers ?? []).length === 0) return client.delete(ref, key, read, options);
  cluster.put(ref, { ...present, metadata: { ...present.metadata, deletionTimestamp: ago(0) } });
}
