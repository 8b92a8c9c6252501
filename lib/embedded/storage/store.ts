import { keyOfObject, type KubeObject } from '../api/object.ts';
import { tableName } from '../api/resource.ts';
import { Table, type Change } from './table.ts';

const DEFAULT_HISTORY = 4000;

/** Everything a cluster holds: one counter of revisions, one table a resource, like etcd below a kube-apiserver. */
export class Store {
  readonly #tables = new Map<string, Table>();
  readonly #observers: ((table: string, change: Change) => void)[] = [];
  readonly #historyLimit: number;
  #revision = 1;

  constructor(historyLimit = DEFAULT_HISTORY) {
    this.#historyLimit = historyLimit;
  }

  get revision(): number {
    return this.#revision;
  }

  /** The table of a resource, made when it is first asked for. */
  table(resource: { group: string; plural: string }): Table {
    const name = tableName(resource);
    let table = this.#tables.get(name);
    if (!table) this.#tables.set(name, (table = new Table(this.#revision)));
    return table;
  }

  tables(): IterableIterator<[string, Table]> {
    return this.#tables.entries();
  }

  /** Forgets a resource that is no longer served. */
  drop(resource: { group: string; plural: string }): void {
    this.#tables.get(tableName(resource))?.close();
    this.#tables.delete(tableName(resource));
  }

  /** Stores a new state of an object and returns it with its resourceVersion. */
  put(resource: { group: string; plural: string }, object: KubeObject): KubeObject {
    const revision = ++this.#revision;
    const stored = stamp(object, revision);
    const key = keyOfObject(stored);
    const previous = this.table(resource).get(key);
    const change = { key, object: stored, revision };
    this.#commit(resource, previous ? { ...change, type: 'MODIFIED', previous } : { ...change, type: 'ADDED' });
    return stored;
  }

  /** Removes an object and returns its last state, stamped with the revision of the removal. */
  remove(resource: { group: string; plural: string }, object: KubeObject): KubeObject {
    const revision = ++this.#revision;
    const stored = stamp(object, revision);
    this.#commit(resource, { type: 'DELETED', key: keyOfObject(object), object: stored, previous: object, revision });
    return stored;
  }

  /** Forgets the changes up to now: older resource versions are answered with 410. */
  compact(): void {
    for (const table of this.#tables.values()) table.compact(this.#revision);
  }

  /** Calls back after every change of any table. */
  observe(observer: (table: string, change: Change) => void): void {
    this.#observers.push(observer);
  }

  #commit(resource: { group: string; plural: string }, change: Change): void {
    this.table(resource).commit(change, this.#historyLimit);
    for (const observer of this.#observers) observer(tableName(resource), change);
  }
}

function stamp(object: KubeObject, revision: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}
