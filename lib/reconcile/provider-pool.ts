import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { isError } from '../model/errors.ts';
import { cacheDocuments } from '../kube/document-cache.ts';
import { createKubeClient, type OpenKubeClient } from '../kube/client.ts';
import { createIdentityReader } from '../kube/identity.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import type { KubeClient } from '../kube/types.ts';
import type { KubeObject } from '../model/api.ts';
import type { SecretRef } from '../model/secret-ref.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import { readCredential, type Credential } from './credential.ts';
import { interceptClient, type Intercept } from './intercept-client.ts';

/** A credential that nobody used for this long is closed, ms. */
const IDLE_MS = 600_000;
/** A credential that was replaced or refused is closed once nothing of it is under way and unused for this long, ms. */
const RETIRED_IDLE_MS = 30_000;

/** Vetted kubeconfigs that are remembered: more than a cluster has Connections. */
const MAX_VETTED = 64;

/** One warm client of one credential, and what is known of the cluster behind it. */
export interface PooledProvider {
  readonly client: KubeClient;
  readonly identity: ClusterIdentity;
}

export interface ProviderPoolOptions {
  readonly clock: Clock;
  /** The operator's policy: a local run may talk to API servers of this machine (spec §9). */
  readonly allowLoopback: boolean;
  /** Opens a client; `createKubeClient` by default. Tests wrap it to count, to fail, or to lead elsewhere. */
  readonly connect?: (target: ConnectionTarget) => OpenKubeClient;
}

interface Entry extends PooledProvider {
  readonly raw: OpenKubeClient;
  active: number;
  usedAt: Instant;
  retired: boolean;
}

/**
 * Clients of provider clusters that one container keeps for one consumer cluster, by the version of the Secret that they
 * were made from. New bytes make a new client; the old one is closed when it is idle. No timers: a frozen function has none.
 */
export class ProviderPool {
  readonly allowLoopback: boolean;
  readonly #clock: Clock;
  readonly #connect: (target: ConnectionTarget) => OpenKubeClient;
  readonly #current = new Map<string, Entry>();
  readonly #retired = new Set<Entry>();
  readonly #vetted = new Map<string, ConnectionTarget>();
  /** Which version each Connection used last: what it used before is retired unless another one still uses it. */
  readonly #versionOf = new Map<string, string>();

  constructor(options: ProviderPoolOptions) {
    const { clock, allowLoopback } = options;
    this.allowLoopback = allowLoopback;
    this.#clock = clock;
    this.#connect =
      options.connect ?? ((target) => createKubeClient(target, { clock, egress: { allowLoopback }, side: 'provider' }));
  }

  /** The credential in a Secret; the same bytes are vetted once. Throws like {@link readCredential}. */
  vet(secret: KubeObject | undefined, ref: SecretRef): Credential {
    if (this.#vetted.size >= MAX_VETTED) this.#vetted.clear();
    return readCredential(secret, ref, { allowLoopback: this.allowLoopback, vetted: this.#vetted });
  }

  /** The client for a credential that the Connection of that name uses now. Makes no request. */
  use(connection: string, { secretVersion, target }: Credential): PooledProvider {
    const before = this.#versionOf.get(connection);
    this.#versionOf.set(connection, secretVersion);
    if (before !== undefined && before !== secretVersion) this.#retireUnused(before);
    const entry = this.#current.get(secretVersion) ?? this.#add(secretVersion, target);
    entry.usedAt = instant(this.#clock);
    this.#closeIdle();
    return entry;
  }

  /** Closes everything, at the end of the process or of a test. */
  async close(): Promise<void> {
    const entries = [...this.#current.values(), ...this.#retired];
    this.#current.clear();
    this.#retired.clear();
    await Promise.allSettled(entries.map((entry) => entry.raw.close()));
  }

  #add(secretVersion: string, target: ConnectionTarget): Entry {
    const raw = this.#connect(target);
    const watched = interceptClient(raw, (call, send) => this.#watched(entry, call, send));
    const client = {
      ...watched,
      getPath: cacheDocuments((path, options) => watched.getPath(path, options), this.#clock),
    };
    const identity = new ClusterIdentity(createIdentityReader(client, this.#clock), this.#clock);
    const entry: Entry = { raw, client, identity, active: 0, usedAt: instant(this.#clock), retired: false };
    this.#current.set(secretVersion, entry);
    return entry;
  }

  /** Counts what is under way. A 401 drops the credential at once: the Secret is read again before anybody uses it again. */
  async #watched<T>(entry: Entry, _call: Parameters<Intercept>[0], send: () => Promise<T>): Promise<T> {
    entry.active += 1;
    try {
      return await send();
    } catch (error) {
      if (isError(error, 'unauthorized')) this.#retire(entry);
      throw error;
    } finally {
      entry.active -= 1;
      entry.usedAt = instant(this.#clock);
    }
  }

  #retireUnused(secretVersion: string): void {
    const entry = this.#current.get(secretVersion);
    if (entry !== undefined && ![...this.#versionOf.values()].includes(secretVersion)) this.#retire(entry);
  }

  #retire(entry: Entry): void {
    for (const [version, current] of this.#current) if (current === entry) this.#current.delete(version);
    if (entry.retired) return;
    entry.retired = true;
    this.#retired.add(entry);
  }

  #closeIdle(): void {
    for (const [version, entry] of this.#current) {
      if (this.#idle(entry, IDLE_MS)) {
        this.#current.delete(version);
        void closeQuietly(entry);
      }
    }
    for (const entry of this.#retired) {
      if (this.#idle(entry, RETIRED_IDLE_MS)) {
        this.#retired.delete(entry);
        void closeQuietly(entry);
      }
    }
  }

  #idle(entry: Entry, ms: number): boolean {
    return entry.active === 0 && ageMs(this.#clock, entry.usedAt) > ms;
  }
}

/** Nothing is under way on it, so there is nothing to lose and nobody to tell. */
async function closeQuietly(entry: Entry): Promise<void> {
  await Promise.allSettled([entry.raw.close()]);
}
