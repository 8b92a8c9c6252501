import { createHash } from 'node:crypto';
import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { isError, type KbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import type { FleetCluster } from '../fleet/registry.ts';
import { checkFleetLease, holdFleetLease } from '../fleet/lease.ts';
import { createKubeClient } from '../kube/client.ts';
import { createEvents } from '../kube/events.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import type { KubeClient } from '../kube/types.ts';
import { interceptClient } from '../reconcile/intercept-client.ts';
import { ProviderPool } from '../reconcile/provider-pool.ts';
import { createReadsCache, type ReadsCache } from '../reconcile/reads.ts';
import { createOwnSide } from '../reconcile/side.ts';
import type { Events, Side } from '../reconcile/world.ts';

/** Who writes, for Events and Leases. */
export const COMPONENT = 'kbind-konnector';

/** A session that nobody used for this long is closed, ms. */
const IDLE_MS = 600_000;
/**
 * Warm sessions of one container. A cluster is refreshed every 30 s, so a larger cell would otherwise keep all of them: each
 * holds its lists and, for some seconds after use, its sockets, of which a function may have 1,024 with its files.
 */
export const MAX_SESSIONS = 256;
/** The installation's Lease is looked at again when the last look is older, ms (design.md, rule 13). */
const LEASE_MAX_AGE_MS = 60_000;
const ANY_AGE_MS = Number.POSITIVE_INFINITY;

/** Tests wrap clients to count requests and to make them fail. */
export type WrapClient = (client: KubeClient, side: Side['which']) => KubeClient;

export interface SessionOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly allowLoopback: boolean;
  /** Installation and stage: holder of the consumers' Leases. */
  readonly holder: string;
  /** `look`: a cluster that belongs to nobody is not taken. For the CLI, which explains and writes nothing of the product's. */
  readonly lease?: 'hold' | 'look' | undefined;
  readonly wrapClient?: WrapClient | undefined;
  /** Told when a consumer refuses the credential, or is another cluster: what the registry remembers of it is not to be used. */
  readonly distrust: (uid: string) => void;
}

/** What a container keeps warm of one consumer cluster. */
export interface Session {
  /** Its client forgets cached reads when it writes what is cached. */
  readonly side: Side;
  readonly reads: ReadsCache;
  readonly pool: ProviderPool;
  readonly events: Events;
}

interface Entry extends Session {
  readonly fingerprint: string;
  readonly client: KubeClient & { close(): Promise<void> };
  usedAt: Instant;
  active: number;
  refused: boolean;
  leaseSeenAt: Instant | undefined;
  /** What the last look found when another installation holds the cluster. */
  heldByAnother: KbindError | undefined;
  leaseLook: Promise<void> | undefined;
}

const fingerprintOf = ({ target, revision }: FleetCluster): string =>
  createHash('sha256')
    .update(JSON.stringify([target, revision ?? '']))
    .digest('hex');

