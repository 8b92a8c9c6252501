import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ENDPOINT_FOLDER, endpointFileName, type CellEndpoint } from '../app/endpoint-file.ts';
import type { CellQueue, LocalCell } from './cell.ts';

let written = 0;

/** What the runner calls itself, as serverless.yml and the local stack have it. */
const IDENTITY = { installation: 'kbind', stage: 'local' } as const;

/**
 * Writes down where a running cell's queues are, so that `kbind-fleet` finds them. Holds no credential: the emulator takes any.
 * @returns what takes the file away again
 */
export async function writeEndpointFile(
  cell: Pick<LocalCell, 'endpoint' | 'queues'>,
  fleetDir: string,
  folder = ENDPOINT_FOLDER,
): Promise<() => Promise<void>> {
  written += 1;
  const path = join(folder, endpointFileName(process.pid, written));
  const urlOf = (queue: CellQueue): string => cell.queues[queue].url;
  const endpoint: CellEndpoint = {
    v: 1,
    pid: process.pid,
    fleetDir: resolve(fleetDir),
    endpoint: cell.endpoint,
    region: cell.queues.control.arn.split(':')[3] ?? '',
    ...IDENTITY,
    queueUrls: {
      control: urlOf('control'),
      instances: urlOf('instances'),
      work: urlOf('work'),
      deadLetters: urlOf('deadLetters'),
      workDead: urlOf('workDead'),
    },
  };
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // In one step: whoever reads it finds all of it.
  await writeFile(`${path}.new`, `${JSON.stringify(endpoint, undefined, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return () => rm(path, { force: true });
}
