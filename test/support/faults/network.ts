import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { ApiServer } from '../../../lib/embedded/server.ts';
import { builtinResources } from '../../../lib/embedded/builtin/resources.ts';
import { startControllers } from '../../../lib/embedded/controllers/controllers.ts';
import { Rules } from '../../../lib/embedded/auth/rules.ts';
import { Registry } from '../../../lib/embedded/registry/registry.ts';
import type { World } from '../../../lib/embedded/rest/world.ts';
import { Store } from '../../../lib/embedded/storage/store.ts';
import { Exchange } from '../../../lib/kube/exchange.ts';
import { createReads } from '../../../lib/kube/reads.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { createWrites } from '../../../lib/kube/writes.ts';
import type { Clock } from '../../../lib/model/clock.ts';
import { FIELD_MANAGER } from '../../../lib/model/markers.ts';
import { requestFaults, type Faults, type RequestFault } from './plan.ts';
import type { Random } from './random.ts';
import { Body, networkFailure, StreamBody } from './bodies.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Somebody who sends requests: a container of a function, a forwarder, a person. Once dead, nothing of it reaches anybody. */
export interface Actor {
  readonly name: string;
  /** The product, whose writes are watched over, or a person. */
  readonly product: boolean;
  /** The consumer whose credentials a provider sees: names the tenant. */
  readonly tenant?: string | undefined;
  readonly clock: Clock;
  alive: boolean;
  /** Awaits so far; the one that it dies at. */
  awaits: number;
  diesAt: number | undefined;
  onDeath?: (() => void) | undefined;
  /** Asked at each await: true makes it die there. */
  crashes?: (() => boolean) | undefined;
}

/** Never resolves: what a process waits for that is no more. */
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** Passes one await of an actor. False: it is dead, from this moment or before. */
export function passAwait(actor: Actor): boolean {
  if (!actor.alive) return false;
  actor.awaits += 1;
  const dies = actor.crashes?.() === true || (actor.diesAt !== undefined && actor.awaits >= actor.diesAt);
  if (!dies) return true;
  actor.alive = false;
  actor.onDeath?.();
  return false;
}

/** An API server of the network with what it holds. */
export interface TestCluster {
  readonly name: string;
  readonly world: World;
  readonly server: ApiServer;
  /** UID of its kube-system namespace. */
  readonly uid: string;
  away: boolean;
  /** How it is out of the product's reach: nobody listens, nothing comes back, or all that comes back is that status. */
  outage: Away | undefined;
  /** Attempts of the product to reach it, the client's own retries among them. */
  attempts: number;
  /** The product's watches that stand. */
  readonly streams: Set<StreamBody>;
  stop(): void;
}

export type Away = 'refused' | 'silent' | 429 | 503;

/** What somebody does, or what goes wrong, in the middle of a request of the product for one address. */
export interface Trap {
  readonly cluster: string;
  /** The end of the address. */
  readonly address: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly watch?: boolean;
  /** Only requests of actors with this in their name. */
  readonly who?: string;
  /** A request is on its way to the server, or the answer of the server on its way back. */
  readonly moment: 'request' | 'answer';
  /** How many requests it springs for: once by default. */
  times?: number;
  /** Milliseconds since the beginning after which it lies in wait no more. */
  readonly until?: number;
  /** What it answers with goes wrong with the request that is on its way. */
  spring(): Promise<RequestFault | undefined | void>;
}

/** Who does what is being done right now; undefined: the cluster's own controllers. */
export interface Doing {
  readonly actor: Actor;
  readonly verb: string;
}

