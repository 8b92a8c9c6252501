import { createSecureContext, type SecureContext } from 'node:tls';
import { Pool, buildConnector, type Dispatcher } from 'undici';
import { KbindError, type ErrorClass } from '../model/errors.ts';
import { checkHost, guardedLookup, refusedAddress, refusedRange, type Egress } from './egress.ts';
import { requestError, type Asked } from './status.ts';
import type { ConnectionTarget } from './target.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Until the headers of an answer, and between two pieces of its body. */
export const ANSWER_TIMEOUT_MS = 10_000;
/** Connections to one cluster beside those of watches, which last and would starve requests. */
const DEFAULT_CONNECTIONS = 16;
/** More watches than one cluster has APIs. */
const MAX_WATCHES = 4_096;
/** Shorter than the idle time of common load balancers, so that a request rarely meets a connection that is going away. */
const KEEP_ALIVE_MS = 30_000;
/** API servers answer with one line per warning: many of them fit. */
const MAX_HEADER_BYTES = 64 * 1024;

/** WHATWG URLs write every spelling of an IPv4 address in four decimal parts. */
const LOOPBACK_HOST = /^(?:127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The connections to one API server. */
export interface Transport {
  /** `host:port`. */
  readonly host: string;
  /** Path prefix of the server's URL, without a slash at its end. */
  readonly base: string;
  /** For requests that end. */
  readonly requests: Dispatcher;
  /** For watches. */
  readonly streams: Dispatcher;
  /** Ends all connections at once: what is under way fails. */
  close(): Promise<void>;
}

/**
 * Opens nothing yet. HTTP/1.1 only (a GOAWAY loses requests), bounded connections, no redirects (undici follows none by
 * itself), no proxy, and the address actually connected to is checked. Throws class `credential` for a server that is refused.
 */
export function createTransport(
  target: ConnectionTarget,
  options: { readonly egress: Egress; readonly maxConnections?: number | undefined },
): Transport {
  const url = serverUrl(target.server, options.egress);
  const common: Pool.Options = {
    connect: guardedConnector(target, options.egress),
    allowH2: false,
    pipelining: 1,
    headersTimeout: ANSWER_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const requests = new Pool(url.origin, {
    ...common,
    connections: options.maxConnections ?? DEFAULT_CONNECTIONS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
  });
  const streams = new Pool(url.origin, { ...common, connections: MAX_WATCHES });
  return {
    host: url.host,
    base: url.pathname.replace(/\/+$/, ''),
    requests,
    streams,
    close: async () => {
      await Promise.all([requests.destroy(), streams.destroy()]);
    },
  };
}

function serverUrl(server: string, egress: Egress): URL {
  if (!URL.canParse(server)) throw new KbindError('credential', 'cluster.server is no URL');
  const url = new URL(server);
  const secure = url.protocol === 'https:' || (url.protocol === 'http:' && egress.allowLoopback && isHere(url));
  if (!secure) throw new KbindError('credential', 'cluster.server is not https');
  checkHost(url.hostname, egress);
  return url;
}

const isHere = ({ hostname }: URL): boolean => hostname === 'localhost' || LOOPBACK_HOST.test(hostname);

/** One context for all connections; throws class `credential` for key material that OpenSSL does not take. */
function secureContextOf({ ca, clientCertificate, clientKey }: ConnectionTarget): SecureContext {
  try {
    return createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(clientCertificate === undefined ? {} : { cert: clientCertificate }),
      ...(clientKey === undefined ? {} : { key: clientKey }),
    });
  } catch {
    throw new KbindError('credential', 'certificate or key of the connection is not valid');
  }
}

function guardedConnector(target: ConnectionTarget, egress: Egress): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    lookup: guardedLookup(egress),
    rejectUnauthorized: true,
    secureContext: secureContextOf(target),
    ...(target.tlsServerName === undefined ? {} : { servername: target.tlsServerName }),
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      // Nothing has been sent yet. The lookup has refused names already; this holds whatever a resolver or a future
      // undici does between the two.
      const range = refusedRange(socket.remoteAddress ?? '', egress);
      if (range === undefined) return callback(null, socket);
      socket.destroy();
      return callback(refusedAddress(range), null);
    });
  };
}

/** Errors after which a request of any method but POST is sent again (client-facts.md, HTTP). */
const RESETS = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const CONNECTS = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code === 'string') return code;
  return error instanceof AggregateError ? codeOf(error.errors[0]) : '';
}

/** True for resets and connect errors. A connect timeout is none: waiting another 5 s helps nobody. */
export const isRetryable = (error: unknown): boolean => RESETS.has(codeOf(error)) || CONNECTS.has(codeOf(error));

/** A failure without an answer as one of our errors: says the code only, because messages may hold addresses and names. */
export function networkError(error: unknown, asked: Asked, aborted: boolean): KbindError {
  if (error instanceof KbindError) return error;
  if (error instanceof Error && error.cause instanceof KbindError) return error.cause;
  const code = codeOf(error);
  const errorClass: ErrorClass = aborted ? 'aborted' : isInternal(code) ? 'internal' : 'unavailable';
  const name = code === '' && error instanceof Error ? error.name : code;
  return requestError(errorClass, asked, aborted ? 'aborted' : `no answer (${name})`, error);
}

/** Codes for arguments that we built wrongly. */
const isInternal = (code: string): boolean => code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_ARG_TYPE';
