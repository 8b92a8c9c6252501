import { reconcileRequest, type Controller, type ReconcileRequest } from '../model/request.ts';
import { parseMessage } from '../queue/codec.ts';
import { toKbindError } from '../model/errors.ts';
import { CliError } from './exit-codes.ts';

/** Kinds of the product itself, as people name them. */
const KINDS: Readonly<Record<string, Controller>> = {
  connection: 'connection',
  connections: 'connection',
  clusterbinding: 'clusterbinding',
  clusterbindings: 'clusterbinding',
  binding: 'binding',
  bindings: 'binding',
  crd: 'crd',
  crds: 'crd',
  customresourcedefinition: 'crd',
  customresourcedefinitions: 'crd',
};

/** How keys are given to every command that takes one. */
export const KEY_HELP =
  'API is <plural>.<group> of instances, or connection, clusterbinding, binding, crd; the name is [NAMESPACE/]NAME.';

/**
 * The request for what somebody named.
 * @throws CliError `usage` for what cannot be a key
 */
export function keyRequest(cluster: string, api: string, text: string): ReconcileRequest {
  const [name = '', namespace, more] = text.split('/').reverse();
  if (more !== undefined) throw new CliError('usage', `${text} is no key. ${KEY_HELP}`);
  const key = namespace === undefined ? { name } : { namespace, name };
  const controller = KINDS[api.toLowerCase().replace(/\.(core\.kbind\.io|apiextensions\.k8s\.io)$/, '')];
  const request =
    controller === undefined
      ? reconcileRequest(cluster, 'instance', key, { api })
      : reconcileRequest(cluster, controller, key);
  try {
    parseMessage(JSON.stringify(request));
    return request;
  } catch (error) {
    throw new CliError('usage', `${api} ${text} is no key: ${toKbindError(error).message}. ${KEY_HELP}`);
  }
}
