import { keyText, resources, type KubeObject, type ObjectKey, type ResourceRef } from '../model/api.ts';
import { instant, type Clock, type Instant } from '../model/clock.ts';
import type { AnyBinding, Connection } from '../model/kinds.ts';
import { silentLogger, type Logger } from '../model/log.ts';
import { MANAGED_LABEL } from '../model/markers.ts';
import type { KubeClient } from '../kube/types.ts';
import { interceptClient } from './intercept-client.ts';
import { readBindings, readConnection, readConnections } from './readable.ts';
import { ReadCache } from './read-cache.ts';
import type { Believed, SharedReads } from './world.ts';

/**
 * How much later than a message's SentTimestamp a read must have left to be trusted to show what the message is about, ms:
 * the queue's clock and ours may differ by that (design.md, rule 9).
 */
export const SPARE_MS = 1_000;

/** What a container keeps for 2 s of one consumer cluster. */
export interface ReadsCache {
  /**
   * The consumer's client to use beside this cache: whatever is written through it to a kind that is cached here, with
   * success or not, makes the cache forget that kind. Put it into `world.consumer`.
   */
  readonly client: KubeClient;
  /**
   * The view for one message.
   * @param sentAtMs the message's SentTimestamp (epoch ms); undefined: only what is read from now on serves.
   * @param receivedAt when the message reached this container, now by default: what was asked for after that serves too.
   */
  viewFor(sentAtMs: number | undefined, receivedAt?: Instant): SharedReads;
  /** Drops everything, reads under way included: a 401, a write past {@link client}. */
  forget(): void;
}

const cachedKinds: ReadonlySet<string> = new Set(
  [resources.connections, resources.clusterBindings, resources.bindings, resources.crds, resources.secrets].map(
    ({ resource }) => resource,
  ),
);

/** @param client of the consumer cluster; its reads are shared and must outlive any single message. */
export function createReadsCache(client: KubeClient, clock: Clock, log: Logger = silentLogger): ReadsCache {
  const cache = new ReadCache(clock);
  const observed = interceptClient(client, async (call, send) => {
    try {
      return await send();
    } finally {
      const kind = call.ref?.resource ?? '';
      if (call.kind === 'write' && call.dryRun !== true && cachedKinds.has(kind)) cache.forget(kind);
    }
  });
  return {
    client: observed,
    viewFor: (sentAtMs, receivedAt = instant(clock)) => new View(client, cache, log, serves(sentAtMs, receivedAt)),
    forget: () => {
      cache.forget();
    },
  };
}

type Serves = (startedAt: Instant) => boolean;

/** An answer serves a message whose cause it must show: its request left after the message was sent, or after it came in. */
function serves(sentAtMs: number | undefined, receivedAt: Instant): Serves {
  return (startedAt) =>
    startedAt.mono >= receivedAt.mono || (sentAtMs !== undefined && startedAt.wall >= sentAtMs + SPARE_MS);
}

const MANAGED_KEY = `${resources.crds.resource} managed`;

class View implements SharedReads {
  readonly #client: KubeClient;
  readonly #cache: ReadCache;
  readonly #log: Logger;
  readonly #serves: Serves;

  constructor(client: KubeClient, cache: ReadCache, log: Logger, serves: Serves) {
    this.#client = client;
    this.#cache = cache;
    this.#log = log;
    this.#serves = serves;
  }

  async connection(name: string): Promise<Believed<Connection | undefined>> {
    const { value, sentAt } = await this.#list(resources.connections, {});
    return { value: readConnection(value, name), sentAt };
  }

  async connections(options: { readonly fresh?: boolean } = {}): Promise<Believed<readonly Connection[]>> {
    const { value, sentAt } = await this.#list(resources.connections, options);
    return { value: readConnections(value, this.#reading(options)), sentAt };
  }

  async clusterBindings(options: { readonly fresh?: boolean } = {}): Promise<Believed<readonly AnyBinding[]>> {
    const { value, sentAt } = await this.#list(resources.clusterBindings, options);
    return { value: readBindings(value, 'ClusterBinding', this.#reading(options)), sentAt };
  }

  async bindings(
    options: { readonly namespace?: string; readonly fresh?: boolean } = {},
  ): Promise<Believed<readonly AnyBinding[]>> {
    const { value, sentAt } = await this.#list(resources.bindings, options);
    const inScope =
      options.namespace === undefined
        ? value
        : value.filter(({ metadata }) => metadata.namespace === options.namespace);
    return { value: readBindings(inScope, 'Binding', this.#reading(options)), sentAt };
  }

  async crd(name: string, options: { readonly fresh?: boolean } = {}): Promise<Believed<KubeObject | undefined>> {
    if (options.fresh !== true && this.#cache.has(MANAGED_KEY, this.#serves)) {
      const { value, sentAt } = await this.managedCrds();
      const managed = value.find(({ metadata }) => metadata.name === name);
      if (managed !== undefined) return { value: managed, sentAt };
    }
    return this.#find(resources.crds, { name }, options.fresh);
  }

  managedCrds(options: { readonly fresh?: boolean } = {}): Promise<Believed<readonly KubeObject[]>> {
    return this.#read(MANAGED_KEY, options.fresh === true, async () => {
      const page = await this.#client.listAll(resources.crds, { labelSelector: `${MANAGED_LABEL}=true` });
      return page.items;
    });
  }

  secret(key: ObjectKey): Promise<Believed<KubeObject | undefined>> {
    return this.#find(resources.secrets, key);
  }

  #find(ref: ResourceRef, key: ObjectKey, fresh = false): Promise<Believed<KubeObject | undefined>> {
    const cacheKey = `${ref.resource} ${keyText(key)}`;
    return this.#read(cacheKey, fresh, () => this.#client.find(ref, key));
  }

  /** A whole kind. A fresh list of one namespace asks for that alone; a shared one always serves all namespaces. */
  #list(
    ref: ResourceRef,
    { namespace, fresh = false }: { readonly namespace?: string; readonly fresh?: boolean },
  ): Promise<Believed<readonly KubeObject[]>> {
    const scope = fresh && namespace !== undefined ? { namespace } : {};
    const cacheKey = fresh && namespace !== undefined ? `${ref.resource} in ${namespace}` : `${ref.resource} list`;
    return this.#read(cacheKey, fresh, async () => {
      const page = await this.#client.listAll(ref, scope);
      return page.items;
    });
  }

  #read<T>(cacheKey: string, fresh: boolean, send: () => Promise<T>): Promise<Believed<T>> {
    return fresh ? this.#cache.readAfterNow(cacheKey, send) : this.#cache.read(cacheKey, this.#serves, send);
  }

  #reading({ fresh = false }: { readonly fresh?: boolean }): { final: boolean; log: Logger } {
    return { final: fresh, log: this.#log };
  }
}
