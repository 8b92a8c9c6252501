import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { KbindError } from '../model/errors.ts';
import type { ConnectionTarget } from './target.ts';

/**
 * Connections from kubeconfigs that the operator of this process owns, and from inside a cluster. They may run commands
 * and read files, which is what operators use them for; never hand them a kubeconfig from a Secret (that is
 * parseForeignKubeconfig). Only the forwarder, the local runner and the CLI import this module: it brings client-node.
 */

/**
 * The current context of a kubeconfig: a path, or the YAML itself when it has more than one line.
 * Throws class `credential` with the reason, without any of its values.
 */
export function loadOperatorTarget(pathOrYaml: string): ConnectionTarget {
  const config = new KubeConfig();
  try {
    if (pathOrYaml.includes('\n')) config.loadFromString(pathOrYaml);
    else config.loadFromFile(pathOrYaml);
  } catch (error) {
    throw new KbindError('credential', `kubeconfig: ${loadProblem(error)}`, {}, error);
  }
  return targetOf(config);
}

/** The cluster that this process runs in, by its service account. Throws class `credential` outside of one. */
export function loadInClusterTarget(): ConnectionTarget {
  const config = new KubeConfig();
  try {
    config.loadFromCluster();
    return targetOf(config);
  } catch (error) {
    throw new KbindError('credential', 'this process runs in no cluster: no service account', {}, error);
  }
}

/** System errors say the path and no contents; a parser's words would quote them. */
const loadProblem = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('E')
    ? `cannot be read (${error.code})`
    : 'is not valid';

function targetOf(config: KubeConfig): ConnectionTarget {
  const cluster = config.getCurrentCluster();
  if (cluster === null || cluster === undefined) {
    throw new KbindError('credential', 'kubeconfig: current-context names no cluster');
  }
  if (cluster.skipTLSVerify) unsupported('insecure-skip-tls-verify');
  if (cluster.proxyUrl !== undefined) unsupported('proxy-url');
  return {
    server: cluster.server,
    ...optional('ca', material(cluster.caData, cluster.caFile, 'certificate-authority')),
    ...optional('tlsServerName', cluster.tlsServerName),
    ...optional('contextNamespace', config.getContextObject(config.getCurrentContext())?.namespace),
    ...credentialsOf(config),
  };
}

function unsupported(field: string): never {
  throw new KbindError('credential', `kubeconfig: ${field} is not supported`);
}

function credentialsOf(config: KubeConfig): Omit<ConnectionTarget, 'server'> {
  const user = config.getCurrentUser();
  if (user === null || user === undefined) return {};
  const { certData, certFile, keyData, keyFile, token, username, password, exec, authProvider } = user;
  const renewed = exec !== undefined || authProvider !== undefined;
  return {
    ...optional('clientCertificate', material(certData, certFile, 'client-certificate')),
    ...optional('clientKey', material(keyData, keyFile, 'client-key')),
    ...(renewed ? { authorization: () => renewedAuthorization(config) } : optional('token', token)),
    ...(username === undefined || username === '' ? {} : { username, password: password ?? '' }),
  };
}

const optional = <K extends string>(name: K, value: string | undefined): Partial<Record<K, string>> =>
  value === undefined || value === '' ? {} : ({ [name]: value } as Record<K, string>);

function material(data: string | undefined, file: string | undefined, field: string): string | undefined {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString('utf8');
  if (file === undefined || file === '') return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new KbindError('credential', `kubeconfig: ${field} cannot be read`, {}, error);
  }
}

/** Asks client-node, which renews tokens from files, commands and identity providers by itself. */
async function renewedAuthorization(config: KubeConfig): Promise<string | undefined> {
  const options: RequestOptions & { headers: Record<string, string> } = { headers: {} };
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new KbindError('unauthorized', 'kubeconfig: the credential command or provider failed', {}, error);
  }
  return options.headers['Authorization'];
}
