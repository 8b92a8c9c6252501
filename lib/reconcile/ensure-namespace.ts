import type { KubeClient, WriteOptions } from '../kube/types.ts';
import { resources } from '../model/api.ts';
import { isError } from '../model/errors.ts';
import { MANAGED_LABEL, TRUE } from '../model/markers.ts';

/** A namespace for copies: made with the managed label when it is missing; somebody else's is as good. */
export async function ensureNamespace(client: KubeClient, name: string, options: WriteOptions): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [MANAGED_LABEL]: TRUE } } };
  try {
    await client.create(resources.namespaces, namespace, options);
  } catch (error) {
    if (!isError(error, 'conflict')) throw error;
  }
}
