import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { isError, KbindError } from '../model/errors.ts';
import type { KubeClient } from '../kube/types.ts';
import { credentialOf, type ConnectionView } from './plan-set.ts';

/** A client for a provider, and who that cluster says it is. */
export interface OpenedProvider {
  readonly client: KubeClient;
  /** Identity as read through this client. */
  readonly uid: string;
  close?(): Promise<void>;
}

/** Makes a client for a Connection's provider from its Secret as it is now. Throws `KbindError`s. */
export type OpenProvider = (connection: string, options: { readonly signal: AbortSignal }) => Promise<OpenedProvider>;

/** Reads the identity of the cluster behind a client (spec §2.3). */
export type ReadIdentity = (client: KubeClient, options: { readonly signal: AbortSignal }) => Promise<string>;

/** How old an identity answer may be when a watch connects, ms. */
const IDENTITY_MAX_AGE_MS = 10_000;

export interface IdentityTools {
  readonly readIdentity: ReadIdentity;
  readonly clock: Clock;
  /** Ends with the client, not with one of those who wait for an answer. */
  readonly signal: AbortSignal;
}

/** Confirms again and again that a client leads to the cluster that it should. One question at a time, shared by all who wait. */
export class ConfirmedClient {
  readonly client: KubeClient;
  readonly #uid: string;
  readonly #tools: IdentityTools;
  #confirmed: Instant | undefined;
  #asking: Promise<void> | undefined;

  constructor(client: KubeClient, uid: string, tools: IdentityTools) {
    this.client = client;
    this.#uid = uid;
    this.#tools = tools;
  }

  /** Throws class `identity` for another cluster, and whatever the read throws. */
  async confirm(): Promise<KubeClient> {
    const last = this.#confirmed;
    if (last === undefined || ageMs(this.#tools.clock, last) > IDENTITY_MAX_AGE_MS) {
      this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
      await this.#asking;
    }
    return this.client;
  }

  /** Takes an answer that was read elsewhere. Throws class `identity` for another cluster. */
  accept(uid: string, sentAt: Instant): void {
    if (uid !== this.#uid) {
      throw new KbindError('identity', `cluster at ${this.client.host} is ${uid}, not ${this.#uid}`);
    }
    this.#confirmed = sentAt;
  }

  async #ask(): Promise<void> {
    const { clock, readIdentity, signal } = this.#tools;
    const sentAt = instant(clock);
    this.accept(await readIdentity(this.client, { signal }), sentAt);
  }
}

interface Pooled {
  readonly credential: string;
  readonly abort: AbortController;
  readonly opening: Promise<{ readonly confirmed: ConfirmedClient; readonly opened: OpenedProvider }>;
}

export interface ProviderPoolOptions {
  readonly openProvider: OpenProvider;
  readonly readIdentity: ReadIdentity;
  readonly clock: Clock;
}

/**
 * One client per Connection, made from its credential and used by all of its watches. A client whose credential changed,
 * whose Connection is gone or that was refused is closed at once and never used again.
 */
export class ProviderPool {
  readonly #options: ProviderPoolOptions;
  readonly #pooled = new Map<string, Pooled>();
  readonly #closing = new Set<Promise<unknown>>();

  constructor(options: ProviderPoolOptions) {
    this.#options = options;
  }

  /**
   * The client of a Connection, its identity confirmed within the last 10 s.
   * Throws class `identity` when the cluster is not the pinned one, and what opening or reading threw.
   */
  async client(name: string, connection: ConnectionView): Promise<KubeClient> {
    const pooled = this.#pooledFor(name, connection);
    try {
      const { confirmed } = await pooled.opening;
      return await confirmed.confirm();
    } catch (error) {
      if (this.#pooled.get(name) === pooled) this.failed(name, error);
      throw error;
    }
  }

  /** Closes what no Connection stands for any more, and what was made from an older credential. */
  retain(connections: ReadonlyMap<string, ConnectionView>): void {
    for (const [name, { credential }] of this.#pooled) {
      const connection = connections.get(name);
      if (connection === undefined || credentialOf(connection) !== credential) this.drop(name);
    }
  }

  /** After a failure that says that the client itself is no good. */
  failed(name: string, error: unknown): void {
    if (isError(error, 'unauthorized', 'identity')) this.drop(name);
  }

  drop(name: string): void {
    const pooled = this.#pooled.get(name);
    if (pooled === undefined) return;
    this.#pooled.delete(name);
    pooled.abort.abort();
    // An opening that failed left nothing to close, and whoever waited for it was told; what does not close is left.
    const closing = pooled.opening.then(({ opened }) => opened.close?.());
    const settled: Promise<unknown> = Promise.allSettled([closing]).then(() => this.#closing.delete(settled));
    this.#closing.add(settled);
  }

  async close(): Promise<void> {
    for (const name of this.#pooled.keys()) this.drop(name);
    await Promise.all(this.#closing);
  }

  #pooledFor(name: string, connection: ConnectionView): Pooled {
    const credential = credentialOf(connection);
    const held = this.#pooled.get(name);
    if (held?.credential === credential) return held;
    this.drop(name);
    const abort = new AbortController();
    const pooled: Pooled = { credential, abort, opening: this.#open(name, connection, abort.signal) };
    this.#pooled.set(name, pooled);
    // What could not be opened is opened from the Secret the next time; whoever waits for it hears why.
    pooled.opening.catch(() => {
      if (this.#pooled.get(name) === pooled) this.#pooled.delete(name);
    });
    return pooled;
  }

  async #open(name: string, connection: ConnectionView, signal: AbortSignal) {
    const uid = connection.remoteClusterUID;
    if (uid === undefined) throw new KbindError('identity', `Connection ${name} has no provider identity yet`);
    const sentAt = instant(this.#options.clock);
    const opened = await this.#options.openProvider(name, { signal });
    const { readIdentity, clock } = this.#options;
    const confirmed = new ConfirmedClient(opened.client, uid, { readIdentity, clock, signal });
    try {
      confirmed.accept(opened.uid, sentAt);
    } catch (error) {
      await opened.close?.();
      throw error;
    }
    return { confirmed, opened };
  }
}
