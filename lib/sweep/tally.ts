import type { SweepTally } from '../model/request.ts';
import type { Judgement } from './needs-work.ts';

export type Tally = SweepTally;

export const emptyTally: Tally = { finalizers: 0, bindings: {}, bothSides: true };

/** Counts while a pass runs. */
export class TallyCounter {
  #finalizers: number;
  readonly #bindings: Map<string, [number, number]>;
  #bothSides: boolean;

  constructor(start: Tally = emptyTally) {
    this.#finalizers = start.finalizers;
    this.#bindings = new Map(Object.entries(start.bindings).map(([uid, [all, synced]]) => [uid, [all, synced]]));
    this.#bothSides = start.bothSides;
  }

  instance({ binding, synced }: Judgement, finalizer: boolean): void {
    if (finalizer) this.#finalizers += 1;
    if (binding === undefined) return;
    const [all, ok] = this.#bindings.get(binding.metadata.uid) ?? [0, 0];
    this.#bindings.set(binding.metadata.uid, [all + 1, ok + (synced ? 1 : 0)]);
  }

  withoutProvider(): void {
    this.#bothSides = false;
  }

  get tally(): Tally {
    return { finalizers: this.#finalizers, bindings: Object.fromEntries(this.#bindings), bothSides: this.#bothSides };
  }
}
