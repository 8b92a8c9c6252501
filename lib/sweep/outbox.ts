import { toKbindError } from '../model/errors.ts';
import type { ReconcileRequest, SweepRequest } from '../model/request.ts';
import type { World } from '../reconcile/world.ts';

/** Keys that are told at once. */
const BATCH = 100;
/**
 * Keys of all clusters that wait at the instances' queue when a sweep with more of them leaves room for others: what five
 * containers work off in about two seconds, so that they have enough until it comes back.
 */
const CROWDED = 500;

/** How many keys wait at the instances' queue. */
export type ReadBacklog = () => Promise<number>;

/** Collects the keys that a sweep found; they count as told once {@link flush} has resolved. */
export class Outbox {
  readonly #world: World;
  readonly #change: string;
  readonly #backlog: ReadBacklog | undefined;
  #pending: ReconcileRequest[] = [];
  #crowded = false;
  told = 0;

  /** @param backlog absent where a pass tells no more than a few keys */
  constructor(world: World, sweep: Pick<SweepRequest, 'id'>, backlog?: ReadBacklog) {
    this.#world = world;
    this.#change = sweep.id;
    this.#backlog = backlog;
  }

  /** True once many keys wait, these among them: what the sweep would still find is told later. */
  get crowded(): boolean {
    return this.#crowded;
  }

  async add(request: ReconcileRequest): Promise<void> {
    this.#pending.push(request);
    if (this.#pending.length < BATCH) return;
    await this.flush();
    this.#crowded = await this.#isCrowded();
  }

  /** Sends what is pending. Throws when the queue does not take it: the sweep is then done again. */
  async flush(): Promise<void> {
    const batch = this.#pending;
    if (batch.length === 0) return;
    this.#pending = [];
    await this.#world.tell.reconcile(batch, this.#change);
    this.told += batch.length;
  }

  /** Where nobody can tell, nothing is held back. */
  async #isCrowded(): Promise<boolean> {
    try {
      return this.#backlog !== undefined && (await this.#backlog()) >= CROWDED;
    } catch (error) {
      this.#world.log.warn('a sweep is not held back', { error: toKbindError(error).message });
      return false;
    }
  }
}
