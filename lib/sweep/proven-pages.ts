import type { MetaObject } from '../model/api.ts';
import { CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID } from '../model/markers.ts';

/**
 * Which pages of a consumer's lists are known to come from that very cluster: one object of the page is the source that a copy of
 * ours names by its UID. Of the others, empty ones among them, another cluster behind the address might say the same.
 */
export class ProvenPages {
  readonly #cluster: string;
  #seen = 0;
  #unproven: ReadonlySet<string>[] = [];

  /** @param cluster UID of the consumer that is meant */
  constructor(cluster: string) {
    this.#cluster = cluster;
  }

  loaded(items: readonly MetaObject[]): void {
    this.#seen += 1;
    this.#unproven.push(new Set(items.map(({ metadata }) => metadata.uid)));
  }

  compared(source: MetaObject, copy: MetaObject | undefined): void {
    const { uid } = source.metadata;
    if (this.#unproven.length === 0) return;
    const owner = copy?.metadata.annotations;
    if (owner?.[CONSUMER_CLUSTER_UID] !== this.#cluster || owner[CONSUMER_OBJECT_UID] !== uid) return;
    this.#unproven = this.#unproven.filter((page) => !page.has(uid));
  }

  /** True when something was seen, and nothing that is not proven. */
  get all(): boolean {
    return this.#seen > 0 && this.#unproven.length === 0;
  }
}
