import { requestKey } from '../model/request.ts';
import { forwarderQueues, type ForwarderMessage, type ForwarderQueue, type Outgoing } from './sink.ts';

interface Entry {
  readonly outgoing: Outgoing;
  /** When the oldest change that this entry stands for came in, monotonic ms. */
  readonly since: number;
}

/** A batch that was handed out: give it back with {@link PendingKeys.settle}. */
export interface Taken {
  readonly queue: ForwarderQueue;
  readonly batch: readonly Outgoing[];
}

/** Keys that wait before one API's are replaced by a sweep: some tens of megabytes. */
export const MAX_PENDING_KEYS = 50_000;

/**
 * What has been seen and not yet delivered: one entry a key, whatever happened to it meanwhile, in the order of arrival.
 * A key leaves only when its delivery succeeded and nothing newer came in during it. While the queue is away the map grows
 * to the number of distinct keys; beyond {@link MAX_PENDING_KEYS} the API with most of them is left to one sweep.
 */
export class PendingKeys {
  readonly #entries: Readonly<Record<ForwarderQueue, Map<string, Entry>>> = {
    control: new Map(),
    instances: new Map(),
    work: new Map(),
  };
  readonly #inFlight = new Set<string>();
  readonly #cluster: string;
  readonly #maxKeys: number;
  #overflows = 0;

  constructor(cluster: string, maxKeys = MAX_PENDING_KEYS) {
    this.#cluster = cluster;
    this.#maxKeys = maxKeys;
  }

  /** Adds a key, or makes the newest change the one that its entry reports. */
  put(outgoing: Outgoing, now: number): void {
    const entries = this.#entries[outgoing.queue];
    const key = pendingKey(outgoing.message);
    entries.set(key, { outgoing, since: entries.get(key)?.since ?? now });
    if (this.#entries.instances.size > this.#maxKeys) this.#leaveToSweep(now);
  }

  /** The oldest messages of a queue that are not under way, at most that many; undefined when there are none. */
  take(queue: ForwarderQueue, most: number): Taken | undefined {
    const batch: Outgoing[] = [];
    for (const [key, { outgoing }] of this.#entries[queue]) {
      if (batch.length === most) break;
      if (this.#inFlight.has(key)) continue;
      this.#inFlight.add(key);
      batch.push(outgoing);
    }
    return batch.length === 0 ? undefined : { queue, batch };
  }

  /** Ends a delivery. Failed ones go to the end, so that one bad message holds nobody up. */
  settle(taken: Taken, failed: readonly number[]): void {
    const entries = this.#entries[taken.queue];
    for (const [position, outgoing] of taken.batch.entries()) {
      const key = pendingKey(outgoing.message);
      this.#inFlight.delete(key);
      const entry = entries.get(key);
      if (entry === undefined) continue;
      const newer = entry.outgoing !== outgoing;
      if (failed.includes(position) || newer) moveToEnd(entries, key, entry);
      else entries.delete(key);
    }
  }

  /** Entries of a queue that are not under way. */
  waiting(queue: ForwarderQueue): number {
    const entries = this.#entries[queue];
    let underWay = 0;
    for (const key of this.#inFlight) if (entries.has(key)) underWay += 1;
    return entries.size - underWay;
  }

  size(queue?: ForwarderQueue): number {
    if (queue !== undefined) return this.#entries[queue].size;
    return forwarderQueues.reduce((sum, name) => sum + this.#entries[name].size, 0);
  }

  /** Since when the oldest entry waits, monotonic ms. Costs a walk over the entries: for metrics only. */
  oldest(): number | undefined {
    let oldest: number | undefined;
    for (const queue of forwarderQueues) {
      for (const { since } of this.#entries[queue].values()) {
        if (oldest === undefined || since < oldest) oldest = since;
      }
    }
    return oldest;
  }

  #leaveToSweep(now: number): void {
    const api = largestApi(this.#entries.instances.values());
    if (api === undefined) return;
    for (const [key, { outgoing }] of this.#entries.instances) {
      if (apiOf(outgoing.message) === api && !this.#inFlight.has(key)) this.#entries.instances.delete(key);
    }
    this.#overflows += 1;
    const id = `overflow|${api}|${this.#overflows}|${Math.round(now)}`;
    const message = { v: 1, type: 'sweep', cluster: this.#cluster, apis: [api], id, retry: true } as const;
    this.put({ queue: 'work', message, change: id }, now);
  }
}

/** What coalesces: a reconcile by its key, a sweep by its APIs, heartbeats with each other. */
export function pendingKey(message: ForwarderMessage): string {
  if (message.type === 'reconcile') return requestKey(message);
  return message.type === 'sweep' ? `sweep|${message.apis?.join(',') ?? ''}` : 'heartbeat';
}

function moveToEnd(entries: Map<string, Entry>, key: string, entry: Entry): void {
  entries.delete(key);
  entries.set(key, entry);
}

const apiOf = (message: ForwarderMessage): string | undefined =>
  message.type === 'reconcile' ? message.api : undefined;

function largestApi(entries: Iterable<Entry>): string | undefined {
  const counts = new Map<string, number>();
  for (const { outgoing } of entries) {
    const api = apiOf(outgoing.message);
    if (api !== undefined) counts.set(api, (counts.get(api) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
