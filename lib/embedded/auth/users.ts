import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { unauthorized } from '../api/status.ts';
import type { User } from '../rest/world.ts';

export const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
const AUTHENTICATED = 'system:authenticated';

/** The users of a cluster, by their tokens; certificates speak for themselves. */
export class Users {
  readonly #tokens = new Map<string, User>();
  readonly #removed = new Set<string>();

  add(user: User, token?: string): void {
    this.#removed.delete(user.name);
    if (token) this.#tokens.set(token, user);
  }

  /** Neither tokens nor certificates of this user work from now on. */
  remove(name: string): void {
    this.#removed.add(name);
    for (const [token, user] of this.#tokens) if (user.name === name) this.#tokens.delete(token);
  }

  /** Who sent this request; credentials that are not known are refused, none at all are anonymous. */
  authenticate(request: IncomingMessage): User {
    const { authorization } = request.headers;
    if (authorization !== undefined) return this.#byToken(authorization);
    const user = byCertificate(request.socket as TLSSocket);
    if (user && this.#removed.has(user.name)) throw unauthorized();
    return user ?? ANONYMOUS;
  }

  #byToken(header: string): User {
    const token = /^bearer\s+(\S+)\s*$/i.exec(header)?.[1];
    const user = token === undefined ? undefined : this.#tokens.get(token);
    if (!user) throw unauthorized();
    return withAuthenticated(user);
  }
}

/** Reading a certificate costs more than most requests, and a connection has only one. */
const known = new WeakMap<TLSSocket, User>();

function byCertificate(socket: TLSSocket): User | undefined {
  const before = known.get(socket);
  if (before) return before;
  if (!socket.authorized) return undefined;
  const { subject } = socket.getPeerCertificate() as { subject?: { CN?: string; O?: string | string[] } };
  if (!subject?.CN) return undefined;
  const user = withAuthenticated({ name: subject.CN, groups: [subject.O ?? []].flat() });
  known.set(socket, user);
  return user;
}

const withAuthenticated = (user: User): User => ({ ...user, groups: [...user.groups, AUTHENTICATED] });