const FIRST_NAMESPACES = ['default', 'kube-system'];
const SLOW_ACT_MS = 2_500;
const SLOW_ANSWER_MS = 13_000;
const HEADERS_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** API servers in this process, their addresses, and everything that goes wrong on the way to them. */
export class Network {
  readonly clusters = new Map<string, TestCluster>();
  /** Host → cluster and whether its credential is taken. */
  readonly routes = new Map<string, { cluster: string; valid: boolean }>();
  readonly time: VirtualTime;
  readonly faults: Faults;
  readonly #random: Random;
  readonly #answers = new Map<string, Buffer>();
  doing: Doing | undefined;
  requests = 0;
  /** When an address began to lead to another cluster, the last time; ms since the beginning. */
  ledElsewhereAt = Number.NEGATIVE_INFINITY;
  #traps: Trap[] = [];

  constructor(time: VirtualTime, faults: Faults, random: Random) {
    this.time = time;
    this.faults = faults;
    this.#random = random;
  }

  addCluster(name: string, uid: string, skewMs = 0): TestCluster {
    const now = (): Date => new Date(this.time.now() + skewMs);
    const world: World = { store: new Store(), registry: new Registry(), now };
    const stop = startControllers(world);
    for (const resource of builtinResources()) world.registry.register(resource);
    for (const namespace of FIRST_NAMESPACES) {
      const metadata = {
        name: namespace,
        uid: namespace === 'kube-system' ? uid : `${uid}-${namespace}`,
        creationTimestamp: now().toISOString(),
      };
      world.store.put(
        { group: '', plural: 'namespaces' },
        {
          apiVersion: 'v1',
          kind: 'Namespace',
          metadata,
          spec: { finalizers: ['kubernetes'] },
          status: { phase: 'Active' },
        },
      );
    }
    const server = new ApiServer({
      world,
      rules: new Rules(),
      users: { authenticate: (request: IncomingMessage) => authenticate(request) } as never,
      identity: {} as never,
      authority: undefined as never,
      observe: (request) => {
        this.doing = { actor: actors.get(request.user) ?? unknownActor, verb: request.verb };
        // Dispatch follows at once and is synchronous.
        queueMicrotask(() => (this.doing = undefined));
      },
    });
    const cluster: TestCluster = {
      name,
      world,
      server,
      uid,
      away: false,
      outage: undefined,
      attempts: 0,
      streams: new Set(),
      stop,
    };
    this.clusters.set(name, cluster);
    return cluster;
  }

  /** A client for a host as one actor uses it. */
  client(host: string, actor: Actor, side: 'consumer' | 'provider'): KubeClient {
    actors.set(actor.name, actor);
    const dispatcher = {
      request: (options: Dispatcher.RequestOptions) => this.#request(host, actor, options),
      compose: () => dispatcher,
    } as unknown as Dispatcher;
    const transport = { host, base: '', requests: dispatcher, streams: dispatcher, close: () => Promise.resolve() };
    const options = { clock: actor.clock, side, random: () => this.#random.next() };
    const exchange = new Exchange({ server: `https://${host}` }, transport, options);
    return { host, serverDate: () => exchange.serverDate, ...createReads(exchange), ...createWrites(exchange) };
  }

  /** Springs once. */
  setTrap(trap: Trap): void {
    this.#traps.push(trap);
  }

  /** Nobody lies in wait any more. */
  clearTraps(): void {
    this.#traps = [];
  }

  /** Springs those that lie in wait for this request, and says what goes wrong with it. */
  async #springTraps(cluster: string, moment: Trap['moment'], call: Exchanged): Promise<RequestFault | undefined> {
    if (!call.actor.product || this.#traps.length === 0) return undefined;
    const { method, path } = call.options;
    const address = path.split('?')[0] ?? '';
    const sprung = this.#traps.filter(
      (trap) =>
        (trap.until ?? Number.POSITIVE_INFINITY) > this.time.elapsed() &&
        trap.cluster === cluster &&
        trap.moment === moment &&
        trap.method === method &&
        (trap.watch ?? false) === call.isWatch &&
        call.actor.name.includes(trap.who ?? '') &&
        address.endsWith(trap.address),
    );
    for (const trap of sprung) trap.times = (trap.times ?? 1) - 1;
    this.#traps = this.#traps.filter(({ times }) => times !== 0);
    // Side by side: a request that several lie in wait for is not on its way for longer than the slowest of them takes.
    const faults = await Promise.all(sprung.map((trap) => trap.spring()));
    const fault = faults.findLast((each) => each !== undefined) ?? undefined;
    if (fault !== undefined) this.faults.count(fault);
    return fault;
  }

