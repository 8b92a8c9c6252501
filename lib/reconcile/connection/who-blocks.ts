import { keyOf, keyText, resources, type MetaObject } from '../../model/api.ts';
import { instanceResource } from '../../model/crd.ts';
import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { CONNECTION_ANNOTATION, SYNCER_FINALIZER } from '../../model/markers.ts';
import type { ListPage } from '../../kube/types.ts';
import { hasFinalizer } from '../object-writes.ts';
import type { World } from '../world.ts';

/** What keeps a Connection from going (spec §2, Deleting): each by name, with what a person can do. */

/** How many of one kind a message names. */
const NAMED = 5;
/** Instances a page. */
const PAGE_ITEMS = 500;

/** Every binding that refers to the Connection, deleting ones included: they unwind with its credentials. */
export async function referringBindings(world: World, { metadata }: Connection): Promise<AnyBinding[]> {
  const [clusterBindings, bindings] = await Promise.all([
    world.reads.clusterBindings({ fresh: true }),
    world.reads.bindings({ fresh: true }),
  ]);
  return [...clusterBindings.value, ...bindings.value].filter(({ spec }) => spec.connectionRef.name === metadata.name);
}

/** `ClusterBinding widgets (deleting), Binding default/widgets`. */
export function bindingsText(bindings: readonly AnyBinding[]): string {
  const names = bindings.map((binding) => {
    const deleting = binding.metadata.deletionTimestamp === undefined ? '' : ' (deleting)';
    return `${binding.kind} ${keyText(keyOf(binding.raw))}${deleting}`;
  });
  return `still in use by ${listed(names)}: delete these bindings`;
}

/** An API whose instances still carry our finalizer, as far as one had to look. */
export interface HeldApi {
  readonly api: string;
  readonly instances: readonly MetaObject[];
}

/**
 * APIs pinned to the Connection that hold instances with our finalizer. An API that is not among them has none: its list was
 * walked to the end, all pages from one snapshot; a 410 on the way is thrown.
 */
export async function heldApis(world: World, { metadata }: Connection): Promise<HeldApi[]> {
  const { client } = world.consumer;
  // Whether or not the managed label is still there: the pin is what leads here.
  const { items } = await client.listAllMetadata(resources.crds, { signal: world.signal });
  const held: HeldApi[] = [];
  for (const crd of items.filter((item) => item.metadata.annotations?.[CONNECTION_ANNOTATION] === metadata.name)) {
    const instances = await heldInstances(world, crd.metadata.name);
    if (instances.length > 0) held.push({ api: crd.metadata.name, instances });
  }
  return held;
}

/** Instances with our finalizer on the first page that has any. */
async function heldInstances(world: World, api: string): Promise<readonly MetaObject[]> {
  const { value: crd } = await world.reads.crd(api, { fresh: true });
  const ref = crd === undefined ? undefined : instanceResource(crd);
  // Without a served version nobody can read or write its instances, nor can they be created.
  if (ref === undefined) return [];
  let token: string | undefined;
  do {
    const page: ListPage<MetaObject> = await world.consumer.client.listMetadata(ref, {
      limit: PAGE_ITEMS,
      continue: token,
      signal: world.signal,
    });
    const instances = page.items.filter((instance) => hasFinalizer(instance, SYNCER_FINALIZER));
    if (instances.length > 0) return instances;
    token = page.continue;
  } while (token !== undefined);
  return [];
}

/** `instances of widgets.example.org (default/a, …) are still synchronized: …`. */
export function heldText(held: readonly HeldApi[]): string {
  const apis = held.map(({ api, instances }) => {
    const names = instances.map((instance) => keyText(keyOf(instance)));
    return `${api} (${listed(names)})`;
  });
  return `instances are still synchronized: ${apis.join(', ')}; delete them, or bind the API again and delete that binding`;
}

function listed(names: readonly string[]): string {
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(', ')} and more` : names.join(', ');
}
