import { createKubeClient } from '../kube/client.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import type { KubeClient } from '../kube/types.ts';
import { systemClock } from '../model/clock.ts';
import type { Session } from './session.ts';

/** Uses a client of a cluster that may write, as the few commands do that are meant to. */
export async function withClient<T>(
  { cell }: Pick<Session, 'cell'>,
  target: ConnectionTarget,
  use: (client: KubeClient) => Promise<T>,
): Promise<T> {
  const { allowLoopback } = cell.app.config;
  const client = createKubeClient(target, { clock: systemClock, egress: { allowLoopback }, side: 'consumer' });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
