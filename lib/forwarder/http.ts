import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

export interface HealthOptions {
  /** 0 takes a free one. */
  readonly port: number;
  readonly host?: string | undefined;
  readonly registry: Registry;
  ready(): boolean;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/healthz` (the process answers), `/readyz` (the control plane's watches stand) and `/metrics` (Prometheus). */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const server = createServer((request, response) => {
    void answer(request.method === 'GET' ? (request.url ?? '/') : '', response, options);
  });
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(url: string, response: ServerResponse, options: HealthOptions): Promise<void> {
  switch (url.split('?')[0]) {
    case '/healthz':
      return send(response, 200, 'ok\n');
    case '/readyz':
      return options.ready() ? send(response, 200, 'ok\n') : send(response, 503, 'watches do not stand yet\n');
    case '/metrics':
      response.setHeader('content-type', options.registry.contentType);
      return send(response, 200, await options.registry.metrics());
    default:
      return send(response, 404, 'not found\n');
  }
}

function send(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status;
  response.end(body);
}

function listen(server: Server, { port, host }: HealthOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
}
