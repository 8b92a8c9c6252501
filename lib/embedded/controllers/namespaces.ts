import type { KubeObject } from '../api/object.ts';
import { objectAt } from '../json/json.ts';
import { deleteObject } from '../rest/delete.ts';
import type { World } from '../rest/world.ts';
import type { WorkQueue } from './queue.ts';

const NAMESPACES = { group: '', plural: 'namespaces' };

/** Empties namespaces that are being deleted, and lets them go once they are. */
export class NamespaceController {
  readonly #world: World;
  readonly #queue: WorkQueue;

  constructor(world: World, queue: WorkQueue) {
    this.#world = world;
    this.#queue = queue;
  }

  /** Called when a namespace changed, or something left it. */
  check(name: string): void {
    const namespace = this.#world.store.table(NAMESPACES).get(name);
    if (namespace?.metadata.deletionTimestamp) this.#queue.add(`namespace ${name}`, () => this.#reconcile(name));
  }

  #reconcile(name: string): void {
    const { store } = this.#world;
    const namespace = store.table(NAMESPACES).get(name);
    if (!namespace?.metadata.deletionTimestamp) return;
    if (this.#emptied(name)) finish(this.#world, namespace);
  }

  #emptied(name: string): boolean {
    const { registry, store } = this.#world;
    let left = 0;
    for (const resource of registry.all()) {
      if (!resource.namespaced) continue;
      const table = store.table(resource);
      for (const object of table.values()) {
        if (object.metadata.namespace !== name) continue;
        const gone =
          !object.metadata.deletionTimestamp && deleteObject(this.#world, resource, object, { dryRun: false }).gone;
        if (!gone) left += 1;
      }
    }
    return left === 0;
  }
}

function finish({ store }: World, namespace: KubeObject): void {
  const finalizers = namespace.metadata.finalizers ?? [];
  const spec = objectAt(namespace, 'spec');
  const own = Array.isArray(spec['finalizers'])
    ? (spec['finalizers'] as string[]).filter((each) => each !== 'kubernetes')
    : [];
  if (finalizers.length === 0 && own.length === 0) store.remove(NAMESPACES, namespace);
  else
    store.put(NAMESPACES, {
      ...namespace,
      spec: { ...spec, ...(own.length > 0 ? { finalizers: own } : { finalizers: undefined }) },
    });
}