  /** Where the address of a provider leads: to another cluster for a while, and back. */
  lead(host: RegExp, cluster: string): void {
    const now = this.time.elapsed();
    for (const [name, route] of this.routes) {
      if (!host.test(name) || route.cluster === cluster) continue;
      route.cluster = cluster;
      this.ledElsewhereAt = now;
    }
  }

  #latency(): number {
    return 1 + this.#random.below(12);
  }

  async #request(host: string, actor: Actor, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
    if (!passAwait(actor)) return never();
    if (actor.product) this.requests += 1;
    const { time, faults } = this;
    const person = !actor.product;
    const isWatch = options.path.includes('watch=true');
    const drawn = person ? undefined : faults.draw(requestFaults);
    const fault = this.#fits(drawn, options, isWatch);
    if (fault !== undefined) faults.count(fault);
    const signal = options.signal as AbortSignal | undefined;
    let stop = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      stop = (): void => reject(networkFailure('UND_ERR_ABORTED'));
      if (signal?.aborted === true) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    });
    aborted.catch(() => undefined);
    const work = this.#exchange({ host, actor, options, isWatch, fault });
    work.catch(() => undefined);
    const answer = await Promise.race(
      person ? [work] : [work, aborted, ...(fault === 'slow' ? [headersTimeout(time)] : [])],
    )
      .catch((error: unknown) => {
        if (!passAwait(actor)) return never<Dispatcher.ResponseData>();
        throw error;
      })
      // Signals live longer than requests: each would otherwise hear of the end of them all.
      .finally(() => signal?.removeEventListener('abort', stop));
    return passAwait(actor) ? answer : never();
  }

  /** Faults that make no sense for a request become none. */
  #fits(fault: RequestFault | undefined, options: Dispatcher.RequestOptions, isWatch: boolean) {
    const get = options.method === 'GET';
    if (fault === 'gone' && !(isWatch || options.path.includes('continue='))) return undefined;
    if (fault === 'stale-read' && !options.path.includes('resourceVersion=0')) return undefined;
    if (isWatch && (fault === 'half' || fault === 'slow' || fault === 'page')) return undefined;
    if (fault === 'page' && !get) return undefined;
    return fault;
  }

  async #exchange(call: Exchanged): Promise<Dispatcher.ResponseData> {
    const { host, actor, options } = call;
    let { fault } = call;
    const { time, faults } = this;
    const person = !actor.product;
    if (!person) await pass(time, fault === 'slow' ? this.#random.below(SLOW_ACT_MS) : this.#latency());
    const route = this.routes.get(host);
    let cluster = this.clusters.get(route?.cluster ?? '');
    if (route === undefined || cluster === undefined) throw networkFailure('ENOTFOUND');
    if (!person) {
      cluster.attempts += 1;
      if (cluster.outage !== undefined) return this.#absence(cluster.outage);
      if (cluster.away || faults.during('outage', cluster.name)) {
        faults.count('outage');
        throw networkFailure('ECONNREFUSED');
      }
      if (faults.during('expired-token', cluster.name)) {
        faults.count('expired-token');
        return status(time, 401, 'Unauthorized');
      }
      if (faults.during('other-cluster', cluster.name)) {
        cluster = this.clusters.get('impostor') ?? cluster;
      }
      if (cluster.name === 'impostor') faults.count('other-cluster');
      fault = (await this.#springTraps(cluster.name, 'request', call)) ?? fault;
      const refusal = this.#refusal(fault);
      if (refusal !== undefined) return refusal;
    }
    if (!route.valid) return status(time, 401, 'Unauthorized');
    const answer = await this.#act(cluster, actor, { options, isWatch: call.isWatch });
    if (person || call.isWatch) return answer;
    await this.#springTraps(cluster.name, 'answer', call);
    await pass(time, fault === 'slow' ? this.#random.below(SLOW_ANSWER_MS) : this.#latency());
    if (fault === 'reset-after') throw networkFailure('ECONNRESET');
    if (fault === 'timeout-after') return status(time, 504, 'Timeout');
    if (fault === 'half') (answer.body as unknown as Body).cut();
    return answer;
  }

  /** What comes back from a cluster that is away. */
  async #absence(away: Away): Promise<Dispatcher.ResponseData> {
    if (away === 'refused') throw networkFailure('ECONNREFUSED');
    if (away === 429) return status(this.time, 429, 'TooManyRequests', { 'retry-after': '1' });
    if (away === 503) return status(this.time, 503, 'ServiceUnavailable');
    await pass(this.time, CONNECT_TIMEOUT_MS);
    throw networkFailure('UND_ERR_CONNECT_TIMEOUT');
  }

  #refusal(fault: Exchanged['fault']): Dispatcher.ResponseData | undefined {
    const { time } = this;
    switch (fault) {
      case 'throttled':
        return status(time, 429, 'TooManyRequests', { 'retry-after': String(1 + this.#random.below(4)) });
      case 'error-500':
        return status(time, 500, 'InternalError');
      case 'error-503':
        return status(time, 503, 'ServiceUnavailable');
      case 'timeout-before':
        return status(time, 504, 'Timeout');
      case 'unauthorized':
        return status(time, 401, 'Unauthorized');
      case 'gone':
        return status(time, 410, 'Expired');
      case 'plain-404':
        return text(time, 404, '404 page not found\n', { 'content-type': 'text/plain; charset=utf-8' });
      case 'page':
        return text(time, 200, '<html>sign in</html>', { 'content-type': 'text/html' });
      case 'refused':
        throw networkFailure('ECONNREFUSED');
      case 'reset-before':
        throw networkFailure('ECONNRESET');
      default:
        return undefined;
    }
  }

  #act(
    cluster: TestCluster,
    actor: Actor,
    call: { options: Dispatcher.RequestOptions; isWatch: boolean },
  ): Promise<Dispatcher.ResponseData> {
    const { options, isWatch } = call;
    const request = fakeRequest(options, actor);
    return new Promise((resolve, reject) => {
      const stream = isWatch
        ? new StreamBody(this.time, this.faults, {
            actor,
            idleMs: options.bodyTimeout ?? 0,
            signal: options.signal as AbortSignal,
          })
        : undefined;
      const response = fakeResponse({
        stream,
        open: (code, headers) => {
          if (stream !== undefined && code === 200)
            resolve({
              statusCode: code,
              headers: dated(cluster, headers),
              body: stream,
            } as unknown as Dispatcher.ResponseData);
        },
        end: (code, headers, body) => {
          const shown = this.#staleOr(options, body);
          resolve({
            statusCode: code,
            headers: dated(cluster, headers),
            body: new Body(shown),
          } as unknown as Dispatcher.ResponseData);
        },
      });
      if (stream !== undefined && actor.product) {
        cluster.streams.add(stream);
        stream.onClose(() => cluster.streams.delete(stream));
      }
      stream?.onClose(() => response.closed());
      cluster.server.handle(request, response.response).catch(reject);
    });
  }

  /** A read with resourceVersion=0 may be answered from a cache. */
  #staleOr(options: Dispatcher.RequestOptions, body: Buffer): Buffer {
    if (!options.path.includes('resourceVersion=0')) return body;
    const before = this.#answers.get(options.path);
    this.#answers.set(options.path, body);
    if (before === undefined || this.faults.draw(['stale-read'], 5) === undefined) return body;
    return before;
  }
}

