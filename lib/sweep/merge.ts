import type { KubeObject } from '../model/api.ts';
import { compareKeys } from './key-order.ts';
import type { PagedList } from './paged-list.ts';

/** One key with what each side holds of it. */
export interface Pairing {
  readonly key: string;
  readonly source: KubeObject | undefined;
  readonly copy: KubeObject | undefined;
  /** False: the lists are in no order that can be relied on, and the side that is missing here must be looked up. */
  readonly certain: boolean;
}

/** A list with its order watched. */
class OrderedSide {
  readonly #list: PagedList;
  readonly #keyOf: (object: KubeObject) => string;
  #last: string | undefined;
  jumpedBack = false;

  constructor(list: PagedList, keyOf: (object: KubeObject) => string) {
    this.#list = list;
    this.#keyOf = keyOf;
  }

  async peek(): Promise<{ readonly object: KubeObject; readonly key: string } | undefined> {
    const object = await this.#list.peek();
    if (object === undefined) return undefined;
    const key = this.#keyOf(object);
    if (this.#last !== undefined && compareKeys(key, this.#last) < 0) this.jumpedBack = true;
    return { object, key };
  }

  take(key: string): void {
    this.#last = key;
    this.#list.shift();
  }
}

export interface MergeOptions {
  readonly consumer: PagedList;
  /** Absent: each copy must be looked up. */
  readonly provider: PagedList | undefined;
  readonly sourceKey: (object: KubeObject) => string;
  readonly copyKey: (object: KubeObject) => string;
}

/**
 * Walks both sides in the order of their keys, with one page of each in memory. Once an order jumps back, what follows is
 * yielded one by one, uncertain. Nothing is lost by what was paired before: a sweep enqueues keys, it decides nothing.
 */
export async function* mergeSides(options: MergeOptions): AsyncGenerator<Pairing, void, undefined> {
  const left = new OrderedSide(options.consumer, options.sourceKey);
  const right = options.provider === undefined ? undefined : new OrderedSide(options.provider, options.copyKey);
  for (;;) {
    const source = await left.peek();
    const copy = await right?.peek();
    const certain = right !== undefined && !left.jumpedBack && !right.jumpedBack;
    if (source === undefined && copy === undefined) return;
    const order = orderOf(source?.key, copy?.key);
    const key = (order <= 0 ? source?.key : copy?.key) ?? '';
    const both = certain && order === 0;
    yield {
      key,
      source: order <= 0 ? source?.object : undefined,
      copy: order > 0 || both ? copy?.object : undefined,
      certain,
    };
    // Only now: a walk that stops at this pairing goes on with it.
    if (order <= 0) left.take(key);
    if (order > 0 || both) right?.take(key);
  }
}

/** Negative: the source comes first; zero: the same key; positive: the copy comes first. */
function orderOf(source: string | undefined, copy: string | undefined): number {
  if (source === undefined) return 1;
  if (copy === undefined) return -1;
  return compareKeys(source, copy);
}
