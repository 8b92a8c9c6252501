import type { KubeObject } from '../model/api.ts';
import { isError } from '../model/errors.ts';
import type { ListPage } from '../kube/types.ts';
import { compareKeys } from './key-order.ts';

/** Items of a page of ordinary objects (design.md, rule 10). */
export const PAGE_ITEMS = 500;
/** A page that would be larger is asked for with fewer items: 500 objects of 20 KB. */
const PAGE_BYTES = 500 * 20 * 1024;
/** How often in a row a token may run out. */
const MAX_EXPIRED = 3;

/** Loads one page. */
export type LoadPage = (page: { readonly limit: number; readonly continue?: string }) => Promise<ListPage<KubeObject>>;

/** Where a list stands: the token that brings its present page again; undefined at the start, null at the end. */
export type Position = string | null | undefined;

export interface PagedListOptions {
  readonly load: LoadPage;
  /** The key by which items are compared with those of the other side. */
  readonly keyOf: (object: KubeObject) => string;
  readonly from?: Position;
  /** Items up to this key were seen already: those at the beginning are passed over. */
  readonly after?: string | undefined;
}

/** One side of a sweep, page by page, with one page in memory. No snapshot: a comparison needs none. */
export class PagedList {
  readonly #options: PagedListOptions;
  #items: readonly KubeObject[] = [];
  #index = 0;
  #page: Position;
  #next: Position;
  #limit = PAGE_ITEMS;
  #skipTo: string | undefined;
  #expired = 0;

  constructor(options: PagedListOptions) {
    this.#options = options;
    this.#page = options.from;
    this.#next = options.from;
    this.#skipTo = options.after;
  }

  /** The token that brings what is not consumed yet. */
  get position(): Position {
    return this.#index < this.#items.length ? this.#page : this.#next;
  }

  /** The first item that is not consumed; undefined at the end. */
  async peek(): Promise<KubeObject | undefined> {
    for (;;) {
      const item = this.#items[this.#index];
      if (item === undefined) {
        if (this.#next === null) return undefined;
        await this.#load(this.#next);
      } else if (this.#wasSeen(item)) {
        this.#index += 1;
      } else {
        return item;
      }
    }
  }

  /** Consumes the item that {@link peek} showed. */
  shift(): void {
    this.#index += 1;
  }

  #wasSeen(item: KubeObject): boolean {
    if (this.#skipTo === undefined) return false;
    if (compareKeys(this.#options.keyOf(item), this.#skipTo) <= 0) return true;
    this.#skipTo = undefined;
    return false;
  }

  async #load(token: string | undefined): Promise<void> {
    try {
      const page = await this.#options.load({
        limit: this.#limit,
        ...(token === undefined ? {} : { continue: token }),
      });
      this.#page = token;
      this.#next = page.continue ?? null;
      this.#items = page.items;
      this.#index = 0;
      this.#limit = fittingLimit(page);
      this.#expired = 0;
    } catch (error) {
      this.#recover(error, token);
    }
  }

  /** A token that ran out is replaced by the one in that answer; a page that is too large is asked for in parts. */
  #recover(error: unknown, token: string | undefined): void {
    if (isError(error, 'expired') && token !== undefined && this.#expired < MAX_EXPIRED) {
      this.#expired += 1;
      this.#next = error.details.continueToken;
      // Without a new token the list starts over, up to what was seen already.
      if (this.#next === undefined) this.#skipTo = this.#lastSeen() ?? this.#options.after;
      return;
    }
    if (!isError(error, 'invalid') || this.#limit === 1) throw error;
    this.#limit = Math.max(1, Math.floor(this.#limit / 8));
  }

  #lastSeen(): string | undefined {
    const last = this.#items.at(-1);
    return last === undefined ? undefined : this.#options.keyOf(last);
  }
}

/** Items of the next page, by the size of those of the last one. */
function fittingLimit({ items, bytes }: ListPage<KubeObject>): number {
  if (items.length === 0) return PAGE_ITEMS;
  return Math.max(1, Math.min(PAGE_ITEMS, Math.floor((PAGE_BYTES * items.length) / Math.max(1, bytes))));
}
