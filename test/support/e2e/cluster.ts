import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import type { KubeObject, ObjectKey, ResourceRef } from '../../../lib/model/api.ts';
import { startRealCluster, type RealCluster } from '../apiserver/real.ts';

const run = promisify(execFile);

/** An error answer of the API server, as a test wants to look at it. */
export class ApiError extends Error {
  readonly status: number;
  readonly body: string;
  constructor(what: string, status: number, body: string) {
    super(`${what}: ${status} ${body.slice(0, 400)}`);
    this.status = status;
    this.body = body;
  }
}

/** One line of the API server's audit log. */
export interface AuditLine {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly status: number;
  readonly uri: string;
}

interface Credentials {
  readonly server: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

type Loose = Record<string, unknown>;

function credentialsOf(kubeconfig: string): Credentials {
  const config = parse(kubeconfig) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
    users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
  };
  const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user];
  if (cluster === undefined || user === undefined) throw new Error('the test kubeconfig names no cluster or no user');
  const text = (data: string): string => Buffer.from(data, 'base64').toString();
  return {
    server: cluster.server,
    ca: text(cluster['certificate-authority-data']),
    cert: text(user['client-certificate-data']),
    key: text(user['client-key-data']),
  };
}

/** The path of a resource or object below the server's root. */
export function pathOf(
  ref: ResourceRef,
  key?: { readonly namespace?: string | undefined; readonly name?: string },
): string {
  const root = ref.group === '' ? `/api/${ref.version}` : `/apis/${ref.group}/${ref.version}`;
  const namespace = ref.namespaced && key?.namespace !== undefined ? `/namespaces/${key.namespace}` : '';
  return `${root}${namespace}/${ref.resource}${key?.name === undefined ? '' : `/${key.name}`}`;
}

/** A real API server with the user's own hands on it: shares no code with the product. */
export class TestCluster {
  readonly real: RealCluster;
  readonly #agent: Agent;
  readonly #directory: string;

  private constructor(real: RealCluster, directory: string) {
    this.real = real;
    this.#directory = directory;
    const { ca, cert, key } = credentialsOf(real.kubeconfig);
    this.#agent = new Agent({ allowH2: false, connect: { ca, cert, key }, connections: 16 });
  }

  /** Starts one, with an audit log of who asked for what. */
  static async start(name: string, assets: string): Promise<TestCluster> {
    const directory = await mkdtemp(join(tmpdir(), `kbind-${name}-`));
    const policy = {
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived', 'ResponseStarted'],
      rules: [{ level: 'Metadata' }],
    };
    await writeFile(join(directory, 'policy.yaml'), JSON.stringify(policy));
    await writeFile(join(directory, 'audit.log'), '');
    const real = await startRealCluster({
      name,
      assets,
      apiServerFlags: {
        'audit-policy-file': join(directory, 'policy.yaml'),
        'audit-log-path': join(directory, 'audit.log'),
        'audit-log-mode': 'blocking',
      },
    });
    const cluster = new TestCluster(real, directory);
    await writeFile(cluster.kubeconfigPath, real.kubeconfig);
    return cluster;
  }

