import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { isScalar, parseDocument, visit, type YAMLMap } from 'yaml';
import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import { checkHost, type Egress } from './egress.ts';
import type { ConnectionTarget } from './target.ts';

/** A kubeconfig is a few KiB; a Secret holds 1 MiB. */
const MAX_BYTES = 256 * 1024;

/**
 * What a self-contained kubeconfig may hold (spec §9). Everything else is refused, because a field that is not understood
 * may be one that runs a command or reads a file. Entries that the current context does not use are not looked into.
 */
const text = z.string().check(z.minLength(1));
const clusterSchema = z.strictObject({
  server: text,
  'certificate-authority-data': z.optional(text),
  'tls-server-name': z.optional(text),
  'disable-compression': z.optional(z.boolean()),
  'insecure-skip-tls-verify': z.optional(z.literal(false)),
  extensions: z.optional(z.unknown()),
});
const userSchema = z.strictObject({
  'client-certificate-data': z.optional(text),
  'client-key-data': z.optional(text),
  token: z.optional(text),
  username: z.optional(text),
  password: z.optional(z.string()),
  extensions: z.optional(z.unknown()),
});
const contextSchema = z.strictObject({
  cluster: text,
  user: text,
  namespace: z.optional(z.string()),
  extensions: z.optional(z.unknown()),
});

const named = (inner: string) => z.looseObject({ name: text, [inner]: z.unknown() });
const configSchema = z.strictObject({
  apiVersion: z.optional(z.literal('v1')),
  kind: z.optional(z.literal('Config')),
  preferences: z.optional(z.unknown()),
  extensions: z.optional(z.unknown()),
  'current-context': text,
  clusters: z.array(named('cluster')),
  contexts: z.array(named('context')),
  users: z.array(named('user')),
});
type Config = z.infer<typeof configSchema>;
type Section = 'clusters' | 'contexts' | 'users';

function refuse(field: string, problem: string): never {
  throw new KbindError('credential', `kubeconfig: ${field} ${problem}`);
}

/**
 * The connection that a foreign kubeconfig's current context describes. Throws class `credential`; the message names the
 * field and never says a value. Nothing is run, read or connected to.
 */
export function parseForeignKubeconfig(kubeconfig: string, egress: Egress): ConnectionTarget {
  const config = check(configSchema, parsed(kubeconfig), '');
  const context = entry(config, 'contexts', config['current-context'], 'current-context');
  const { cluster, user, namespace } = check(contextSchema, context.value, context.path);
  const clusterEntry = entry(config, 'clusters', cluster, `${context.path}.cluster`);
  const userEntry = entry(config, 'users', user, `${context.path}.user`);
  return {
    ...connection(check(clusterSchema, clusterEntry.value, clusterEntry.path), clusterEntry.path, egress),
    ...credentials(check(userSchema, userEntry.value, userEntry.path), userEntry.path),
    ...(namespace === undefined || namespace === '' ? {} : { contextNamespace: namespace }),
  };
}

function parsed(kubeconfig: string): unknown {
  try {
    return parseYaml(kubeconfig);
  } catch (error) {
    if (error instanceof KbindError) throw error;
    return refuse('it', 'cannot be read as YAML'); // a reader that gave up, by its stack or its own limits
  }
}

/** YAML 1.2 core, one document, no aliases (a few lines of them become gigabytes), no duplicate keys, no custom tags. */
function parseYaml(kubeconfig: string): unknown {
  if (kubeconfig.trim() === '') return refuse('it', 'is empty');
  if (Buffer.byteLength(kubeconfig) > MAX_BYTES) return refuse('it', `is larger than ${MAX_BYTES / 1024} KiB`);
  // The library's own search for duplicate keys takes half a minute for hostile 256 KiB.
  const document = parseDocument(kubeconfig, { schema: 'core', uniqueKeys: false, logLevel: 'error' });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    // The code of a YAML error only: its message quotes the text.
    return refuse('it', `is no valid YAML (${problem.code}, line ${problem.linePos?.[0].line ?? '?'})`);
  }
  visit(document, { Alias: () => refuse('it', 'uses YAML aliases'), Map: (_key, map) => checkKeys(map) });
  return document.toJS({ maxAliasCount: 0 }) as unknown;
}

function checkKeys({ items }: YAMLMap): void {
  const seen = new Set<unknown>();
  for (const { key } of items) {
    if (!isScalar(key)) return refuse('it', 'has a key that is no text');
    if (seen.has(String(key.value))) return refuse('it', 'has a key twice in one map');
    seen.add(String(key.value));
  }
}

/** The first problem that a schema finds, as the path of its field. */
function check<T extends z.core.$ZodType>(schema: T, value: unknown, path: string): z.output<T> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = [path, fieldPath(issue?.path ?? [])].filter((part) => part !== '').join('.');
  if (issue?.code === 'unrecognized_keys')
    return refuse([field, fieldName(issue.keys[0])].filter(Boolean).join('.'), 'is not allowed');
  return refuse(field === '' ? 'it' : field, problemOf(issue, field));
}

