import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { resources, type ResourceRef } from '../../../lib/model/api.ts';
import { until } from './until.ts';

/** A client by a kubeconfig of a test's cluster, or with another credential than it holds. */
export const clientOf = (kubeconfig: string, credential: Partial<ConnectionTarget> = {}): OpenKubeClient =>
  createKubeClient(
    { ...parseForeignKubeconfig(kubeconfig, { allowLoopback: true }), ...credential },
    { clock: systemClock, egress: { allowLoopback: true } },
  );

export const widgets: ResourceRef = {
  group: 'example.org',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

/** Installs an API with an open `spec.any`, a bounded `spec.n`, a set, and a status subresource on demand. */
export async function installApi(client: OpenKubeClient, ref: ResourceRef, status: boolean): Promise<void> {
  const { group, resource, kind, version } = ref;
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const spec = {
    type: 'object',
    properties: {
      n: { type: 'integer', maximum: 5 },
      text: { type: 'string' },
      set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
      any: open,
    },
  };
  await client.create(resources.crds, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource}.${group}` },
    spec: {
      group,
      scope: ref.namespaced ? 'Namespaced' : 'Cluster',
      names: { plural: resource, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(status ? { subresources: { status: {} } } : {}),
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: open } } },
        },
      ],
    },
  });
  await until(() =>
    client.list(ref).then(
      () => true,
      () => false,
    ),
  );
}
