import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseForeignKubeconfig } from '../kube/kubeconfig.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import { KbindError } from '../model/errors.ts';

/** A fleet as a directory: one `NAME.kubeconfig` for each consumer cluster. */

const SUFFIX = '.kubeconfig';

/** One file, read and vetted. */
export type FleetFile =
  | { readonly name: string; readonly fingerprint: string; readonly target: ConnectionTarget }
  | { readonly name: string; readonly fingerprint: string; readonly problem: string };

async function listNames(dir: string): Promise<string[]> {
  try {
    const names = await readdir(dir);
    return names.filter((name) => name.endsWith(SUFFIX) && name !== SUFFIX).sort();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const what = code === 'ENOENT' ? 'does not exist' : code === 'ENOTDIR' ? 'is no directory' : 'cannot be read';
    throw new KbindError('misconfigured', `fleet directory ${dir} ${what}`, {}, error);
  }
}

async function readOne(dir: string, file: string, allowLoopback: boolean): Promise<FleetFile> {
  const name = file.slice(0, -SUFFIX.length);
  let text = '';
  try {
    text = await readFile(join(dir, file), 'utf8');
    const fingerprint = createHash('sha256').update(text).digest('hex');
    return { name, fingerprint, target: parseForeignKubeconfig(text, { allowLoopback }) };
  } catch (error) {
    const fingerprint = createHash('sha256').update(text).digest('hex');
    return { name, fingerprint, problem: (error as Error).message };
  }
}

/**
 * Reads the directory. These kubeconfigs are the operator's own, and still only self-contained ones are taken, through the
 * same checks as a Connection's Secret: whatever an `exec` entry names must never run inside a handler.
 * @throws KbindError class `misconfigured` when there is no such directory
 */
export async function readFleetDirectory(dir: string, allowLoopback: boolean): Promise<readonly FleetFile[]> {
  const names = await listNames(dir);
  return Promise.all(names.map((name) => readOne(dir, name, allowLoopback)));
}

/**
 * For whoever starts a cell on a directory: everything must be usable.
 * @throws KbindError class `misconfigured` with one line: directory missing, empty, or a kubeconfig that cannot be used
 */
export async function checkFleetDirectory(dir: string, allowLoopback: boolean): Promise<readonly FleetFile[]> {
  const files = await readFleetDirectory(dir, allowLoopback);
  if (files.length === 0) {
    throw new KbindError('misconfigured', `fleet directory ${dir} holds no NAME${SUFFIX} file`);
  }
  for (const file of files) {
    if ('problem' in file) {
      throw new KbindError('misconfigured', `${join(dir, file.name)}${SUFFIX} cannot be used: ${file.problem}`);
    }
  }
  return files;
}
