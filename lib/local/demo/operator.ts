import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/types.ts';
import type { KubeObject } from '../../model/api.ts';
import { keyOf } from '../../model/api.ts';
import { isError } from '../../model/errors.ts';
import { databases } from './sample-api.ts';

/** Pause between two looks at the databases, ms; the simulated operator needs no watch. */
const LOOK_MS = 300;

/** The service behind the sample API, as far as the demonstration needs one: it says that databases are ready, and where. */
export interface SimulatedOperator {
  stop(): Promise<void>;
}

/** Starts the simulated operator on the provider: fills the status of every database and keeps it true to its spec. */
export function startSimulatedOperator(provider: KubeClient): SimulatedOperator {
  const stopping = new AbortController();
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await provisionAll(provider);
      await delay(LOOK_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await loop;
    },
  };
}

async function provisionAll(provider: KubeClient): Promise<void> {
  try {
    const { items } = await provider.listAll(databases);
    for (const item of items) await provision(provider, item);
  } catch (error) {
    // Like any operator, it bears with a server that is away for a moment.
    if (!isError(error, 'unavailable', 'throttled')) throw error;
  }
}

async function provision(provider: KubeClient, item: KubeObject): Promise<void> {
  const wanted = statusFor(item);
  if (JSON.stringify(item.status) === JSON.stringify(wanted)) return;
  const { uid } = item.metadata;
  const operations = [{ op: 'add', path: '/status', value: wanted } as const];
  try {
    await provider.patch(databases, keyOf(item), { read: { uid }, operations, subresource: 'status' });
  } catch (error) {
    // Changed or deleted in between: the next look sees it as it is then.
    if (!isError(error, 'conflict', 'absent')) throw error;
  }
}

function statusFor({ metadata, spec }: KubeObject): Readonly<Record<string, unknown>> {
  const { sizeGb = 10 } = (spec ?? {}) as { sizeGb?: number };
  const endpoint = `${metadata.name}.${metadata.namespace ?? 'default'}.db.example.org:5432`;
  return { endpoint, phase: 'Ready', sizeGb };
}
