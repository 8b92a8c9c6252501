import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalCell } from '../../lib/local/cell.ts';
import { keyText } from '../../lib/model/api.ts';
import { PRODUCT } from '../support/bench/cell.ts';
import { createInstance, keyAt, remove } from '../support/bench/instances.ts';
import type { ServerName } from '../support/bench/servers.ts';
import { Bench } from './bench.ts';
import type { Result } from './result.ts';
import { lag } from './scenarios.ts';

/** Of a new API it takes a real API server 2 s to take the first one in (seen on 1.37.2): that is no lag of ours. */
async function firstObject({ cell, provider, consumer }: Bench): Promise<void> {
  const index = 900_000;
  const key = keyText(keyAt(index));
  await createInstance(cell.consumer, index);
  await provider.seen(key, (copy) => copy !== undefined);
  await remove(cell.consumer, keyAt(index));
  await consumer.seen(key, (object) => object === undefined);
}

/**
 * One object at a time through `npm start`: the functions of serverless.yml behind emulated queues that are spoken to over
 * HTTP, and the forwarder, all in one process. Messages go past the bench's own queue and are not counted.
 */
export async function local(server: ServerName): Promise<Result> {
  const fleetDir = await mkdtemp(join(tmpdir(), 'kbind-bench-fleet-'));
  const start = async (consumer: { addUser(name: string): Promise<string> }): Promise<() => Promise<unknown>> => {
    await writeFile(join(fleetDir, 'bench.kubeconfig'), await consumer.addUser(PRODUCT));
    const running = await startLocalCell({ fleetDir, allowLoopback: true });
    return () => running.stop();
  };
  let stop = (): Promise<unknown> => Promise.resolve();
  const bench = await Bench.start({
    server,
    n: 1,
    run: async ({ consumer }) => void (stop = await start(consumer.server)),
  });
  try {
    await firstObject(bench);
    return { ...(await lag(bench)), scenario: 'lag of npm start' };
  } finally {
    await stop();
    await bench.stop();
    await rm(fleetDir, { recursive: true, force: true });
  }
}
