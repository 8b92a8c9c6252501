import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Rules } from './auth/rules.ts';
import type { Users } from './auth/users.ts';
import { badRequest, noSuchResource, notImplemented, StatusError } from './api/status.ts';
import { mediaType, readBody } from './http/body.ts';
import { dispatch } from './http/dispatch.ts';
import { readRequestInfo, type RequestInfo } from './http/info.ts';
import { negotiate } from './http/negotiate.ts';
import { respond, respondError, respondText } from './http/respond.ts';
import { documentAt } from './discovery/documents.ts';
import type { KeyPair } from './pki/authority.ts';
import { accessReview, whoAmI, type Question } from './rest/reviews.ts';
import type { Registry } from './registry/registry.ts';
import type { WatchHandle } from './rest/watch.ts';
import type { Call, User, World } from './rest/world.ts';

/** One request, as tests count them. */
export interface ObservedRequest extends RequestInfo {
  readonly user: string;
  readonly query: URLSearchParams;
}

/** What a server is made of. */
export interface ServerParts {
  readonly world: World;
  readonly users: Users;
  readonly rules: Rules;
  readonly identity: KeyPair;
  readonly authority: string;
  readonly observe: (request: ObservedRequest) => void;
}

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** The HTTPS side of a cluster. */
export class ApiServer {
  readonly #parts: ServerParts;
  readonly #server: Server;
  readonly #watches = new Set<WatchHandle>();

  constructor(parts: ServerParts) {
    this.#parts = parts;
    const { certificate, key } = parts.identity;
    const options = { cert: certificate, key, ca: parts.authority, requestCert: true, rejectUnauthorized: false };
    this.#server = createServer(options, (request, response) => void this.handle(request, response));
    this.#server.keepAliveTimeout = 0;
    this.#server.requestTimeout = 0;
  }

  /** Listens on a free port of the loopback address. */
  async listen(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#server.once('error', reject);
    this.#server.listen(0, '127.0.0.1', () => resolve(undefined));
    await promise;
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every running watch, as a restart of the server would. */
  stopWatches(): void {
    for (const watch of this.#watches) watch.stop();
  }

  /** Sends a bookmark on every watch that takes them. */
  bookmark(): void {
    for (const watch of this.#watches) watch.bookmark();
  }

  async close(): Promise<void> {
    this.stopWatches();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#server.close(() => resolve(undefined));
    this.#server.closeAllConnections();
    await promise;
  }

  /** Answers one request; tests come in here without a connection. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(request, response);
    } catch (error) {
      if (error instanceof PageNotFound) respondText(response, 404, '404 page not found\n');
      else respondError(response, error);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://127.0.0.1');
    const info = infoOf(request, url);
    const body = WRITES.has(info.method) ? await readBody(request) : Buffer.alloc(0);
    const user = this.#parts.users.authenticate(request);
    this.#parts.observe({ ...info, user: user.name, query: url.searchParams });
    this.#parts.rules.check(user, info);
    if (!info.isResource) return this.#document(request, response, info);
    const review = this.#review(info, {
      body,
      contentType: mediaType(request.headers['content-type']),
      user,
      rules: this.#parts.rules,
    });
    if (review) return respond(response, 201, review, negotiate(request.headers.accept));
    const call = this.#call(request, { info, body, user, query: url.searchParams });
    dispatch(call, response, request.headers.accept, (watch) => this.#track(watch, response));
  }

  #track(watch: WatchHandle, response: ServerResponse): void {
    this.#watches.add(watch);
    response.on('close', () => this.#watches.delete(watch));
  }

  #document(request: IncomingMessage, response: ServerResponse, info: RequestInfo): void {
    const { world } = this.#parts;
    const found = documentAt(info, world.registry, request.headers.accept ?? '', request.headers.host ?? '');
    if (!found) return respondText(response, 404, '404 page not found\n');
    if (info.method !== 'GET' && info.method !== 'HEAD')
      throw new StatusError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    if (typeof found.body === 'string') return respondText(response, 200, found.body);
    if (found.contentType) {
      response.setHeader('Content-Type', found.contentType);
      return void response.end(JSON.stringify(found.body));
    }
    respond(response, 200, found.body, negotiate(request.headers.accept));
  }

  #review(info: RequestInfo, question: Question): object | undefined {
    if (info.verb !== 'create' || info.version !== 'v1') return undefined;
    if (info.group === 'authorization.k8s.io' && info.plural === 'selfsubjectaccessreviews')
      return accessReview(question);
    if (info.group === 'authentication.k8s.io' && info.plural === 'selfsubjectreviews') return whoAmI(question);
    return undefined;
  }

  #call(
    request: IncomingMessage,
    parts: { info: RequestInfo; body: Buffer; user: User; query: URLSearchParams },
  ): Call {
    const { info } = parts;
    const { world } = this.#parts;
    const found = world.registry.find(info.group, info.version, info.plural);
    const { resource } = found ?? {};
    const wrongScope =
      resource &&
      (resource.namespaced
        ? info.namespace === '' && (info.name !== '' || info.verb === 'create')
        : info.namespace !== '' && resource.plural !== 'namespaces');
    if (!found || wrongScope) throw notServed(info, world.registry);
    return {
      world,
      ...parts,
      ...found,
      contentType: mediaType(request.headers['content-type']),
      userAgent: request.headers['user-agent'] ?? '',
      warnings: [],
    };
  }
}

function infoOf(request: IncomingMessage, url: URL): RequestInfo {
  try {
    return readRequestInfo(request.method ?? 'GET', url.pathname, url.searchParams);
  } catch {
    throw badRequest('invalid URL escape');
  }
}

/** Kubernetes' own groups, which a real server would know. */
const KNOWN_GROUPS = new Set([
  'admissionregistration.k8s.io', 'apiregistration.k8s.io', 'apps', 'authentication.k8s.io', 'authorization.k8s.io', 'autoscaling',
  'batch', 'certificates.k8s.io', 'discovery.k8s.io', 'events.k8s.io', 'networking.k8s.io', 'node.k8s.io', 'policy',
  'rbac.authorization.k8s.io', 'scheduling.k8s.io', 'storage.k8s.io',
]); // prettier-ignore
const KNOWN_CORE = new Set([
  'bindings', 'componentstatuses', 'endpoints', 'nodes', 'persistentvolumeclaims', 'persistentvolumes', 'pods', 'podtemplates',
  'replicationcontrollers', 'serviceaccounts', 'services',
]); // prettier-ignore

/** An answer in plain text, which is what a server gives where no API is. */
class PageNotFound extends Error {}

const isBuiltIn = ({ group, version }: RequestInfo, registry: Registry): boolean =>
  registry
    .all()
    .some(
      (resource) =>
        !resource.custom && resource.group === group && resource.versions.some(({ name }) => name === version),
    );

function notServed(info: RequestInfo, registry: Registry): Error {
  const isKnown = info.group === '' ? KNOWN_CORE.has(info.plural) : KNOWN_GROUPS.has(info.group);
  if (isKnown) return notImplemented(`${info.plural}${info.group ? ` in ${info.group}` : ''}`);
  return isBuiltIn(info, registry) ? noSuchResource() : new PageNotFound();
}
