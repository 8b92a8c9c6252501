import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../embedded/index.ts';
import { createKubeClient, type OpenKubeClient } from '../../kube/client.ts';
import { parseForeignKubeconfig } from '../../kube/kubeconfig.ts';
import type { KubeClient, SentObject } from '../../kube/types.ts';
import { resources, type KubeObject, type ResourceRef } from '../../model/api.ts';
import { systemClock } from '../../model/clock.ts';
import { findCondition, type Condition } from '../../model/conditions.ts';
import { waitFor } from './wait.ts';

const PROJECT = join(import.meta.dirname, '..', '..', '..');

/** One embedded cluster of the demonstration, with an admin's client and where its kubeconfig lies. */
export interface DemoCluster {
  readonly name: string;
  readonly embedded: EmbeddedCluster;
  readonly client: KubeClient;
  /** Path from the working directory, for kubectl lines. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** Where a demonstration keeps its kubeconfigs: git-ignored, a folder of its own for each process, removed at its end. */
export interface DemoFolder {
  readonly path: string;
  /** Holds the consumers' kubeconfigs: what `--fleet` takes. */
  readonly fleet: string;
  remove(): Promise<void>;
}

export async function makeDemoFolder(): Promise<DemoFolder> {
  const path = join(PROJECT, '.local', `demo-${process.pid}`);
  const fleet = join(path, 'fleet');
  await mkdir(fleet, { recursive: true, mode: 0o700 });
  return { path, fleet, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Starts an embedded cluster and writes its kubeconfig into a folder. */
export async function startDemoCluster(name: string, folder: string): Promise<DemoCluster> {
  const embedded = await startEmbeddedCluster({ name });
  const kubeconfig = join(folder, `${name}.kubeconfig`);
  await writeFile(kubeconfig, embedded.kubeconfig, { mode: 0o600 });
  const egress = { allowLoopback: true };
  const target = parseForeignKubeconfig(embedded.kubeconfig, egress);
  const client: OpenKubeClient = createKubeClient(target, { clock: systemClock, egress });
  return {
    name,
    embedded,
    client,
    kubeconfig,
    async stop() {
      await client.close();
      await embedded.stop();
    },
  };
}

/** Installs a CRD and waits until its API is served. */
export async function installCrd(client: KubeClient, crd: SentObject): Promise<void> {
  await client.create(resources.crds, crd);
  const name = crd.metadata.name ?? '';
  await waitFor(`the API ${name}`, async () => withTrue(await client.find(resources.crds, { name }), 'Established'));
}

/** Installs the product's own CRDs, from infra/crds. */
export async function installProductCrds(client: KubeClient): Promise<void> {
  const folder = join(PROJECT, 'infra', 'crds');
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.yaml')))
    await installCrd(client, parse(await readFile(join(folder, file), 'utf8')) as SentObject);
}

export async function makeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

/** Waits until an object's Ready condition is True. */
export function waitUntilReady(
  client: KubeClient,
  ref: ResourceRef,
  key: { readonly namespace?: string; readonly name: string },
): Promise<KubeObject> {
  return waitFor(`${ref.kind} ${key.name} being Ready`, async () => withTrue(await client.find(ref, key), 'Ready'));
}

/** The object, if that condition is True. */
function withTrue(object: KubeObject | undefined, type: string): KubeObject | undefined {
  const status = object?.status as { readonly conditions?: readonly Condition[] } | undefined;
  return findCondition(status?.conditions, type)?.status === 'True' ? object : undefined;
}
