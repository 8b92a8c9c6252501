import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { httpApiEvent } from '../../../lib/local/lambda/events.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { encodeIngestBody, type IngestItem } from '../../../lib/queue/ingest-codec.ts';
import { signedHeaders } from '../../../lib/queue/signed-request.ts';

/** Signed requests as a forwarder sends them, with one thing wrong on demand. */

export const KEY = Buffer.from('first-key-'.repeat(4));
export const OTHER_KEY = Buffer.from('other-key-'.repeat(4));

export const instanceItem = (cluster: string, name: string): IngestItem => ({
  message: reconcileRequest(cluster, 'instance', { namespace: 'default', name }, { api: 'widgets.example.org' }),
  change: `uid-${name}/1`,
});

export interface RequestOptions {
  readonly cluster: string;
  readonly now: number;
  readonly items?: readonly IngestItem[] | undefined;
  readonly key?: Uint8Array | undefined;
  /** What is sent instead of the body that was signed. */
  readonly sentBody?: string | undefined;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly contentType?: string | undefined;
  readonly method?: 'GET' | 'POST' | undefined;
}

export interface TestRequest {
  readonly headers: Record<string, string>;
  readonly body: string;
}

export function signedRequest(options: RequestOptions): TestRequest {
  const { cluster, now, key = KEY, items = [instanceItem(cluster, 'a')] } = options;
  const body = options.body ?? encodeIngestBody(items);
  const signed = signedHeaders(key, { cluster, body: Buffer.from(body), now });
  const headers = { 'content-type': options.contentType ?? 'application/json', ...signed, ...options.headers };
  return { headers, body: options.sentBody ?? body };
}

export function ingestEvent(options: RequestOptions): APIGatewayProxyEventV2 {
  const { headers, body } = signedRequest(options);
  const { method = 'POST' } = options;
  const route = { method, path: '/v1/keys' };
  const request = { method, url: '/v1/keys', headers, body: Buffer.from(body), sourceIp: '192.0.2.1' };
  return httpApiEvent(route, request, options.now);
}
