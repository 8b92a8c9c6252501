import { KbindError, type KbindError as Failure } from '../model/errors.ts';
import type { Breaker } from '../queue/breaker.ts';
import type { Providers } from '../reconcile/world.ts';

/**
 * Which clusters one piece of work came to, so that what it met there tells the breaker (design.md, rule 7). The breaker
 * stands where work starts and where a provider is opened, never in the middle: what has begun looks after its writes.
 */
export interface Visit {
  /** Seconds for which the consumer is to be left alone; 0: go on. */
  enterConsumer(): number;
  /** The same providers; those that are to be left alone are not opened. */
  guard(providers: Providers): Providers;
  /** It came through: everybody answered. */
  succeeded(): void;
  failed(error: Failure): void;
}

/** @param guarded false for work that finds out whether a provider is back: Connections and their like */
export function createVisit(breaker: Breaker, cluster: string, guarded: boolean): Visit {
  const opened = new Set<string>();

  function enterProvider(connection: string): void {
    const provider = `${cluster}|${connection}`;
    const seconds = guarded ? breaker.enter(provider) : 0;
    if (seconds > 0) {
      throw new KbindError('aborted', `the provider of Connection ${connection} is left alone for a while`, {
        side: 'provider',
        leftAloneSeconds: seconds,
      });
    }
    opened.add(provider);
  }

  return {
    enterConsumer: () => breaker.enter(cluster),
    guard: (providers) => ({
      open: async (connection) => {
        enterProvider(connection.metadata.name);
        return providers.open(connection);
      },
      probe: (connection) => {
        opened.add(`${cluster}|${connection.metadata.name}`);
        return providers.probe(connection);
      },
    }),
    succeeded() {
      for (const visited of [cluster, ...opened]) breaker.succeeded(visited);
    },
    failed(error) {
      if (error.details.side === 'provider') for (const provider of opened) breaker.failed(provider, error);
      else if (error.details.side === 'consumer') breaker.failed(cluster, error);
    },
  };
}
