import { resources, type KubeObject, type Json } from '../model/api.ts';
import type { Clock } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import { parseConnection } from '../model/kinds.ts';
import { usedSecretRef } from '../model/secret-ref.ts';
import { createKubeClient } from '../kube/client.ts';
import type { Egress } from '../kube/egress.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import { parseForeignKubeconfig } from '../kube/kubeconfig.ts';
import type { KubeClient } from '../kube/types.ts';
import type { OpenProvider } from './provider-pool.ts';

export interface ProviderOptions {
  readonly consumer: KubeClient;
  readonly clock: Clock;
  readonly egress: Egress;
}

/**
 * Opens providers from the Secrets that Connections name, read anew each time. Throws class `credential` for a Secret or
 * key that is missing and a kubeconfig that is unusable (spec §9), and whatever the reads throw.
 */
export function createOpenProvider({ consumer, clock, egress }: ProviderOptions): OpenProvider {
  return async (name, { signal }) => {
    const connection = parseConnection(await consumer.get(resources.connections, { name }, { signal }));
    const { namespace, name: secretName, key } = usedSecretRef(connection);
    const secret = await consumer.find(resources.secrets, { namespace, name: secretName }, { signal });
    const target = parseForeignKubeconfig(kubeconfigIn(secret, key), egress);
    const client = createKubeClient(target, { clock, egress, side: 'provider' });
    try {
      const uid = await readClusterIdentity(client, { signal });
      return { client, uid, close: () => client.close() };
    } catch (error) {
      await client.close();
      throw error;
    }
  };
}

function kubeconfigIn(secret: KubeObject | undefined, key: string): string {
  if (secret === undefined) throw new KbindError('credential', 'the kubeconfig Secret does not exist');
  const data = secret['data'] as Readonly<Record<string, Json | undefined>> | undefined;
  const encoded = data?.[key];
  if (typeof encoded !== 'string') throw new KbindError('credential', 'the kubeconfig Secret lacks the key');
  return Buffer.from(encoded, 'base64').toString('utf8');
}
