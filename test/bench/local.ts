import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalCell } from '../../lib/local/cell.ts';
import { PRODUCT } from '../support/bench/cell.ts';
import type { ServerName } from '../support/bench/servers.ts';
import { Bench } from './bench.ts';
import type { Result } from './result.ts';
import { lag } from './scenarios.ts';

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
    return { ...(await lag(bench)), scenario: 'lag of npm start' };
  } finally {
    await stop();
    await bench.stop();
    await rm(fleetDir, { recursive: true, force: true });
  }
}
