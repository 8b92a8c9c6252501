import type { ServerResponse } from 'node:http';
import { stringify } from 'yaml';
import type { KubeObject } from '../api/object.ts';
import type { Version } from '../api/resource.ts';
import { StatusError, type Status } from '../api/status.ts';
import { isObject } from '../json/json.ts';
import { partial, tableOf, type IncludeObject } from '../table/table.ts';
import type { Representation } from './negotiate.ts';

/** Answers with an object in the representation that was asked for. */
export function respond(response: ServerResponse, code: number, body: unknown, { format }: Representation): void {
  const text = format === 'yaml' ? stringify(JSON.parse(JSON.stringify(body))) : `${JSON.stringify(body)}\n`;
  const bytes = Buffer.from(text);
  response.writeHead(code, { 'Content-Type': `application/${format}`, 'Content-Length': bytes.length });
  response.end(bytes);
}

/** Answers with plain text. */
export function respondText(response: ServerResponse, code: number, text: string): void {
  const bytes = Buffer.from(text);
  response.writeHead(code, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': bytes.length,
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(bytes);
}

/** Answers with the Status of a refusal; anything unexpected is an internal error. */
export function respondError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const status = error instanceof StatusError ? error.status : unexpected(error);
  const retry = status.details?.retryAfterSeconds;
  if (retry !== undefined) response.setHeader('Retry-After', String(retry));
  respond(response, status.code ?? 500, status, { format: 'json' });
}

function unexpected(error: unknown): Status {
  const message = error instanceof Error ? error.message : String(error);
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `Internal error occurred: ${message}`,
    reason: 'InternalError',
    code: 500,
  };
}

/** An answer's body as Table or metadata only, where that was asked for. */
export function represent(body: unknown, { as }: Representation, version: Version, include: IncludeObject): unknown {
  if (!as || !isObject(body) || body['kind'] === 'Status') return body;
  const items = body['items'] as KubeObject[] | undefined;
  if (as === 'Table') {
    const table = tableOf(items ?? [body as KubeObject], version.columns, include);
    const { resourceVersion } = (body as KubeObject).metadata;
    const metadata = items ? body['metadata'] : { ...(resourceVersion && { resourceVersion }) };
    return { ...table, metadata };
  }
  if (!items) return partial(body as KubeObject);
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: body['metadata'],
    items: items.map(partial),
  };
}