/** Warm sessions by cluster. No timers: a frozen container has none. */
export class Sessions {
  readonly #options: SessionOptions;
  readonly #entries = new Map<string, Entry>();
  /** Replaced, but perhaps still at work. */
  readonly #retired = new Set<Entry>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Uses the session of a cluster: its identity was confirmed before the first use, its Lease within the last minute.
   * @throws KbindError class `identity`, `held` (by another installation), or what a failed read threw
   */
  async use<T>(cluster: FleetCluster, work: (session: Session) => Promise<T>): Promise<T> {
    const entry = this.#entryOf(cluster);
    entry.active += 1;
    try {
      await entry.side.confirmIdentity(ANY_AGE_MS);
      await this.#confirmLease(entry);
      return await work(entry);
    } catch (error) {
      if (isError(error, 'identity') && error.details.side === 'consumer') this.#options.distrust(cluster.uid);
      throw error;
    } finally {
      entry.active -= 1;
      entry.usedAt = instant(this.#options.clock);
    }
  }

  /** Closes everything, at the end of the process or of a test. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values(), ...this.#retired];
    this.#entries.clear();
    this.#retired.clear();
    await Promise.all(entries.map(closeEntry));
  }

  #entryOf(cluster: FleetCluster): Entry {
    const fingerprint = fingerprintOf(cluster);
    this.#closeIdle();
    const known = this.#entries.get(cluster.uid);
    if (known !== undefined && known.fingerprint === fingerprint && !known.refused) return known;
    if (known === undefined) this.#makeRoom();
    const entry = this.#open(cluster, fingerprint);
    this.#entries.set(cluster.uid, entry);
    if (known !== undefined) this.#retired.add(known);
    return entry;
  }

  #open(cluster: FleetCluster, fingerprint: string): Entry {
    const { clock, log, distrust } = this.#options;
    const raw = this.#connect(cluster.target, 'consumer');
    const client = interceptClient(raw, async (_call, send) => {
      try {
        return await send();
      } catch (error) {
        // A 401 drops the credential at once: the next one to come reads the registry again.
        if (isError(error, 'unauthorized')) {
          entry.refused = true;
          distrust(cluster.uid);
        }
        throw error;
      }
    });
    const reads = createReadsCache(client, clock, log);
    const entry: Entry = {
      fingerprint,
      client: raw,
      side: createOwnSide({ which: 'consumer', uid: cluster.uid, client: reads.client, clock }),
      reads,
      pool: new ProviderPool({
        clock,
        allowLoopback: this.#options.allowLoopback,
        connect: (target) => this.#connect(target, 'provider'),
      }),
      events: createEvents(client, clock, COMPONENT, log),
      usedAt: instant(clock),
      active: 0,
      refused: false,
      leaseSeenAt: undefined,
      heldByAnother: undefined,
      leaseLook: undefined,
    };
    return entry;
  }

  #connect(target: ConnectionTarget, side: Side['which']): KubeClient & { close(): Promise<void> } {
    const { clock, allowLoopback, wrapClient } = this.#options;
    const client = createKubeClient(target, { clock, egress: { allowLoopback }, side });
    if (wrapClient === undefined) return client;
    const wrapped = interceptClient(wrapClient(client, side), (_call, send) => send());
    return { ...wrapped, close: () => client.close() };
  }

  /** Work that comes together shares one look. */
  async #confirmLease(entry: Entry): Promise<void> {
    const { clock } = this.#options;
    if (entry.leaseSeenAt === undefined || ageMs(clock, entry.leaseSeenAt) >= LEASE_MAX_AGE_MS) {
      entry.leaseLook ??= this.#lookAtLease(entry);
      await entry.leaseLook;
    }
    if (entry.heldByAnother !== undefined) throw entry.heldByAnother;
  }

  async #lookAtLease(entry: Entry): Promise<void> {
    const asked = instant(this.#options.clock);
    try {
      const { holder, lease } = this.#options;
      await (lease === 'look' ? checkFleetLease(entry.side.client, holder) : holdFleetLease(entry.side, holder));
      entry.heldByAnother = undefined;
      entry.leaseSeenAt = asked;
    } catch (error) {
      if (!isError(error, 'held')) throw error;
      // Remembered as long as the opposite: everything that comes meanwhile is turned away without a request.
      entry.heldByAnother = error;
      entry.leaseSeenAt = asked;
    } finally {
      entry.leaseLook = undefined;
    }
  }

  #closeIdle(): void {
    for (const [uid, entry] of this.#entries) {
      if (!this.#isIdle(entry, IDLE_MS)) continue;
      this.#entries.delete(uid);
      void closeEntry(entry);
    }
    for (const entry of this.#retired) {
      if (!this.#isIdle(entry, 0)) continue;
      this.#retired.delete(entry);
      void closeEntry(entry);
    }
  }

  /** For one more: the least recently used goes; what is at work stays, whatever their number. */
  #makeRoom(): void {
    const surplus = this.#entries.size - (MAX_SESSIONS - 1);
    if (surplus <= 0) return;
    const atRest = [...this.#entries].filter(([, { active }]) => active === 0);
    atRest.sort(([, a], [, b]) => a.usedAt.mono - b.usedAt.mono);
    for (const [uid, entry] of atRest.slice(0, surplus)) {
      this.#entries.delete(uid);
      void closeEntry(entry);
    }
  }

  #isIdle(entry: Entry, ms: number): boolean {
    return entry.active === 0 && ageMs(this.#options.clock, entry.usedAt) >= ms;
  }
}

/** Nothing is under way on it, so there is nothing to lose and nobody to tell. */
async function closeEntry(entry: Entry): Promise<void> {
  await Promise.allSettled([entry.client.close(), entry.pool.close()]);
}
