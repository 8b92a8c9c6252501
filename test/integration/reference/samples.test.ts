import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { createKubeClient } from '../../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { KubeClient, SentObject } from '../../../lib/kube/types.ts';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';

const infra = join(import.meta.dirname, '../../../infra');
const load = (...path: string[]): SentObject => parse(readFileSync(join(infra, ...path), 'utf8')) as SentObject;
const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};
const kinds: Record<string, ResourceRef> = {
  'connection.yaml': resources.connections,
  'clusterbinding.yaml': resources.clusterBindings,
  'binding.yaml': resources.bindings,
  'provider-crd.yaml': resources.crds,
  'widget.yaml': widgets,
};

describe('the examples of the API reference', () => {
  let cluster: EmbeddedCluster;
  let client: KubeClient & { close(): Promise<void> };
  beforeAll(async () => {
    cluster = await startEmbeddedCluster();
    const egress = { allowLoopback: true };
    client = createKubeClient(parseForeignKubeconfig(cluster.kubeconfig, egress), { clock: systemClock, egress });
    for (const name of readdirSync(join(infra, 'crds'))) await client.create(resources.crds, load('crds', name));
  });
  afterAll(async () => {
    await client.close();
    await cluster.stop();
  });

  test.each(Object.keys(kinds))('%s is taken as it stands, no field unknown', async (name) => {
    const ref = kinds[name];
    if (ref === undefined) throw new Error(`no kind for ${name}`);
    const sample = load('samples', name);
    const made = await client.create(ref, sample, { strict: true });
    expect(made.metadata.name).toBe(sample.metadata.name);
    expect(made.spec).toMatchObject(sample['spec'] as object);
  });

  test('every sample is among them', () => {
    expect(readdirSync(join(infra, 'samples')).toSorted()).toEqual(Object.keys(kinds).toSorted());
  });
});
