import { Agent, request } from 'undici';
import { parse } from 'yaml';

/** An answer's body, loosely: tests say what they expect of it. */
export interface Body {
  apiVersion?: string;
  kind?: string;
  metadata: Meta;
  items: Body[];
  code?: number;
  reason?: string;
  message?: string;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
  };
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
  [field: string]: unknown;
}

/** Metadata of an answer. */
export interface Meta {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { uid: string; name: string }[];
  managedFields?: ManagedFields[];
  continue?: string;
  remainingItemCount?: number;
}

/** One entry of managedFields. */
export interface ManagedFields {
  manager: string;
  operation: string;
  apiVersion: string;
  time?: string;
  fieldsType: string;
  fieldsV1: Record<string, unknown>;
  subresource?: string;
}

/** A whole answer. */
export interface Reply {
  readonly code: number;
  readonly body: Body;
  readonly text: string;
  readonly headers: Record<string, string | string[] | undefined>;
}

/** What a request may carry beside its body. */
export interface Extra {
  readonly query?: Record<string, string>;
  readonly headers?: Record<string, string>;
}

/** One event of a watch. */
export interface WatchEvent {
  readonly type: string;
  readonly object: Body;
}

const EMPTY = { metadata: {}, items: [], spec: {}, status: {} } as unknown as Body;

export const PATCH = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** Speaks plain HTTP to an API server, so that a test sees exactly what the server says. */
export class Api {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #token: string | undefined;

  constructor(kubeconfig: string, anonymous = false) {
    const config = parse(kubeconfig) as Kubeconfig;
    const cluster = config.clusters[0]?.cluster;
    const user = anonymous ? {} : (config.users[0]?.user ?? {});
    if (!cluster) throw new Error('a kubeconfig without cluster');
    this.#server = cluster.server;
    this.#token = user.token;
    const pem = (data: string): string => Buffer.from(data, 'base64').toString();
    this.#agent = new Agent({
      allowH2: false,
      bodyTimeout: 0,
      connect: {
        ca: pem(cluster['certificate-authority-data']),
        ...(user['client-certificate-data'] && { cert: pem(user['client-certificate-data']) }),
        ...(user['client-key-data'] && { key: pem(user['client-key-data']) }),
      },
    });
  }

  get = (path: string, extra: Extra = {}): Promise<Reply> => this.send('GET', path, undefined, extra);
  post = (path: string, body: unknown, extra: Extra = {}): Promise<Reply> => this.send('POST', path, body, extra);
  put = (path: string, body: unknown, extra: Extra = {}): Promise<Reply> => this.send('PUT', path, body, extra);
  delete = (path: string, body?: unknown, extra: Extra = {}): Promise<Reply> => this.send('DELETE', path, body, extra);

  patch(path: string, type: keyof typeof PATCH, body: unknown, extra: Extra = {}): Promise<Reply> {
    return this.send('PATCH', path, body, { ...extra, headers: { 'content-type': PATCH[type], ...extra.headers } });
  }

  /** Server-side apply. */
  apply(path: string, body: unknown, manager: string, query: Record<string, string> = {}): Promise<Reply> {
    return this.patch(path, 'apply', body, { query: { fieldManager: manager, ...query } });
  }

  async send(method: string, path: string, body: unknown, { query = {}, headers = {} }: Extra): Promise<Reply> {
    const response = await request(this.#url(path, query), {
      method: method as 'GET',
      dispatcher: this.#agent,
      headers: { ...this.#auth(), ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && {
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    });
    const text = await response.body.text();
    return { code: response.statusCode, text, body: parseBody(text), headers: response.headers };
  }

  /** Opens a watch; a refusal is thrown as an error with the answer's text. */
  async watch(path: string, query: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Watch> {
    const abort = new AbortController();
    const response = await request(this.#url(path, { watch: 'true', ...query }), {
      dispatcher: this.#agent,
      headers: { ...this.#auth(), ...headers },
      signal: abort.signal,
    });
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${await response.body.text()}`);
    return new Watch(response.body, abort);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  #url(path: string, query: Record<string, string>): string {
    const search = new URLSearchParams(query).toString();
    return `${this.#server}${path}${search ? `${path.includes('?') ? '&' : '?'}${search}` : ''}`;
  }

  #auth(): Record<string, string> {
    return this.#token ? { authorization: `Bearer ${this.#token}` } : {};
  }
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { token?: string; 'client-certificate-data'?: string; 'client-key-data'?: string } }[];
}

function parseBody(text: string): Body {
  try {
    const parsed = JSON.parse(text) as Body;
    return typeof parsed === 'object' ? parsed : EMPTY;
  } catch {
    return EMPTY;
  }
}

/** An open watch, read event by event. */
export class Watch {
  readonly #abort: AbortController;
  readonly #lines: AsyncGenerator<string>;

  constructor(stream: AsyncIterable<Uint8Array>, abort: AbortController) {
    this.#abort = abort;
    this.#lines = lines(stream);
  }

  /** The next event, or undefined when the server ended the stream. */
  async next(): Promise<WatchEvent | undefined> {
    const { value, done } = await this.#lines.next();
    return done ? undefined : (JSON.parse(value) as WatchEvent);
  }

  /** The next events, as many as asked for. */
  async take(count: number): Promise<WatchEvent[]> {
    const events: WatchEvent[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (!event) break;
      events.push(event);
    }
    return events;
  }

  /** The first event that is as wanted. */
  async until(wanted: (event: WatchEvent) => boolean): Promise<WatchEvent> {
    for (;;) {
      const event = await this.next();
      if (!event) throw new Error('the watch ended before the event came');
      if (wanted(event)) return event;
    }
  }

  close(): void {
    this.#abort.abort();
  }
}

async function* lines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      if (end > 0) yield rest.subarray(0, end).toString();
      rest = rest.subarray(end + 1);
    }
  }
}
