import type { Egress } from './egress.ts';
import { Exchange, type ExchangeOptions } from './exchange.ts';
import { createReads } from './reads.ts';
import type { ConnectionTarget } from './target.ts';
import { createTransport } from './transport.ts';
import type { KubeClient } from './types.ts';
import { createWrites } from './writes.ts';

export interface ClientOptions extends ExchangeOptions {
  readonly egress: Egress;
  /** Connections beside those of watches. */
  readonly maxConnections?: number | undefined;
}

export interface OpenKubeClient extends KubeClient {
  /** Ends all connections: what is under way fails. */
  close(): Promise<void>;
}

/**
 * A client of one API server over kept-alive connections. Connects with the first request. Throws class `credential` for a
 * server that must not be connected to; a name that resolves to such an address fails its requests with the same class.
 */
export function createKubeClient(target: ConnectionTarget, options: ClientOptions): OpenKubeClient {
  const transport = createTransport(target, options);
  const exchange = new Exchange(target, transport, options);
  return {
    host: transport.host,
    serverDate: () => exchange.serverDate,
    close: () => transport.close(),
    ...createReads(exchange),
    ...createWrites(exchange),
  };
}
