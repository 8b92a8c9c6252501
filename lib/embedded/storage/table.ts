import type { KubeObject } from '../api/object.ts';

/** One change, as watches see it. */
export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly key: string;
  /** The object after the change; the last state of it, with the deletion's resourceVersion, when it was deleted. */
  readonly object: KubeObject;
  readonly previous?: KubeObject;
  readonly revision: number;
}

/** Called for every change, in order. */
export type Listener = (change: Change) => void;

/** All objects of one resource, the changes that led to them, and who listens. */
export class Table {
  readonly #objects = new Map<string, KubeObject>();
  readonly #listeners = new Set<Listener>();
  readonly #closers = new Set<() => void>();
  #keys: string[] | undefined;
  #history: Change[] = [];
  /** Changes up to this revision are forgotten. */
  #compacted: number;

  constructor(revision: number) {
    this.#compacted = revision;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The newest revision whose changes are forgotten. */
  get compacted(): number {
    return this.#compacted;
  }

  get(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<KubeObject> {
    return this.#objects.values();
  }

  /** Keys in byte order of `namespace/name`. */
  keys(): readonly string[] {
    this.#keys ??= [...this.#objects.keys()].sort();
    return this.#keys;
  }

  /** Records a change and tells the listeners. */
  commit(change: Change, historyLimit: number): void {
    if (change.type === 'DELETED') this.#objects.delete(change.key);
    else this.#objects.set(change.key, change.object);
    if (change.type !== 'MODIFIED') this.#keys = undefined;
    this.#history.push(change);
    if (this.#history.length > historyLimit * 2) this.#forget(this.#history.length - historyLimit);
    for (const listener of this.#listeners) listener(change);
  }

  /** Forgets every change up to a revision. */
  compact(revision: number): void {
    const keep = this.#history.findIndex((change) => change.revision > revision);
    this.#history = keep < 0 ? [] : this.#history.slice(keep);
    this.#compacted = Math.max(this.#compacted, revision);
  }

  /** The changes after a revision that has not been compacted. */
  since(revision: number): readonly Change[] {
    const first = this.#history.findIndex((change) => change.revision > revision);
    return first < 0 ? [] : this.#history.slice(first);
  }

  /** What the table held at a revision that has not been compacted: the present with later changes undone. */
  snapshot(revision: number): { keys: readonly string[]; get(key: string): KubeObject | undefined } {
    const undone = new Map<string, KubeObject | undefined>();
    for (const change of this.since(revision)) if (!undone.has(change.key)) undone.set(change.key, change.previous);
    if (undone.size === 0) return { keys: this.keys(), get: (key) => this.get(key) };
    const keys = new Set(this.#objects.keys());
    for (const [key, object] of undone) {
      if (object) keys.add(key);
      else keys.delete(key);
    }
    return { keys: [...keys].sort(), get: (key) => (undone.has(key) ? undone.get(key) : this.get(key)) };
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls back when the resource is no longer served. */
  onClose(closer: () => void): () => void {
    this.#closers.add(closer);
    return () => void this.#closers.delete(closer);
  }

  close(): void {
    for (const closer of this.#closers) closer();
  }

  #forget(count: number): void {
    this.#compacted = Math.max(this.#compacted, this.#history[count - 1]?.revision ?? 0);
    this.#history = this.#history.slice(count);
  }
}
