import { createServer, connect, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/** A TCP proxy before an API server, or a queue, that can be cut: TLS passes through untouched. */
export class CuttableProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #port: number;
  #target: URL;
  #cut = false;
  /** Connections that anybody has tried so far. */
  accepted = 0;

  private constructor(server: Server, target: URL, port: number) {
    this.#server = server;
    this.#target = target;
    this.#port = port;
  }

  static async start(target: string): Promise<CuttableProxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    const proxy = new CuttableProxy(server, new URL(target), address.port);
    server.on('connection', (socket) => {
      proxy.#accept(socket);
    });
    return proxy;
  }

  /** Where the proxy listens. */
  address(scheme: 'http' | 'https'): string {
    return `${scheme}://127.0.0.1:${this.#port}`;
  }

  /** The kubeconfig with its server replaced by this proxy. */
  throughProxy(kubeconfig: string): string {
    return kubeconfig.replaceAll(this.#target.origin, this.address('https'));
  }

  #accept(socket: Socket): void {
    this.accepted += 1;
    if (this.#cut) {
      socket.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }

  /** Resets every connection, standing and new. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Resets every standing connection, and listens no more: new ones are refused. */
  refuse(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Ends what `cut` or `refuse` began. */
  mend(): void {
    this.#cut = false;
    if (!this.#server.listening) this.#server.listen(this.#port, '127.0.0.1');
  }

  /** Leads new connections to another server; standing ones are reset. */
  redirect(target: string): void {
    this.#target = new URL(target);
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.cut();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }
}
