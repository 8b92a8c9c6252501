import type { Network, TestCluster } from '../../support/faults/network.ts';
import type { Consumer } from './cell.ts';
import type { Monitor } from './monitor.ts';
import type { Scene } from './scene.ts';
import {
  annotation,
  bindingsOf,
  CLUSTER,
  conditionOf,
  deleting,
  keyOfSeen,
  MANAGED,
  objectsOf,
  RELATED,
  type Seen,
  type SeenBinding,
} from './seen.ts';

/** The part of the model that is about related Secrets and ConfigMaps (spec §5). */
const KINDS = ['secrets', 'configmaps'] as const;
const DIRECTIONS = ['FromProvider', 'FromConsumer'] as const;

interface Wish {
  readonly resource: (typeof KINDS)[number];
  readonly direction: (typeof DIRECTIONS)[number];
  readonly selector?: {
    readonly names?: readonly string[];
    readonly labelSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  };
}

const wishesOf = ({ spec }: SeenBinding): readonly Wish[] =>
  (spec as unknown as { relatedResources?: readonly Wish[] }).relatedResources ?? [];

const isCopy = (object: Seen): boolean =>
  object.metadata.labels?.[MANAGED] === 'true' || annotation(object, RELATED) !== undefined;

function isMeant({ selector }: Wish, { metadata }: Seen): boolean {
  const { names = [], labelSelector } = selector ?? {};
  const labels = Object.entries(labelSelector?.matchLabels ?? {});
  return (
    (names.length === 0 || names.includes(metadata.name)) &&
    labels.every(([label, value]) => metadata.labels?.[label] === value)
  );
}

/** What a Ready binding has to have made and undone, for each kind in each direction. */
export function relatedProblems(scene: Scene, binding: SeenBinding): string[] {
  return KINDS.flatMap((kind) =>
    DIRECTIONS.flatMap((direction) =>
      routeProblems({ scene, binding, kind, direction }).map(
        (text) => `${binding.kind} ${keyOfSeen(binding)}, ${kind} ${direction}: ${text}`,
      ),
    ),
  );
}

interface Route {
  readonly scene: Scene;
  readonly binding: SeenBinding;
  readonly kind: Wish['resource'];
  readonly direction: Wish['direction'];
}

function routeProblems({ scene, binding, kind, direction }: Route): string[] {
  const [from, to] = direction === 'FromProvider' ? [scene.provider, scene.cluster] : [scene.cluster, scene.provider];
  const wishes = wishesOf(binding).filter((wish) => wish.resource === kind && wish.direction === direction);
  const sources = objectsOf(from, '', kind).filter(
    (object) =>
      (binding.kind === 'ClusterBinding' || object.metadata.namespace === binding.metadata.namespace) &&
      !isCopy(object) &&
      !deleting(object) &&
      wishes.some((wish) => isMeant(wish, object)),
  );
  const targets = new Map(objectsOf(to, '', kind).map((object) => [keyOfSeen(object), object]));
  const conflicts = conditionOf(binding, 'Conflicts')?.status === 'True';
  const missing = sources.flatMap((source) => {
    const target = targets.get(keyOfSeen(source));
    return targetProblems(source, target, { binding, conflicts }).map((text) => `${keyOfSeen(source)}: ${text}`);
  });
  const asked = new Set(sources.map(keyOfSeen));
  const surplus = [...targets].filter(
    ([key, target]) => annotation(target, RELATED) === binding.metadata.uid && !deleting(target) && !asked.has(key),
  );
  return [...missing, ...surplus.map(([key]) => `${key}: a copy that nothing asks for`)];
}

function targetProblems(
  source: Seen,
  target: Seen | undefined,
  { binding, conflicts }: { readonly binding: SeenBinding; readonly conflicts: boolean },
): string[] {
  if (target === undefined) return ['without a copy'];
  if (deleting(target)) return [];
  if (annotation(target, RELATED) !== binding.metadata.uid) {
    return conflicts ? [] : ["somebody's object is in the way, and nobody says so"];
  }
  const [wanted, present] = [dataOf(source), dataOf(target)];
  const wrong = Object.entries(wanted).filter(([key, value]) => present[key] !== value);
  // Nobody else writes this key.
  const stays = present['more'] !== undefined && wanted['more'] === undefined;
  return [
    ...wrong.map(([key]) => `${key} did not arrive`),
    ...(stays ? ['a removed key stays'] : []),
    ...(source['immutable'] === target['immutable'] ? [] : ['its immutability did not arrive']),
  ];
}

const dataOf = (object: Seen): Readonly<Record<string, string>> =>
  (object['data'] ?? {}) as Readonly<Record<string, string>>;

/** Line 3 for related copies: none outlives its binding. */
export function relatedStrays({
  network,
  consumers,
  monitor,
  exempt,
}: {
  readonly network: Network;
  readonly consumers: readonly Consumer[];
  readonly monitor: Monitor;
  readonly exempt: ReadonlySet<string>;
}): string[] {
  const places = ['provider', ...consumers.map(({ name }) => name)];
  return places.flatMap((place) => {
    const cluster: TestCluster | undefined = network.clusters.get(place);
    if (cluster === undefined) return [];
    return KINDS.flatMap((kind) => objectsOf(cluster, '', kind))
      .filter((object) => !deleting(object) && !exempt.has(object.metadata.uid))
      .filter((object) => isStray(object, { network, consumers, monitor }))
      .map(
        (object) =>
          `a related copy is left without its binding: ${place} ${String(object['kind'])} ${keyOfSeen(object)}`,
      );
  });
}

function isStray(
  object: Seen,
  {
    network,
    consumers,
    monitor,
  }: { readonly network: Network; readonly consumers: readonly Consumer[]; readonly monitor: Monitor },
): boolean {
  const owner = annotation(object, RELATED);
  const consumer = consumers.find(({ uid }) => uid === annotation(object, CLUSTER));
  const cluster = network.clusters.get(consumer?.name ?? '');
  if (owner === undefined || consumer === undefined || cluster === undefined) return false;
  if (bindingsOf(cluster).some(({ metadata }) => metadata.uid === owner)) return false;
  return !['binding', 'provider'].some((name) => monitor.leftBehind.has(`${consumer.uid}|${name}`));
}