  get kubeconfigPath(): string {
    return join(this.#directory, 'admin.kubeconfig');
  }

  async stop(): Promise<void> {
    await this.#agent.close();
    await this.real.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #ask(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    type = 'application/json',
  ): Promise<Loose> {
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await request(`${this.real.server}${path}`, {
      method,
      body: text,
      headers: text === null ? {} : { 'content-type': type },
      dispatcher: this.#agent,
    });
    const received = await answer.body.text();
    if (answer.statusCode >= 300) throw new ApiError(`${method} ${path}`, answer.statusCode, received);
    return JSON.parse(received) as Loose;
  }

  get(ref: ResourceRef, key: ObjectKey): Promise<KubeObject> {
    return this.#ask('GET', pathOf(ref, key)) as unknown as Promise<KubeObject>;
  }

  /** The text of an object as the server prints it. */
  async text(ref: ResourceRef, key: ObjectKey): Promise<string> {
    const answer = await request(`${this.real.server}${pathOf(ref, key)}`, { dispatcher: this.#agent });
    return answer.body.text();
  }

  async find(ref: ResourceRef, key: ObjectKey): Promise<KubeObject | undefined> {
    try {
      return await this.get(ref, key);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  async list(
    ref: ResourceRef,
    options: { readonly namespace?: string; readonly labelSelector?: string } = {},
  ): Promise<KubeObject[]> {
    const query =
      options.labelSelector === undefined ? '' : `?labelSelector=${encodeURIComponent(options.labelSelector)}`;
    const { items } = await this.#ask('GET', `${pathOf(ref, options)}${query}`);
    return items as KubeObject[];
  }

  /** Creates from any manifest; text is sent as it is, so that numbers keep their digits. */
  create(ref: ResourceRef, object: Loose | string, namespace?: string): Promise<KubeObject> {
    return this.#ask('POST', pathOf(ref, { namespace }), object) as unknown as Promise<KubeObject>;
  }

  /** Creates a namespaced or cluster-scoped object from its parts, again while its API is not served yet. */
  async make(ref: ResourceRef, key: ObjectKey, fields: Loose & { metadata?: Loose }): Promise<KubeObject> {
    const apiVersion = ref.group === '' ? ref.version : `${ref.group}/${ref.version}`;
    const { metadata, ...rest } = fields;
    return this.create(ref, { apiVersion, kind: ref.kind, metadata: { ...metadata, ...key }, ...rest }, key.namespace);
  }

  replace(ref: ResourceRef, object: KubeObject): Promise<KubeObject> {
    const { namespace, name } = object.metadata;
    return this.#ask('PUT', pathOf(ref, { namespace, name }), object) as unknown as Promise<KubeObject>;
  }

  /** PUT of a body as text, to a subresource if named. */
  put(ref: ResourceRef, key: ObjectKey, body: string, subresource = ''): Promise<KubeObject> {
    return this.#ask('PUT', `${pathOf(ref, key)}${subresource}`, body) as unknown as Promise<KubeObject>;
  }

  merge(ref: ResourceRef, key: ObjectKey, patch: Loose, subresource = ''): Promise<KubeObject> {
    return this.#ask(
      'PATCH',
      `${pathOf(ref, key)}${subresource}`,
      patch,
      'application/merge-patch+json',
    ) as unknown as Promise<KubeObject>;
  }

  setStatus(ref: ResourceRef, key: ObjectKey, status: Loose): Promise<KubeObject> {
    return this.merge(ref, key, { status }, '/status');
  }

  delete(ref: ResourceRef, key: ObjectKey, options?: Loose): Promise<Loose> {
    return this.#ask('DELETE', pathOf(ref, key), options);
  }

  /** Runs kubectl as this cluster's admin and answers with what it printed. */
  async kubectl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run('kubectl', ['--kubeconfig', this.kubeconfigPath, ...args], { maxBuffer: 1 << 26 });
    return stdout;
  }

  /** Requests that a user has completed since the log was last cleared, watches aside. */
  async requestsOf(user: string): Promise<AuditLine[]> {
    const lines = (await readFile(join(this.#directory, 'audit.log'), 'utf8'))
      .split('\n')
      .filter((line) => line !== '');
    return lines
      .map((line) => JSON.parse(line) as Loose)
      .filter((line) => (line['user'] as Loose)['username'] === user)
      .map(auditLine);
  }

  /** Forgets what was asked until now. */
  async clearAudit(): Promise<void> {
    await writeFile(join(this.#directory, 'audit.log'), '');
  }
}

function auditLine(line: Loose): AuditLine {
  const object = (line['objectRef'] ?? {}) as Record<string, string | undefined>;
  return {
    verb: String(line['verb']),
    resource: object['resource'] ?? '',
    subresource: object['subresource'] ?? '',
    namespace: object['namespace'] ?? '',
    name: object['name'] ?? '',
    status: ((line['responseStatus'] ?? {}) as { code?: number }).code ?? 0,
    uri: String(line['requestURI']),
  };
}