interface Exchanged {
  readonly host: string;
  readonly actor: Actor;
  readonly options: Dispatcher.RequestOptions;
  readonly isWatch: boolean;
  readonly fault: RequestFault | undefined;
}

const actors = new Map<string, Actor>();
const unknownActor = { name: 'unknown', product: true } as Actor;

/** Forgets who took part in a run. */
export const forgetActors = (): void => actors.clear();

const headerText = (value: unknown): string =>
  typeof value === 'number' ? String(value) : typeof value === 'string' ? value : JSON.stringify(value);

const authenticate = (request: IncomingMessage) => ({
  name: (request as unknown as { actor: Actor }).actor.name,
  groups: ['system:masters', 'system:authenticated'],
});

const pass = (time: VirtualTime, ms: number): Promise<void> => new Promise((resolve) => void time.after(ms, resolve));

const headersTimeout = (time: VirtualTime): Promise<never> =>
  new Promise(
    (_, reject) => void time.after(HEADERS_TIMEOUT_MS, () => reject(networkFailure('UND_ERR_HEADERS_TIMEOUT'))),
  );

const dated = (cluster: TestCluster, headers: Record<string, string>): Record<string, string> => ({
  ...headers,
  date: cluster.world.now().toUTCString(),
});

function status(
  time: VirtualTime,
  code: number,
  reason: string,
  extra: Record<string, string> = {},
): Dispatcher.ResponseData {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `injected ${reason}`,
    reason,
    code,
  };
  return text(time, code, JSON.stringify(body), { 'content-type': 'application/json', ...extra });
}

