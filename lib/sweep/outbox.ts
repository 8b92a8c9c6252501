import type { ReconcileRequest, SweepRequest } from '../model/request.ts';
import type { World } from '../reconcile/world.ts';

/** Keys that are told at once. */
const BATCH = 100;

/** Collects the keys that a sweep found; they count as told once {@link flush} has resolved. */
export class Outbox {
  readonly #world: World;
  readonly #change: string;
  #pending: ReconcileRequest[] = [];
  told = 0;

  constructor(world: World, sweep: Pick<SweepRequest, 'id'>) {
    this.#world = world;
    this.#change = sweep.id;
  }

  async add(request: ReconcileRequest): Promise<void> {
    this.#pending.push(request);
    if (this.#pending.length >= BATCH) await this.flush();
  }

  /** Sends what is pending. Throws when the queue does not take it: the sweep is then done again. */
  async flush(): Promise<void> {
    const batch = this.#pending;
    if (batch.length === 0) return;
    this.#pending = [];
    await this.#world.tell.reconcile(batch, this.#change);
    this.told += batch.length;
  }
}
