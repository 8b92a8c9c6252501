import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createKubeClient, type ClientOptions, type OpenKubeClient } from '../../../lib/kube/client.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import { systemClock } from '../../../lib/model/clock.ts';

/** One request as the server got it. */
export interface Seen {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Script = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

/** A server whose answers a test writes, and what it was asked. */
export class ScriptedServer {
  readonly seen: Seen[] = [];
  #script: Script;
  readonly #server: Server;
  readonly #scheme: 'http' | 'https';
  readonly #clients: OpenKubeClient[] = [];

  private constructor(script: Script, tls: ServerOptions | undefined) {
    this.#script = script;
    const listener = (request: IncomingMessage, response: ServerResponse): void => void this.#serve(request, response);
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
    this.#scheme = tls === undefined ? 'http' : 'https';
  }

  static async start(script: Script = notFound, tls?: ServerOptions): Promise<ScriptedServer> {
    const server = new ScriptedServer(script, tls);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  /** From now on requests are answered by this. */
  answer(script: Script): void {
    this.#script = script;
    this.seen.length = 0;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  /** A client of this server that does not wait between attempts. */
  client(target: Partial<ConnectionTarget> = {}, options: Partial<ClientOptions> = {}): OpenKubeClient {
    const client = createKubeClient(
      { server: this.origin, ...target },
      { clock: systemClock, egress: { allowLoopback: true }, sleep: () => Promise.resolve(), ...options },
    );
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const seen = {
      method: request.method ?? '',
      url: new URL(request.url ?? '/', 'http://server'),
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    this.seen.push(seen);
    await this.#script(seen, response, request);
  }
}

const notFound: Script = (_seen, response) => text(404, '404 page not found\n')(_seen, response, undefined as never);

/** Answers with JSON. */
export const json =
  (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Script =>
  (_seen, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof value === 'string' ? value : JSON.stringify(value));
  };

/** Answers with text. */
export const text =
  (status: number, body: string, type = 'text/plain; charset=utf-8'): Script =>
  (_seen, response) => {
    response.writeHead(status, { 'content-type': type });
    response.end(body);
  };

/** A Status as API servers answer it. */
export const status = (code: number, reason: string, more: Readonly<Record<string, unknown>> = {}) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `${reason} it is`,
  reason,
  code,
  ...more,
});
