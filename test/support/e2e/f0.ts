import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readFile, readdir } from 'node:fs/promises';
import { parse } from 'yaml';
import { resources, type KubeObject, type ResourceRef } from '../../../lib/model/api.ts';
import { findCondition, type Condition } from '../../../lib/model/conditions.ts';
import { startLocalCell, type LocalCell } from '../../../lib/local/cell.ts';
import { TestCluster } from './cluster.ts';
import { until } from './until.ts';

/** The fixture F0 of the scenarios: two real API servers, the three CRDs, one exported API, the pipeline between them. */

const here = dirname(new URL(import.meta.url).pathname);
const crdsFolder = join(here, '../../../infra/crds');

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
export const gadgets: ResourceRef = {
  group: 'gadget.io',
  version: 'v1',
  resource: 'gadgets',
  kind: 'Gadget',
  namespaced: true,
};

/** User by whose name the product's own requests are counted, on either cluster. */
export const PRODUCT_USER = 'kbind-product';

interface CrdOptions {
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly exported?: boolean;
  readonly schema?: Record<string, unknown>;
  readonly statusSubresource?: boolean;
  readonly columns?: readonly Record<string, unknown>[];
  readonly metadata?: Record<string, unknown>;
}

const FREE_FORM = {
  type: 'object',
  properties: {
    spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

/** A one-version CRD; exported unless told otherwise. */
export function crdFor(
  ref: ResourceRef,
  options: CrdOptions = {},
): Record<string, unknown> & { metadata: { name: string } } {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${ref.resource}.${ref.group}`,
      ...(options.exported === false ? {} : { labels: { 'core.kbind.io/exported': 'true' } }),
      ...options.metadata,
    },
    spec: {
      group: ref.group,
      scope: options.scope ?? (ref.namespaced ? 'Namespaced' : 'Cluster'),
      names: { plural: ref.resource, singular: ref.kind.toLowerCase(), kind: ref.kind, listKind: `${ref.kind}List` },
      versions: [
        {
          name: ref.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: options.schema ?? FREE_FORM },
          ...(options.statusSubresource === false ? {} : { subresources: { status: {} } }),
          ...(options.columns === undefined ? {} : { additionalPrinterColumns: options.columns }),
        },
      ],
    },
  };
}

/** Folders of the API servers; an e2e run without them is an error, never a silent skip. */
export function assets(): { consumer: string; provider: string } {
  const consumer = process.env['KUBEBUILDER_ASSETS'];
  if (consumer === undefined || consumer === '')
    throw new Error('e2e needs KUBEBUILDER_ASSETS: the folder with kube-apiserver and etcd');
  return { consumer, provider: process.env['KBIND_E2E_PROVIDER_ASSETS'] ?? consumer };
}

/** Installs one CRD and waits until its API is served. */
export async function installCrd(
  cluster: TestCluster,
  crd: Record<string, unknown> & { metadata: { name: string } },
): Promise<void> {
  await cluster.create(resources.crds, crd);
  await until(`CRD ${crd.metadata.name} is Established`, async () =>
    isTrue(await cluster.get(resources.crds, { name: crd.metadata.name }), 'Established'),
  );
}

/** The product's own CRDs, from infra/crds. */
export async function installCoreCrds(cluster: TestCluster): Promise<void> {
  for (const file of (await readdir(crdsFolder)).filter((name) => name.endsWith('.yaml'))) {
    await installCrd(cluster, parse(await readFile(join(crdsFolder, file), 'utf8')) as ReturnType<typeof crdFor>);
  }
}

/** A namespace, made unless it is there. */
export async function ensureNamespace(cluster: TestCluster, name: string): Promise<void> {
  if ((await cluster.find(resources.namespaces, { name })) === undefined)
    await cluster.make(resources.namespaces, { name }, {});
}

/** The kubeconfig Secret of a provider. */
export async function makeKubeconfigSecret(
  consumer: TestCluster,
  name: string,
  kubeconfig: string,
): Promise<KubeObject> {
  return consumer.make(resources.secrets, { namespace: 'kbind', name }, { data: { kubeconfig: base64(kubeconfig) } });
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface ConnectionOptions {
  readonly name?: string;
  readonly secret?: string;
  readonly schema?: Record<string, string>;
  readonly autoBind?: boolean;
}

export async function makeConnection(consumer: TestCluster, options: ConnectionOptions = {}): Promise<KubeObject> {
  return consumer.make(
    resources.connections,
    { name: options.name ?? 'demo-provider' },
    {
      spec: {
        kubeconfigSecretRef: { namespace: 'kbind', name: options.secret ?? 'demo-provider-kubeconfig' },
        schema: { source: 'CRD', ...options.schema },
        ...(options.autoBind === undefined ? {} : { autoBind: options.autoBind }),
      },
    },
  );
}

interface BindingOptions {
  readonly name?: string;
  /** A namespaced Binding there; a ClusterBinding otherwise. */
  readonly namespace?: string;
  readonly connection?: string;
  readonly apis?: readonly string[];
  readonly conflictPolicy?: 'Fail' | 'Adopt';
  readonly relatedResources?: readonly Record<string, unknown>[];
}

export async function makeBinding(consumer: TestCluster, options: BindingOptions = {}): Promise<KubeObject> {
  const { namespace, conflictPolicy, relatedResources } = options;
  const ref = namespace === undefined ? resources.clusterBindings : resources.bindings;
  const key = { name: options.name ?? 'widgets', ...(namespace === undefined ? {} : { namespace }) };
  return consumer.make(ref, key, {
    spec: {
      connectionRef: { name: options.connection ?? 'demo-provider' },
      apis: (options.apis ?? ['widgets.example.org']).map((name) => ({ name })),
      ...(conflictPolicy === undefined ? {} : { conflictPolicy }),
      ...(relatedResources === undefined ? {} : { relatedResources }),
    },
  });
}

export const conditionOf = (object: KubeObject | undefined, type: string): Condition | undefined =>
  findCondition((object?.status as { conditions?: Condition[] } | undefined)?.conditions, type);

export const isTrue = (object: KubeObject | undefined, type: string): boolean =>
  conditionOf(object, type)?.status === 'True';

/** Whether an object's Ready condition is True for the spec as it is now, not for an earlier one. */
export const isReady = (object: KubeObject | undefined): boolean =>
  isTrue(object, 'Ready') && conditionOf(object, 'Ready')?.observedGeneration === object?.metadata.generation;

/** Waits until an object is Ready for the spec as it is now, and answers with it. */
export function untilReady(
  cluster: TestCluster,
  ref: ResourceRef,
  key: { name: string; namespace?: string },
): Promise<KubeObject> {
  return until(
    `${ref.kind} ${key.name} is Ready`,
    async () => {
      const object = await cluster.find(ref, key);
      return isReady(object) && object;
    },
    { seen: async () => (await cluster.find(ref, key))?.status },
  );
}

/** Waits until an object is gone. */
export function untilGone(
  cluster: TestCluster,
  ref: ResourceRef,
  key: { name: string; namespace?: string },
  timeoutMs?: number,
): Promise<boolean> {
  return until(`${ref.kind} ${key.name} is gone`, async () => (await cluster.find(ref, key)) === undefined, {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    seen: () => cluster.find(ref, key),
  });
}

/** Waits until an object exists and `fits`. */
export function untilObject(
  cluster: TestCluster,
  ref: ResourceRef,
  key: { name: string; namespace?: string },
  fits: (object: KubeObject) => boolean = () => true,
): Promise<KubeObject> {
  return until(
    `${ref.kind} ${key.name} is as wanted: ${fits.toString()}`,
    async () => {
      const object = await cluster.find(ref, key);
      return object !== undefined && fits(object) && object;
    },
    { seen: () => cluster.find(ref, key) },
  );
}

export interface F0 {
  readonly consumer: TestCluster;
  readonly provider: TestCluster;
  readonly cell: LocalCell;
  readonly fleetDir: string;
  /** The provider kubeconfig that the product uses (user {@link PRODUCT_USER}). */
  readonly providerKubeconfig: string;
  /** Restarts the pipeline with empty queues, as after a crash. */
  restartCell(): Promise<LocalCell>;
  stop(): Promise<void>;
}

export interface F0Options {
  /** No pipeline yet: the test starts it. */
  readonly cell?: boolean;
  readonly exported?: readonly Record<string, unknown>[];
}

async function productKubeconfig(cluster: TestCluster): Promise<string> {
  const user = await cluster.real.addUser({ name: PRODUCT_USER, groups: ['system:masters'] });
  return user.kubeconfig;
}

/** Starts both clusters and installs everything but Connection and bindings. */
export async function startF0(options: F0Options = {}): Promise<F0> {
  const where = assets();
  const [consumer, provider] = await Promise.all([
    TestCluster.start('consumer', where.consumer),
    TestCluster.start('provider', where.provider),
  ]);
  await Promise.all([ensureNamespace(consumer, 'kbind'), ensureNamespace(provider, 'kbind')]);
  await installCoreCrds(consumer);
  for (const crd of options.exported ?? [crdFor(widgets)]) await installCrd(provider, crd as ReturnType<typeof crdFor>);
  const providerKubeconfig = await productKubeconfig(provider);
  await makeKubeconfigSecret(consumer, 'demo-provider-kubeconfig', providerKubeconfig);
  const fleetDir = await mkdtemp(join(tmpdir(), 'kbind-fleet-'));
  await mkdir(fleetDir, { recursive: true });
  await writeFile(join(fleetDir, 'consumer.kubeconfig'), await productKubeconfig(consumer));
  const start = (): Promise<LocalCell> => startLocalCell({ fleetDir, allowLoopback: true });
  let cell = options.cell === false ? undefined : await start();
  return {
    consumer,
    provider,
    fleetDir,
    providerKubeconfig,
    get cell() {
      if (cell === undefined) throw new Error('the pipeline was not started');
      return cell;
    },
    async restartCell() {
      await cell?.stop();
      cell = await start();
      return cell;
    },
    async stop() {
      await cell?.stop();
      await Promise.all([consumer.stop(), provider.stop()]);
      await rm(fleetDir, { recursive: true, force: true });
    },
  };
}

/** F0 with a Ready Connection and a Ready ClusterBinding of widgets. */
export async function startBound(options: F0Options = {}): Promise<F0> {
  const f0 = await startF0(options);
  await makeConnection(f0.consumer);
  await makeBinding(f0.consumer);
  await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  return f0;
}
