import { afterAll, beforeAll, describe } from 'vitest';
import type { EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { Api, type Body } from './api.ts';
import { clusterKinds, type ClusterKind } from './kinds.ts';

/** An API server under test. */
export interface TestServer {
  readonly name: string;
  /** The minor version of the API that it serves. */
  readonly minor: number;
  readonly kubeconfig: string;
  /** Set on the embedded one, which can do what a test needs and no request asks for. */
  readonly embedded?: EmbeddedCluster;
  readonly api: Api;
  addUser(name: string, groups?: string[]): Promise<Api>;
  /** Forgets history, so that older resource versions are gone. */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server for the contract. */
export async function startServer(kind: ClusterKind): Promise<TestServer> {
  const cluster = await kind.start('contract');
  return {
    name: cluster.name,
    minor: kind.minor,
    kubeconfig: cluster.kubeconfig,
    ...(cluster.embedded === undefined ? {} : { embedded: cluster.embedded }),
    api: new Api(cluster.kubeconfig),
    async addUser(name, groups = []) {
      return new Api((await cluster.addUser({ name, groups })).kubeconfig);
    },
    compact: () => cluster.compact(),
    stop: () => cluster.stop(),
  };
}

/** Runs a group of cases on every server; each gets one of its own, which the cases share. */
export function onEveryServer(title: string, cases: (server: () => TestServer, kind: ClusterKind) => void): void {
  for (const kind of clusterKinds()) {
    describe(`${title} on ${kind.name}`, () => {
      let running: TestServer | undefined;
      beforeAll(async () => {
        running = await startServer(kind);
        await ready(running);
      });
      afterAll(async () => {
        await running?.api.close();
        await running?.stop();
      });
      cases(() => {
        if (!running) throw new Error('the server has not been started');
        return running;
      }, kind);
    });
  }
}

// A real server makes its namespaces a moment after it says that it is ready.
async function ready({ api }: TestServer): Promise<void> {
  await until(async () => (await api.get('/api/v1/namespaces/default')).code === 200);
  await until(async () => (await api.get('/api/v1/namespaces/kube-system')).code === 200);
}

const POLL_MS = 25;
const LIMIT_MS = 50_000;

/** Waits until a condition holds; what it returns when it does. */
export async function until<T>(condition: () => Promise<T | undefined | false>): Promise<T> {
  const end = Date.now() + LIMIT_MS;
  for (;;) {
    const result = await condition();
    if (result !== undefined && result !== false) return result;
    if (Date.now() > end) throw new Error('the condition did not come to hold');
    const { promise, resolve } = Promise.withResolvers<undefined>();
    setTimeout(() => resolve(undefined), POLL_MS);
    await promise;
  }
}

let counter = 0;

/** A name that no other case of this file uses. */
export const unique = (base: string): string => `${base}-${(counter += 1)}`;

/** Makes a namespace for one case. */
export async function newNamespace({ api }: TestServer): Promise<string> {
  const name = unique('case');
  const reply = await api.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  if (reply.code !== 201) throw new Error(reply.text);
  return name;
}

/** Installs a CRD and waits until its resources are served. */
export async function installCrd({ api }: TestServer, crd: object): Promise<Body> {
  const reply = await api.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
  if (reply.code !== 201) throw new Error(reply.text);
  const { spec, metadata } = reply.body;
  const served = (spec['versions'] as { name: string; served: boolean }[]).filter((version) => version.served);
  const { plural } = spec['names'] as { plural: string };
  for (const version of served) {
    await until(async () => {
      const { code, text } = await api.get(`/apis/${String(spec['group'])}/${version.name}/${plural}?limit=1`);
      return code === 200 || (code === 500 && text.includes('webhook'));
    });
  }
  return (await api.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`)).body;
}

/** Reads `widgets` and such below a namespace. */
export const pathOf = (
  group: string,
  version: string,
  plural: string,
): ((namespace: string, name?: string) => string) => {
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  return (namespace, name) => `${root}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;
};
