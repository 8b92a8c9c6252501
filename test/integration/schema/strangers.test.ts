import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { schemaFromOpenApi } from '../../../lib/schema/from-openapi.ts';
import { clusterKinds, type TestCluster } from '../../support/apiserver/kinds.ts';
import { documentOf, junk, oddities } from '../../support/openapi/strangers.ts';

/** Documents of strangers, synthesized and sent to an API server as dry runs. */
describe.each(clusterKinds())('$name', (kind) => {
  let cluster: TestCluster;
  let client: OpenKubeClient;
  beforeAll(async () => {
    cluster = await kind.start('strangers');
    const target = parseForeignKubeconfig(cluster.kubeconfig, { allowLoopback: true });
    client = createKubeClient(target, { clock: systemClock, egress: { allowLoopback: true } });
  }, 120_000);
  afterAll(async () => {
    await client.close();
    await cluster.stop();
  });

  test('what is synthesized from any document is taken', async () => {
    const sample = fc.sample(fc.tuple(junk, junk, junk), { numRuns: 150, seed: 20 });
    const refused: string[] = [];
    for (const [spec, A, B] of sample) {
      const { name, spec: crd } = schemaFromOpenApi(oddities(documentOf(spec, { A, B })));
      const sent = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name },
        spec: crd,
      };
      try {
        await client.create(resources.crds, sent, { dryRun: true });
      } catch (error) {
        refused.push(`${String(error)}\n${JSON.stringify(crd)}`);
      }
    }
    expect(refused).toEqual([]);
  });
});
