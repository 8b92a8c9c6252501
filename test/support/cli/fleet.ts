import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalCell, type LocalCell } from '../../../lib/local/cell.ts';
import {
  installCrd,
  installProductCrds,
  makeNamespace,
  startDemoCluster,
  waitUntilReady,
  type DemoCluster,
} from '../../../lib/local/demo/clusters.ts';
import { writeEndpointFile } from '../../../lib/local/endpoint-file.ts';
import { resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import type { SentObject } from '../../../lib/kube/types.ts';
import { crdFor } from '../e2e/f0.ts';
import { until } from '../apiserver/servers.ts';
import { CuttableProxy } from '../e2e/proxy.ts';

/** A consumer `shop`, a provider, and the running cell between them, as the CLI's tests want them. */

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
export const gadgets: ResourceRef = { ...widgets, resource: 'gadgets', kind: 'Gadget' };

export interface CliFleet {
  readonly folder: string;
  readonly dir: string;
  readonly shop: DemoCluster;
  readonly provider: DemoCluster;
  readonly cell: LocalCell;
  /** The way from the Connection to the provider. */
  readonly wire: CuttableProxy;
  make(side: 'shop' | 'provider', ref: ResourceRef, key: ObjectKey, fields: object): Promise<KubeObject>;
  /** Waits until an instance's copy is there. */
  copied(ref: ResourceRef, key: ObjectKey): Promise<KubeObject>;
  stop(): Promise<void>;
}

const KBIND = 'core.kbind.io/v1alpha1';
/** The provider's user whom the consumer's Connection uses. */
export const PROVIDER_USER = 'konnector';

export async function startCliFleet(): Promise<CliFleet> {
  const folder = await mkdtemp(join(tmpdir(), 'kbind-cli-'));
  const dir = join(folder, 'fleet');
  await mkdir(dir);
  const provider = await startDemoCluster('provider', folder);
  const shop = await startDemoCluster('shop', dir);
  const clusters = { shop, provider };
  const make: CliFleet['make'] = (side, ref, key, fields) =>
    clusters[side].client.create(ref, {
      apiVersion: ref.group === '' ? ref.version : `${ref.group}/${ref.version}`,
      kind: ref.kind,
      metadata: { ...key },
      ...fields,
    });
  for (const ref of [widgets, gadgets]) await installCrd(provider.client, crdFor(ref) as unknown as SentObject);
  await installProductCrds(shop.client);
  for (const name of ['kbind', 'team-a']) await makeNamespace(shop.client, name);
  const { kubeconfig } = await provider.embedded.addUser({ name: PROVIDER_USER });
  await writeFile(join(folder, 'provider.yaml'), kubeconfig);
  const wire = await CuttableProxy.start(provider.embedded.server);
  const data = { kubeconfig: Buffer.from(wire.throughProxy(kubeconfig)).toString('base64') };
  await make('shop', resources.secrets, { namespace: 'kbind', name: 'demo-kubeconfig' }, { data });
  const kubeconfigSecretRef = { namespace: 'kbind', name: 'demo-kubeconfig' };
  await make(
    'shop',
    resources.connections,
    { name: 'demo' },
    { spec: { kubeconfigSecretRef, schema: { source: 'CRD' } } },
  );
  const bindingOf = (...apis: string[]): object => ({
    apiVersion: KBIND,
    spec: { connectionRef: { name: 'demo' }, apis: apis.map((name) => ({ name })) },
  });
  await make('shop', resources.clusterBindings, { name: 'demo' }, bindingOf('widgets.example.org'));
  const team = { namespace: 'team-a', name: 'gadgets' };
  await make('shop', resources.bindings, team, bindingOf('gadgets.example.org', 'nothings.example.org'));
  const cell = await startLocalCell({ fleetDir: dir, allowLoopback: true });
  const removeEndpointFile = await writeEndpointFile(cell, dir);
  await waitUntilReady(shop.client, resources.connections, { name: 'demo' });
  await waitUntilReady(shop.client, resources.clusterBindings, { name: 'demo' });
  return {
    folder,
    dir,
    shop,
    provider,
    cell,
    wire,
    make,
    copied: (ref, key) => until(() => provider.client.find(ref, key)),
    async stop() {
      await removeEndpointFile();
      await cell.stop();
      await shop.stop();
      await wire.stop();
      await provider.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
