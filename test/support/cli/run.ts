import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..', '..', '..');
/** Where the binary is built. */
export const binaryFolder = join(root, '.local', 'cli');
const BINARY = join(binaryFolder, 'kbind-fleet.js');
const run = promisify(execFile);

/**
 * Builds the binary, two folders below the project as the shipped one is. Test files build it side by side: each moves its own
 * over the one that may be running, which is whole at any moment.
 */
export async function buildCli(): Promise<void> {
  await mkdir(binaryFolder, { recursive: true });
  const own = await mkdtemp(join(root, '.local', 'build-'));
  try {
    await run(process.execPath, [join(root, 'scripts', 'build.ts'), own, 'cli']);
    for (const file of ['package.json', 'main.js', basename(BINARY)]) {
      await rename(join(own, 'cli', file), join(binaryFolder, file));
    }
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Where and with what the binary is run. */
export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the built binary as a process without a terminal. */
export function kbindFleet(args: readonly string[], { cwd = root, env = {} }: RunOptions = {}): Promise<Ran> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: 60_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, [BINARY, ...args], options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, out, err });
    });
  });
}

/** What differs from run to run, replaced. */
export function steady(text: string, replacements: Readonly<Record<string, string>>): string {
  let result = text;
  for (const [what, by] of Object.entries(replacements)) result = result.replaceAll(what, by);
  return result
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, 'UUID')
    .replaceAll(/sha256:[0-9a-f]{16}/g, 'HASH')
    .replaceAll(/\b\d+ ms\b/g, 'N ms')
    .replaceAll(/\b\d{2,3}s\b/g, 'AGE')
    .replaceAll(/(control|instances|work|deadLetters|workDead) \d+/g, '$1 N')
    .replaceAll(/ +$/gm, '');
}
