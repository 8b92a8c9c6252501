import { CRDS } from '../crd/model.ts';
import { tableName } from '../api/resource.ts';
import type { World } from '../rest/world.ts';
import { CrdController } from './crds.ts';
import { GarbageCollector } from './garbage.ts';
import { NamespaceController } from './namespaces.ts';
import { WorkQueue } from './queue.ts';

/** Starts what a controller manager does for the kinds that this server serves. Returns what stops it. */
export function startControllers(world: World): () => void {
  const queue = new WorkQueue();
  const crds = new CrdController(world, queue);
  const namespaces = new NamespaceController(world, queue);
  const garbage = new GarbageCollector(world, queue);
  world.store.observe((table, change) => {
    garbage.changed(table, change);
    if (table === tableName(CRDS)) crds.changed(change);
    else if (change.type === 'DELETED') crds.instanceGone(table);
    if (table === '/namespaces') namespaces.check(change.key);
    else if (change.type === 'DELETED' && change.object.metadata.namespace)
      namespaces.check(change.object.metadata.namespace);
  });
  return () => queue.stop();
}
