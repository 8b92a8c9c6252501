import type { ServerResponse } from 'node:http';
import { noSuchResource, notFound, notImplemented, StatusError } from '../api/status.ts';
import { subresources } from '../discovery/discovery.ts';
import { create } from '../rest/create.ts';
import { remove, removeCollection } from '../rest/delete.ts';
import { patch } from '../rest/patch.ts';
import { get, list } from '../rest/read.ts';
import { update } from '../rest/update.ts';
import { watch, type WatchHandle } from '../rest/watch.ts';
import type { Answer, Call } from '../rest/world.ts';
import { negotiate, type Representation } from './negotiate.ts';
import { represent, respond } from './respond.ts';
import { streamTo } from './stream.ts';
import type { IncludeObject } from '../table/table.ts';

const HANDLERS: Record<string, (call: Call) => Answer> = {
  get,
  list,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeCollection,
};

/** Answers a request to a resource. A watch is handed to `onWatch` while it runs. */
export function dispatch(
  call: Call,
  response: ServerResponse,
  accept: string | undefined,
  onWatch: (watch: WatchHandle) => void,
): void {
  const { info, version } = call;
  if (version.deprecation !== undefined) call.warnings.push(version.deprecation);
  checkSubresource(call);
  if (info.verb === 'watch') return startWatch(call, response, accept, onWatch);
  const representation = negotiate(accept);
  const handler = HANDLERS[info.verb];
  if (!handler || !isAllowed(call)) throw notAllowed();
  const answer = handler(call);
  addWarnings(response, call.warnings);
  const body = represent(answer.body, representation, version, includeObject(call));
  respond(response, answer.code, body, representation);
}

function startWatch(
  call: Call,
  response: ServerResponse,
  accept: string | undefined,
  onWatch: (watch: WatchHandle) => void,
): void {
  const representation = negotiate(accept, true);
  addWarnings(response, call.warnings);
  const sink = streamTo(response, (object, first) =>
    tableRow(represent(object, representation, call.version, includeObject(call)), representation, first),
  );
  const handle = watch(call, sink);
  response.on('close', () => handle.stop());
  onWatch(handle);
}

// Only the first Table of a stream names its columns.
function tableRow(object: unknown, { as }: Representation, first: boolean): unknown {
  return as === 'Table' && !first ? { ...(object as object), columnDefinitions: null } : object;
}

const includeObject = (call: Call): IncludeObject => (call.query.get('includeObject') ?? 'Metadata') as IncludeObject;

function checkSubresource(call: Call): void {
  const { info, resource, version } = call;
  if (!info.subresource) return;
  if (info.subresource === 'scale' && version.scale) throw notImplemented('the scale subresource');
  if (subresources(resource, version).includes(info.subresource)) return;
  throw resource.custom ? notFound(resource, info.name) : noSuchResource();
}

function isAllowed({ info, resource }: Call): boolean {
  if (info.subresource && !['get', 'update', 'patch'].includes(info.verb)) return false;
  if (info.verb === 'create' && info.name && !resource.custom) return false;
  if (['update', 'patch'].includes(info.verb) && !info.name) return resource.custom;
  return resource.custom || resource.verbs.includes(info.verb);
}

const notAllowed = (): StatusError =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

/** Adds Warning headers (RFC 7234). */
function addWarnings(response: ServerResponse, warnings: readonly string[]): void {
  if (warnings.length === 0) return;
  const values = [...new Set(warnings)].map(
    (text) => `299 - "${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`,
  );
  response.setHeader('Warning', values);
}