const text = (time: VirtualTime, statusCode: number, body: string, headers: Record<string, string>) =>
  ({
    statusCode,
    headers: { date: new Date(time.now()).toUTCString(), ...headers },
    body: new Body(Buffer.from(body)),
  }) as unknown as Dispatcher.ResponseData;

function fakeRequest(options: Dispatcher.RequestOptions, actor: Actor): IncomingMessage {
  const body = options.body as string | undefined;
  return {
    actor,
    method: options.method,
    // What people write is theirs.
    url: actor.product ? options.path : options.path.replace(`fieldManager=${FIELD_MANAGER}`, 'fieldManager=kubectl'),
    headers: { ...(options.headers as Record<string, string>) },
    async *[Symbol.asyncIterator]() {
      if (body !== undefined) yield Buffer.from(body);
    },
  } as unknown as IncomingMessage;
}

interface ResponseTo {
  readonly stream: StreamBody | undefined;
  open(code: number, headers: Record<string, string>): void;
  end(code: number, headers: Record<string, string>, body: Buffer): void;
}

function fakeResponse(to: ResponseTo): { response: ServerResponse; closed(): void } {
  const headers: Record<string, string> = {};
  const closers: (() => void)[] = [];
  let code = 0;
  const response = {
    headersSent: false,
    writableEnded: false,
    setHeader(name: string, value: unknown) {
      headers[name.toLowerCase()] = headerText(value);
    },
    writeHead(status: number, more: Record<string, unknown> = {}) {
      code = status;
      for (const [name, value] of Object.entries(more)) headers[name.toLowerCase()] = headerText(value);
      response.headersSent = true;
      to.open(code, headers);
    },
    flushHeaders: () => undefined,
    write: (chunk: string) => to.stream?.push(Buffer.from(chunk)),
    end(body: Buffer | string = '') {
      response.writableEnded = true;
      if (to.stream !== undefined && code === 200) to.stream.end();
      else to.end(code, headers, Buffer.from(body));
    },
    on(event: string, listener: () => void) {
      if (event === 'close') closers.push(listener);
      return response;
    },
    destroy: () => to.stream?.end(),
  };
  return {
    response: response as unknown as ServerResponse,
    closed: () => closers.forEach((closer) => closer()),
  };
}