function problemOf(issue: z.core.$ZodIssue | undefined, field: string): string {
  if (field.endsWith('insecure-skip-tls-verify')) return 'is not allowed';
  if (issue?.code === 'invalid_type') return `is missing or no ${issue.expected}`;
  return issue?.code === 'too_small' ? 'is empty' : 'is not valid';
}

/** Keys are foreign text as well: shown only when they look like one of a kubeconfig's. */
const fieldName = (key: string | undefined): string =>
  key !== undefined && /^[a-zA-Z][a-zA-Z-]{0,40}$/.test(key) ? key : '(unknown field)';

const fieldPath = (path: readonly PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${fieldName(String(part))}`))
    .join('')
    .replace(/^\./, '');

function entry(config: Config, section: Section, name: string, referrer: string): { value: unknown; path: string } {
  const index = config[section].findIndex((one) => one['name'] === name);
  if (index < 0) return refuse(referrer, `names nothing in ${section}`);
  const inner = section.slice(0, -1);
  const found: Readonly<Record<string, unknown>> = config[section][index] ?? {};
  for (const key of Object.keys(found)) {
    if (key !== 'name' && key !== inner) refuse(`${section}[${index}].${fieldName(key)}`, 'is not allowed');
  }
  return { value: found[inner], path: `${section}[${index}].${inner}` };
}

function connection(cluster: z.infer<typeof clusterSchema>, path: string, egress: Egress): ConnectionTarget {
  const { server, 'tls-server-name': tlsServerName } = cluster;
  checkServer(server, `${path}.server`, egress);
  const ca = pem(cluster['certificate-authority-data'], `${path}.certificate-authority-data`);
  // OpenSSL passes over what is broken in a list of authorities.
  if (ca !== undefined && !isCertificate(ca)) refuse(`${path}.certificate-authority-data`, 'is no certificate');
  return { server, ...(ca === undefined ? {} : { ca }), ...(tlsServerName === undefined ? {} : { tlsServerName }) };
}

function checkServer(server: string, field: string, egress: Egress): void {
  if (!URL.canParse(server)) return refuse(field, 'is no URL');
  const url = new URL(server);
  if (url.protocol !== 'https:') refuse(field, 'is not https');
  if (url.username !== '' || url.password !== '') refuse(field, 'holds a user name or password');
  if (url.search !== '' || url.hash !== '') refuse(field, 'has a query or a fragment');
  try {
    checkHost(url.hostname, egress);
  } catch (error) {
    const reason = error instanceof KbindError ? error.message.replace(/^cluster\.server /, '') : 'is refused';
    refuse(field, reason);
  }
}

function credentials(user: z.infer<typeof userSchema>, path: string): Omit<ConnectionTarget, 'server'> {
  const { token, username, password } = user;
  for (const [field, value] of Object.entries({ token, username, password })) {
    // oxlint-disable-next-line no-control-regex -- control characters would end a header
    if (value !== undefined && /[\u0000-\u001f\u007f]/.test(value))
      refuse(`${path}.${field}`, 'holds control characters');
  }
  // Header values are bytes: anything beyond ASCII in a token is a mistake.
  if (token !== undefined && !/^[\u0021-\u007e]+$/.test(token)) refuse(`${path}.token`, 'is no token');
  if (username?.includes(':') === true) refuse(`${path}.username`, 'holds a colon');
  const clientCertificate = pem(user['client-certificate-data'], `${path}.client-certificate-data`);
  const clientKey = pem(user['client-key-data'], `${path}.client-key-data`);
  checkPair(clientCertificate, clientKey, path);
  return {
    ...(clientCertificate === undefined ? {} : { clientCertificate, clientKey }),
    ...(token === undefined ? {} : { token }),
    ...(username === undefined ? {} : { username, password: password ?? '' }),
  };
}

function checkPair(cert: string | undefined, key: string | undefined, path: string): void {
  if (cert !== undefined && key === undefined) refuse(`${path}.client-key-data`, 'is missing');
  if (key !== undefined && cert === undefined) refuse(`${path}.client-certificate-data`, 'is missing');
  if (cert === undefined || key === undefined) return;
  if (!takes({ cert })) refuse(`${path}.client-certificate-data`, 'is no certificate');
  if (!takes({ cert, key })) refuse(`${path}.client-key-data`, 'is no key, or not that of the certificate');
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.byteLength > 0;
  } catch {
    return false;
  }
}

/** Whether OpenSSL takes it. */
function takes(material: SecureContextOptions): boolean {
  try {
    createSecureContext(material);
    return true;
  } catch {
    return false;
  }
}

/** Base64 of PEM. */
function pem(data: string | undefined, field: string): string | undefined {
  if (data === undefined) return undefined;
  const decoded = Buffer.from(data, 'base64').toString('utf8');
  return /-----BEGIN [A-Z0-9 ]+-----[\s\S]+-----END/.test(decoded) ? decoded : refuse(field, 'is no base64 of PEM');
}
