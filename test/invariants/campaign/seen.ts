import type { TestCluster } from '../../support/faults/network.ts';
import { apis, type ApiName } from './setup.ts';

/** What an object looks like to the watchman. */
export interface Seen {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly creationTimestamp?: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly [field: string]: unknown;
}

export const SYNCER = 'core.kbind.io/syncer';
export const CLEANUP = 'core.kbind.io/cleanup';
export const CLUSTER = 'core.kbind.io/consumer-cluster-uid';
export const OBJECT = 'core.kbind.io/consumer-object-uid';
export const CONFLICT = 'core.kbind.io/conflict';
export const MANAGED = 'core.kbind.io/managed';
export const RELATED = 'core.kbind.io/related-binding';
/** All objects of a resource. */
export const objectsOf = (cluster: TestCluster, group: string, plural: string): Seen[] =>
  [...cluster.world.store.table({ group, plural }).values()] as unknown as Seen[];
export const instancesOf = (cluster: TestCluster, api: ApiName): Seen[] =>
  objectsOf(cluster, 'example.org', apis[api].resource);
export const keyOfSeen = ({ metadata }: Seen): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
export const annotation = (object: Seen | undefined, name: string): string | undefined =>
  object?.metadata.annotations?.[name];
export const has = (object: Seen | undefined, finalizer: string): boolean =>
  object?.metadata.finalizers?.includes(finalizer) ?? false;

export interface SeenBinding extends Seen {
  readonly kind: string;
  readonly spec: {
    readonly apis: readonly { readonly name: string }[];
    readonly conflictPolicy?: string;
    readonly connectionRef: { readonly name: string };
  };
}
export const bindingsOf = (cluster: TestCluster): SeenBinding[] =>
  [
    ...objectsOf(cluster, 'core.kbind.io', 'clusterbindings'),
    ...objectsOf(cluster, 'core.kbind.io', 'bindings'),
  ] as SeenBinding[];
export const lists = (binding: SeenBinding, api: string): boolean => binding.spec.apis.some(({ name }) => name === api);
export const inScope = (binding: SeenBinding, object: Seen): boolean =>
  binding.kind === 'ClusterBinding' ||
  (object.metadata.namespace !== undefined && binding.metadata.namespace === object.metadata.namespace);

interface ConditionSeen {
  readonly type: string;
  readonly status: string;
  readonly observedGeneration?: number;
}
export const conditionOf = (object: Seen | undefined, type: string): ConditionSeen | undefined =>
  (object?.status as { conditions?: ConditionSeen[] } | undefined)?.conditions?.find((each) => each.type === type);
export const deleting = (object: Seen | undefined): boolean => object?.metadata.deletionTimestamp !== undefined;
