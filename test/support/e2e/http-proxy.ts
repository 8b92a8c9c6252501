import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import { Authority } from '../../../lib/embedded/pki/authority.ts';

/** One request as it came through. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query. A rule may change it: the changed one is sent on. */
  url: string;
  readonly headers: IncomingHttpHeaders;
  /** Status that went back; 0 until then. */
  status: number;
}

/** Answers a request itself (true), or leaves it to the API server. */
export type Rule = (seen: SeenRequest, response: ServerResponse) => boolean;

const pass: Rule = () => false;
const decode = (data: string): string => Buffer.from(data, 'base64').toString();

/** A proxy that ends TLS with a CA of its own, sees every request, and answers some of them itself. */
export class HttpProxy {
  readonly seen: SeenRequest[] = [];
  readonly kubeconfig: string;
  rule: Rule = pass;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #target: string;

  private constructor(server: Server, parts: { kubeconfig: string; agent: Agent; target: string }) {
    this.#server = server;
    this.kubeconfig = parts.kubeconfig;
    this.#agent = parts.agent;
    this.#target = parts.target;
  }

  /** A proxy that acts as the user of `kubeconfig`, whoever asks. */
  static async start(kubeconfig: string): Promise<HttpProxy> {
    const config = parse(kubeconfig) as {
      clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
      users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
    };
    const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user];
    if (cluster === undefined || user === undefined) throw new Error('the kubeconfig names no cluster or no user');
    const agent = new Agent({
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        ca: decode(cluster['certificate-authority-data']),
        cert: decode(user['client-certificate-data']),
        key: decode(user['client-key-data']),
      },
    });
    const authority = await Authority.create('test-proxy');
    const { certificate, key } = await authority.server();
    // Assigned before anybody knows the port.
    let proxy: HttpProxy;
    const server = createServer({ cert: certificate, key }, (incoming, response) => {
      void proxy.#serve(incoming, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    const own = [
      'apiVersion: v1',
      'kind: Config',
      'current-context: c',
      'contexts: [{name: c, context: {cluster: k, user: u}}]',
      `clusters: [{name: k, cluster: {server: "https://127.0.0.1:${address.port}", certificate-authority-data: ${Buffer.from(authority.certificate).toString('base64')}}}]`,
      'users: [{name: u, user: {token: through-the-proxy}}]',
    ].join('\n');
    proxy = new HttpProxy(server, { kubeconfig: own, agent, target: cluster.server });
    return proxy;
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization: _, host: __, connection: ___, ...headers } = incoming.headers;
    const seen: SeenRequest = { method: incoming.method ?? 'GET', url: incoming.url ?? '/', headers, status: 0 };
    this.seen.push(seen);
    if (this.rule(seen, response)) {
      seen.status = response.statusCode;
      incoming.resume();
      return;
    }
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    try {
      const answer = await request(`${this.#target}${seen.url}`, {
        method: seen.method as 'GET',
        headers: headers as Record<string, string>,
        body: seen.method === 'GET' ? null : incoming,
        dispatcher: this.#agent,
        signal: gone.signal,
      });
      seen.status = answer.statusCode;
      const { 'transfer-encoding': _te, connection: _c, ...answered } = answer.headers;
      response.writeHead(answer.statusCode, answered);
      response.flushHeaders();
      for await (const chunk of answer.body) response.write(chunk);
      response.end();
    } catch {
      // Either side hung up: so does the proxy.
      response.destroy();
    }
  }

  /** Ends every connection that stands now: watches must be established again. */
  dropConnections(): void {
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
    await this.#agent.destroy();
  }
}

/** Answers with a Status as an API server would. */
export function answerStatus(response: ServerResponse, code: number, reason: string, message: string): true {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }));
  return true;
}
