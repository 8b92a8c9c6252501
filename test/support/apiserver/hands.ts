import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { SentObject } from '../../../lib/kube/types.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import type { ClusterKind, TestCluster } from './kinds.ts';

const crdsFolder = join(import.meta.dirname, '../../../infra/crds');
const egress = { allowLoopback: true };
const PATIENCE_MS = 50_000;
const LOOK_MS = 20;

/** A cluster and its user's own client, beside the product's. */
export interface ClusterWithHands {
  readonly server: TestCluster;
  readonly hands: OpenKubeClient;
  readonly uid: string;
}

/** Looks until something truthy comes; a failing look counts as not yet. Throws what the last look failed with. */
export async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    let failure: unknown;
    const seen = await look().catch((error: unknown) => {
      failure = error;
      return undefined;
    });
    if (seen !== undefined && seen !== false) return seen;
    if (Date.now() > deadline) throw new Error(`gave up waiting until ${what}`, { cause: failure });
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** The client of a kubeconfig's user. */
export const handsOf = (kubeconfig: string, side?: 'consumer' | 'provider'): OpenKubeClient =>
  createKubeClient(parseForeignKubeconfig(kubeconfig, egress), {
    clock: systemClock,
    egress,
    ...(side === undefined ? {} : { side }),
  });

/** Starts a cluster, and waits until it can say who it is. */
export async function startCluster(
  kind: ClusterKind,
  name: string,
  side?: 'consumer' | 'provider',
): Promise<ClusterWithHands> {
  const server = await kind.start(name);
  const hands = handsOf(server.kubeconfig, side);
  await until(`${name} has kube-system`, () => hands.find(resources.namespaces, { name: 'kube-system' }));
  return { server, hands, uid: await readClusterIdentity(hands) };
}

export async function stopCluster({ server, hands }: ClusterWithHands): Promise<void> {
  await hands.close();
  await server.stop();
}

/** Installs the product's own CRDs, and waits until their kinds are served. */
export async function installOwnCrds(hands: OpenKubeClient): Promise<void> {
  for (const file of await readdir(crdsFolder)) {
    const manifest = parse(await readFile(join(crdsFolder, file), 'utf8')) as SentObject;
    await hands.create(resources.crds, manifest);
  }
  for (const ref of [resources.connections, resources.bindings, resources.clusterBindings]) {
    await until(`${ref.resource} are served`, () => hands.list(ref));
  }
}
