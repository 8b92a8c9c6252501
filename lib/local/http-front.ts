import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import { httpApiEvent, type HttpRequest } from './lambda/events.ts';
import type { LocalFunction } from './lambda/invoke.ts';
import type { DeclaredRoute } from './stack/serverless-file.ts';

/** A route and the function behind it. */
export interface RoutedFunction {
  readonly route: DeclaredRoute;
  readonly target: LocalFunction;
}

export interface HttpFrontOptions {
  readonly routed: readonly RoutedFunction[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of each invocation, with what went wrong. */
  readonly onCalled: (functionName: string, error: unknown) => void;
}

/** The HTTP API of the stack, on this machine. */
export interface HttpFront {
  readonly url: string;
  /** Takes no more requests; waits for those under way. */
  stop(): Promise<void>;
}

/** The HTTP API refuses more, bytes. */
const MAX_BODY_BYTES = 10 * 1024 * 1024;
const LOOPBACK = '127.0.0.1';

/** Serves the declared routes on a free port of the loopback interface, as an HTTP API with Lambda behind it does. */
export async function startHttpFront(options: HttpFrontOptions): Promise<HttpFront> {
  const server = createServer((request, response) => {
    answer(request, options).then(
      (reply) => send(response, reply),
      (error: unknown) => {
        options.log.error('the HTTP front failed', { error: String(error) });
        send(response, message(500, 'Internal Server Error'));
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${LOOPBACK}:${port}`,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      await closed;
    },
  };
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The gateway's own words. */
const message = (status: number, text: string): Reply => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify({ message: text })),
});

async function answer(request: IncomingMessage, options: HttpFrontOptions): Promise<Reply> {
  const { method = 'GET', url = '/' } = request;
  const path = url.split('?', 1)[0];
  const found = options.routed.find(({ route }) => route.method === method && route.path === path);
  const body = await bodyOf(request);
  if (body === undefined) return message(413, 'Request Entity Too Large');
  if (found === undefined) return message(404, 'Not Found');
  return invoke(found, requestOf(request, body), options);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks);
}

/** Names in lower case, values of one name joined: as Node has them already, but for a few that it keeps apart. */
function requestOf(request: IncomingMessage, body: Buffer): HttpRequest {
  const { method = 'GET', url = '/', headers, socket } = request;
  const plain = Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(',')]);
  return {
    method,
    url,
    headers: Object.fromEntries(plain) as Record<string, string>,
    body,
    sourceIp: socket.remoteAddress ?? '',
  };
}

async function invoke(
  { route, target }: RoutedFunction,
  request: HttpRequest,
  { clock, log, onCalled }: HttpFrontOptions,
): Promise<Reply> {
  const { name } = target.declared;
  try {
    const result = await target.invoke(httpApiEvent(route, request, clock.now()));
    onCalled(name, undefined);
    return replyOf(result);
  } catch (error) {
    log.error('a function behind the HTTP API failed', { function: name, error: String(error) });
    onCalled(name, error);
    return message(500, 'Internal Server Error');
  }
}

/** A structured answer; anything else is the body of a 200, as the payload format 2.0 has it. */
function replyOf(result: unknown): Reply {
  if (typeof result !== 'object' || result === null || !('statusCode' in result)) {
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(result ?? null)),
    };
  }
  const { statusCode, headers = {}, body = '', isBase64Encoded = false } = result as StructuredResult;
  return { status: statusCode, headers, body: Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8') };
}

interface StructuredResult {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, { ...headers, 'content-length': body.length });
  response.end(body);
}
