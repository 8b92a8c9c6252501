/** Work of controllers, done soon and one after the other, outside of the request that caused it. */
export class WorkQueue {
  readonly #pending = new Map<string, () => void>();
  #scheduled = false;
  #stopped = false;

  /** Runs this soon; the same key waiting already is enough. */
  add(key: string, work: () => void): void {
    if (this.#stopped) return;
    this.#pending.set(key, work);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#run());
  }

  stop(): void {
    this.#stopped = true;
    this.#pending.clear();
  }

  #run(): void {
    this.#scheduled = false;
    const batch = [...this.#pending.values()];
    this.#pending.clear();
    for (const work of batch) if (!this.#stopped) work();
  }
}
