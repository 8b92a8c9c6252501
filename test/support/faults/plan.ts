import type { Random } from './random.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What may go wrong with one request to an API server. */
export const requestFaults = [
  'throttled',
  'error-500',
  'error-503',
  'timeout-before',
  'timeout-after',
  'refused',
  'reset-before',
  'reset-after',
  'slow',
  'half',
  'plain-404',
  'page',
  'unauthorized',
  'gone',
  'stale-read',
] as const;
/** What may go wrong with a watch that stands. */
export const watchFaults = ['silent-watch', 'cut-watch', 'late-watch'] as const;
/** What may go wrong with the queues. */
export const queueFaults = [
  'send-refused',
  'send-partial',
  'send-unanswered',
  'duplicate',
  'late',
  'reordered',
] as const;
/** What may go wrong with processes, and what lasts for a while. */
export const otherFaults = [
  'killed',
  'forwarder-killed',
  'outage',
  'other-cluster',
  'expired-token',
  'skewed-clock',
  'compacted',
] as const;

export type RequestFault = (typeof requestFaults)[number];
export type FaultKind =
  RequestFault | (typeof watchFaults)[number] | (typeof queueFaults)[number] | (typeof otherFaults)[number];
export const allFaults: readonly FaultKind[] = [...requestFaults, ...watchFaults, ...queueFaults, ...otherFaults];

/** An outage, another cluster behind the address, a token that is not taken: on one side for a while. */
export interface Episode {
  readonly kind: 'outage' | 'other-cluster' | 'expired-token';
  readonly cluster: string;
  readonly from: number;
  readonly to: number;
}

/** Which faults there are, how often, and until when. Counts what it injects. */
export class Faults {
  readonly counts = new Map<FaultKind, number>();
  readonly kinds: ReadonlySet<FaultKind>;
  readonly #random: Random;
  readonly #rate: number;
  readonly #time: VirtualTime;
  readonly #until: number;
  episodes: readonly Episode[] = [];

  constructor(
    random: Random,
    options: { rate: number; kinds: readonly FaultKind[]; time: VirtualTime; until: number },
  ) {
    this.#random = random;
    this.#rate = options.rate;
    this.#time = options.time;
    this.#until = options.until;
    this.kinds = new Set(options.kinds);
  }

  get random(): Random {
    return this.#random;
  }

  get active(): boolean {
    return this.#rate > 0 && this.#time.elapsed() < this.#until;
  }

  /** Notes that a fault was injected. */
  count(kind: FaultKind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /** One of these faults now and then, if it is among those of this run. */
  draw<Kind extends FaultKind>(kinds: readonly Kind[], weight = 1): Kind | undefined {
    if (!this.active) return undefined;
    const possible = kinds.filter((kind) => this.kinds.has(kind));
    if (possible.length === 0 || !this.#random.chance(this.#rate * weight)) return undefined;
    return this.#random.pick(possible);
  }

  /** Whether something that lasts is under way. */
  during(kind: Episode['kind'], cluster: string): boolean {
    if (!this.active || !this.kinds.has(kind)) return false;
    const now = this.#time.elapsed();
    return this.episodes.some(
      (each) => each.kind === kind && each.cluster === cluster && each.from <= now && now < each.to,
    );
  }
}
