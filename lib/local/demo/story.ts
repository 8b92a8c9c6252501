import { relative } from 'node:path';
import pc from 'picocolors';
import { resources, type KubeObject, type ObjectKey } from '../../model/api.ts';
import { installProductCrds, makeNamespace, waitUntilReady, type DemoCluster } from './clusters.ts';
import { database, databases } from './sample-api.ts';
import { waitFor } from './wait.ts';

/** What is shown: two teams order databases in clusters of their own, one platform cluster serves both. */
export interface Stage {
  readonly provider: DemoCluster;
  readonly consumers: readonly [DemoCluster, DemoCluster];
  /** Prints a finished step. */
  readonly step: (text: string) => void;
}

const PROVIDER_SECRET = { namespace: 'kbind', name: 'provider-kubeconfig' } as const;
const CONNECTION = 'provider';
const API = { name: 'databases.demo.example.org' };

/** What each consumer binds and orders. */
const ORDERS = [
  { namespace: 'shop', name: 'orders', engine: 'postgres', sizeGb: 20 },
  { namespace: 'blog', name: 'articles', engine: 'mysql', sizeGb: 5 },
] as const;
const NEW_SIZE_GB = 50;

/** Prepares a consumer: the product's CRDs, the provider's kubeconfig in a Secret, a Connection that uses it. */
export async function connectConsumer(consumer: DemoCluster, provider: DemoCluster): Promise<void> {
  const { client } = consumer;
  await installProductCrds(client);
  await makeNamespace(client, PROVIDER_SECRET.namespace);
  const kubeconfig = Buffer.from(provider.embedded.kubeconfig).toString('base64');
  await client.create(resources.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: PROVIDER_SECRET,
    data: { kubeconfig },
  });
  await client.create(resources.connections, {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'Connection',
    metadata: { name: CONNECTION },
    spec: { kubeconfigSecretRef: PROVIDER_SECRET },
  });
}

/** Binds the API in both consumers, orders a database in each, and shows what arrives where. */
export async function bindAndOrder(stage: Stage): Promise<void> {
  const [shop, blog] = stage.consumers;
  const binding = { connectionRef: { name: CONNECTION }, apis: [API] };
  for (const [index, consumer] of stage.consumers.entries()) {
    await waitUntilReady(consumer.client, resources.connections, { name: CONNECTION });
    await makeNamespace(consumer.client, ORDERS[index]?.namespace ?? '');
  }
  stage.step('Both Connections are Ready: the provider answers and says what it offers');
  await shop.client.create(resources.clusterBindings, {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'ClusterBinding',
    metadata: { name: 'databases' },
    spec: binding,
  });
  await blog.client.create(resources.bindings, {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'Binding',
    metadata: { namespace: ORDERS[1].namespace, name: 'databases' },
    spec: binding,
  });
  await waitUntilReady(shop.client, resources.clusterBindings, { name: 'databases' });
  stage.step(`${shop.name}: a ClusterBinding made the API "databases" appear, for all namespaces`);
  await waitUntilReady(blog.client, resources.bindings, { namespace: ORDERS[1].namespace, name: 'databases' });
  stage.step(`${blog.name}: a Binding made it appear too, for the namespace ${ORDERS[1].namespace} only`);
  await Promise.all(stage.consumers.map((consumer, index) => order(stage, consumer, ORDERS[index] ?? ORDERS[0])));
}

async function order(stage: Stage, consumer: DemoCluster, wanted: (typeof ORDERS)[number]): Promise<void> {
  const key = { namespace: wanted.namespace, name: wanted.name };
  const startedAt = performance.now();
  await consumer.client.create(databases, database(key, wanted.engine, wanted.sizeGb));
  await waitFor(`the copy of ${wanted.name}`, () => stage.provider.client.find(databases, key));
  const copied = performance.now();
  const ready = await waitFor(`the status of ${wanted.name}`, () => readyAt(consumer, key, wanted.sizeGb));
  const { endpoint } = ready.status as { readonly endpoint: string };
  const up = Math.round(copied - startedAt);
  const down = Math.round(performance.now() - startedAt);
  stage.step(
    `${consumer.name}: ordered ${wanted.namespace}/${wanted.name}; its spec was on the provider after ${up} ms, ` +
      `and its status back after ${down} ms: ${pc.cyan(endpoint)}`,
  );
}

/** Changes one database and deletes the other, and shows that the provider follows. */
export async function changeAndDelete(stage: Stage): Promise<void> {
  const [shop, blog] = stage.consumers;
  const [grown, deleted] = ORDERS.map(({ namespace, name }) => ({ namespace, name })) as [ObjectKey, ObjectKey];
  const { uid } = (await shop.client.get(databases, grown)).metadata;
  const operations = [{ op: 'replace', path: '/spec/sizeGb', value: NEW_SIZE_GB } as const];
  await shop.client.patch(databases, grown, { read: { uid }, operations });
  await waitFor('the new size', () => readyAt(shop, grown, NEW_SIZE_GB));
  stage.step(`${shop.name}: resized ${grown.name} to ${NEW_SIZE_GB} GB; the provider did it and said so`);
  const { metadata } = await blog.client.get(databases, deleted);
  await blog.client.delete(databases, deleted, metadata);
  await waitFor('the end of the copy', () => isGone(stage.provider, deleted));
  await waitFor(`the end of ${deleted.name}`, () => isGone(blog, deleted));
  stage.step(`${blog.name}: deleted ${deleted.name}; it went once the provider's copy was gone`);
}

async function readyAt(cluster: DemoCluster, key: ObjectKey, sizeGb: number): Promise<KubeObject | undefined> {
  const object = await cluster.client.find(databases, key);
  const status = object?.status as { readonly phase?: string; readonly sizeGb?: number } | undefined;
  return status?.phase === 'Ready' && Number(status.sizeGb) === sizeGb ? object : undefined;
}

async function isGone(cluster: DemoCluster, key: ObjectKey): Promise<true | undefined> {
  return (await cluster.client.find(databases, key)) === undefined ? true : undefined;
}

/** Commands to go on with, by hand. */
export function kubectlLines({ consumers: [shop], provider }: Stage): readonly string[] {
  const of = (cluster: DemoCluster): string => `kubectl --kubeconfig ${relative('.', cluster.kubeconfig)}`;
  const { namespace, name } = ORDERS[0];
  return [
    `${of(shop)} get connections,clusterbindings`,
    `${of(shop)} get databases -A`,
    `${of(shop)} -n ${namespace} patch database ${name} --type merge -p '{"spec":{"sizeGb":70}}'`,
    `${of(provider)} get databases -A --watch`,
    `${of(shop)} -n ${namespace} delete database ${name}`,
  ];
}
