import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../lib/model/clock.ts';
import { resources } from '../lib/model/api.ts';
import { createKubeClient } from '../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../lib/kube/kubeconfig.ts';
import { printJson } from '../lib/kube/json.ts';
import { startRealCluster } from '../test/support/apiserver/real.ts';
import { fidelityCrd } from '../test/support/openapi/fidelity.ts';
import { until } from '../test/support/e2e/until.ts';

/**
 * Records OpenAPI documents of a real API server for the unit tests: only the schemas that are reachable from a few kinds.
 * Run with KUBEBUILDER_ASSETS set; writes test/fixtures/openapi/<version>.<name>.json.
 */
type Node = Readonly<Record<string, unknown>>;

const folder = join(import.meta.dirname, '../test/fixtures/openapi');
const KINDS = ['Deployment', 'CustomResourceDefinition', 'Fidelity'];

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

function references(value: unknown): string[] {
  if (!isNode(value)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === '$ref' && typeof member === 'string' ? [member.split('/').at(-1) ?? ''] : references(member),
  );
}

/** Descriptions are most of a document; one in ten is kept. */
function thinned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(thinned);
  if (!isNode(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => name !== 'description' || typeof member !== 'string' || member.length % 10 === 0)
      .map(([name, member]) => [name, thinned(member)]),
  );
}

function reachable(all: Readonly<Record<string, Node>>): Record<string, unknown> {
  const kindsOf = (schema: Node): unknown[] =>
    (schema['x-kubernetes-group-version-kind'] as unknown[] | undefined) ?? [];
  const wanted = Object.keys(all).filter((name) =>
    kindsOf(all[name] ?? {}).some((gvk) => KINDS.includes(String((gvk as { kind: unknown }).kind))),
  );
  for (const name of wanted) {
    for (const next of references(all[name])) if (next in all && !wanted.includes(next)) wanted.push(next);
  }
  return Object.fromEntries(wanted.sort().map((name) => [name, thinned(all[name])]));
}

const cluster = await startRealCluster();
const client = createKubeClient(parseForeignKubeconfig(cluster.kubeconfig, { allowLoopback: true }), {
  clock: systemClock,
  egress: { allowLoopback: true },
});
const write = (name: string, document: unknown): Promise<void> =>
  writeFile(join(folder, `${cluster.version}.${name}.json`), `${printJson(document)}\n`);
const has = (document: unknown): boolean => printJson(document).includes('"kind":"Fidelity"');
try {
  await client.create(resources.crds, fidelityCrd);
  const v2 = await until('version 2 tells of the CRD', async () => {
    const document = (await client.getPath('/openapi/v2', { plainText: true })) as {
      definitions: Record<string, Node>;
    };
    return has(document) && document;
  });
  await write('v2', { swagger: '2.0', paths: {}, definitions: reachable(v2.definitions) });
  const groups = ['apps/v1', 'apiextensions.k8s.io/v1', 'odd.example.org/v1', 'odd.example.org/v1beta1'];
  for (const group of process.argv.includes('--v2') ? [] : groups) {
    const document = await until(
      `version 3 tells of ${group}`,
      () => client.getPath(`/openapi/v3/apis/${group}`) as Promise<{ components: { schemas: Record<string, Node> } }>,
    );
    await write(group.replace('/', '.'), {
      openapi: '3.0.0',
      paths: {},
      components: { schemas: reachable(document.components.schemas) },
    });
  }
} finally {
  await client.close();
  await cluster.stop();
}
