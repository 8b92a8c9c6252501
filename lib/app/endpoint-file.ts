import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import * as z from 'zod/mini';

/** Where a cell that runs on this machine can be found: written by the local runner, read by the CLI. */

const url = z.string().check(z.regex(/^http:\/\/127\.0\.0\.1:\d+/));

const endpointSchema = z.strictObject({
  v: z.literal(1),
  /** Of the process that runs the cell: a file of one that is gone means nothing. */
  pid: z.int(),
  fleetDir: z.string(),
  /** Base URL of the emulated SQS. */
  endpoint: url,
  region: z.string(),
  installation: z.string(),
  stage: z.string(),
  queueUrls: z.strictObject({ control: url, instances: url, work: url, deadLetters: url, workDead: url }),
});
export type CellEndpoint = z.infer<typeof endpointSchema>;

/** Git-ignored, in the project that runs the cell. */
export const ENDPOINT_FOLDER = join(import.meta.dirname, '..', '..', '.local');
export const endpointFileName = (pid: number, number: number): string => `cell-${pid}-${number}.json`;
const ENDPOINT_FILE = /^cell-\d+-\d+\.json$/;

/** Cells that run now, of one fleet directory or of any. */
export async function findLocalCells(fleetDir?: string, folder = ENDPOINT_FOLDER): Promise<CellEndpoint[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const read = names.filter((name) => ENDPOINT_FILE.test(name)).map((name) => readEndpoint(join(folder, name)));
  const cells = (await Promise.all(read)).filter((cell) => cell !== undefined);
  const wanted = fleetDir === undefined ? undefined : resolve(fleetDir);
  return cells.filter((cell) => isAlive(cell.pid) && (wanted === undefined || cell.fleetDir === wanted));
}

/** Undefined for a file that went away meanwhile, or that another release wrote. */
async function readEndpoint(path: string): Promise<CellEndpoint | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  try {
    const parsed = endpointSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
