import type { KubeObject, OwnerReference } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { deleteObject, FOREGROUND, ORPHAN } from '../rest/delete.ts';
import type { World } from '../rest/world.ts';
import type { Change } from '../storage/table.ts';
import type { WorkQueue } from './queue.ts';

interface Place {
  readonly resource: Resource;
  readonly key: string;
}

/** Collects objects whose owners are gone, and ends foreground and orphaning deletions. */
export class GarbageCollector {
  readonly #world: World;
  readonly #queue: WorkQueue;
  /** Dependents by their owner's uid. */
  readonly #dependents = new Map<string, Map<string, Place>>();

  constructor(world: World, queue: WorkQueue) {
    this.#world = world;
    this.#queue = queue;
  }

  /** Called for every change of every object. */
  changed(table: string, change: Change): void {
    const [group = '', plural = ''] = table.split('/');
    const resource = this.#world.registry.get(group, plural);
    if (!resource) return;
    const place = { resource, key: change.key };
    this.#index(place, change);
    const { uid = '' } = change.object.metadata;
    if (change.type === 'DELETED') {
      this.#checkAll(this.#dependents.get(uid));
      for (const owner of change.object.metadata.ownerReferences ?? []) this.#checkOwner(owner);
      return;
    }
    if (change.object.metadata.ownerReferences?.length) this.#check(place);
    if (change.object.metadata.deletionTimestamp) this.#queue.add(`owner ${uid}`, () => this.#release(place));
  }

  #index(place: Place, change: Change): void {
    const id = `${place.resource.group}/${place.resource.plural}/${place.key}`;
    for (const { uid } of change.previous?.metadata.ownerReferences ?? []) this.#dependents.get(uid)?.delete(id);
    if (change.type === 'DELETED') return;
    for (const { uid } of change.object.metadata.ownerReferences ?? []) {
      let places = this.#dependents.get(uid);
      if (!places) this.#dependents.set(uid, (places = new Map()));
      places.set(id, place);
    }
  }

  #checkAll(places: Map<string, Place> | undefined): void {
    for (const place of places?.values() ?? []) this.#check(place);
  }

  #check(place: Place): void {
    this.#queue.add(`dependent ${place.resource.group}/${place.resource.plural}/${place.key}`, () =>
      this.#collect(place),
    );
  }

  // The owner of a dependent that went may have waited for it.
  #checkOwner(owner: OwnerReference): void {
    for (const resource of this.#world.registry.all()) {
      if (resource.kind !== owner.kind) continue;
      for (const object of this.#world.store.table(resource).values()) {
        if (object.metadata.uid !== owner.uid || !object.metadata.deletionTimestamp) continue;
        const key = object.metadata.namespace
          ? `${object.metadata.namespace}/${object.metadata.name}`
          : object.metadata.name;
        this.#queue.add(`owner ${owner.uid}`, () => this.#release({ resource, key }));
      }
    }
  }

  /** Deletes a dependent that no owner holds any more. */
  #collect({ resource, key }: Place): void {
    const object = this.#world.store.table(resource).get(key);
    const owners = object?.metadata.ownerReferences ?? [];
    if (!object || owners.length === 0 || object.metadata.deletionTimestamp) return;
    const states = owners.map((owner) => this.#stateOf(owner, object));
    if (states.includes('alive') || states.includes('unknown')) return;
    const waited = states.includes('waiting');
    deleteObject(this.#world, resource, object, { dryRun: false, propagation: waited ? 'Foreground' : 'Background' });
  }

  #stateOf(owner: OwnerReference, dependent: KubeObject): 'alive' | 'waiting' | 'gone' | 'unknown' {
    const [group = '', version] = owner.apiVersion.includes('/') ? owner.apiVersion.split('/') : ['', owner.apiVersion];
    const resource = this.#world.registry.byKind(group, owner.kind);
    if (!resource || version === undefined) return 'unknown';
    const namespace = resource.namespaced ? `${dependent.metadata.namespace ?? ''}/` : '';
    const found = this.#world.store.table(resource).get(`${namespace}${owner.name}`);
    if (!found || found.metadata.uid !== owner.uid) return 'gone';
    return found.metadata.deletionTimestamp && found.metadata.finalizers?.includes(FOREGROUND) ? 'waiting' : 'alive';
  }

  /** Ends what an owner under deletion waits for. */
  #release(place: Place): void {
    const object = this.#world.store.table(place.resource).get(place.key);
    const finalizers = object?.metadata.finalizers ?? [];
    if (!object?.metadata.deletionTimestamp) return;
    const dependents = [...(this.#dependents.get(object.metadata.uid ?? '')?.values() ?? [])];
    if (finalizers.includes(ORPHAN)) {
      for (const dependent of dependents) this.#orphan(dependent, object.metadata.uid ?? '');
      this.#dropFinalizer(place, object, ORPHAN);
    } else if (finalizers.includes(FOREGROUND)) {
      for (const dependent of dependents) this.#check(dependent);
      if (!dependents.some((dependent) => this.#blocks(dependent, object)))
        this.#dropFinalizer(place, object, FOREGROUND);
    }
  }

  #blocks({ resource, key }: Place, owner: KubeObject): boolean {
    const object = this.#world.store.table(resource).get(key);
    return (
      object?.metadata.ownerReferences?.some((each) => each.uid === owner.metadata.uid && each.blockOwnerDeletion) ??
      false
    );
  }

  #orphan({ resource, key }: Place, owner: string): void {
    const object = this.#world.store.table(resource).get(key);
    if (!object) return;
    const metadata = { ...object.metadata };
    const others = (metadata.ownerReferences ?? []).filter((each) => each.uid !== owner);
    if (others.length > 0) metadata.ownerReferences = others;
    else delete metadata.ownerReferences;
    this.#world.store.put(resource, { ...object, metadata });
  }

  #dropFinalizer({ resource }: Place, object: KubeObject, finalizer: string): void {
    const metadata = { ...object.metadata };
    const left = (metadata.finalizers ?? []).filter((each) => each !== finalizer);
    if (left.length > 0) metadata.finalizers = left;
    else delete metadata.finalizers;
    if (left.length === 0) this.#world.store.remove(resource, { ...object, metadata });
    else this.#world.store.put(resource, { ...object, metadata });
  }
}
