import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseForeignKubeconfig } from '../kube/kubeconfig.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import { KbindError } from '../model/errors.ts';
import { parseIngestKeys } from './ingest-keys.ts';

/**
 * A fleet as a directory: one `NAME.kubeconfig` for each consumer cluster. Beside it `NAME.paused` (empty) pauses the
 * cluster, and `NAME.hmac` holds the key of a forwarder that sends through the webhook.
 */

const SUFFIX = '.kubeconfig';
const PAUSED_SUFFIX = '.paused';
const KEY_SUFFIX = '.hmac';

/** One file, read and vetted. */
export type FleetFile = FileFacts & ({ readonly target: ConnectionTarget } | { readonly problem: string });

interface FileFacts {
  readonly name: string;
  /** Of the kubeconfig's bytes. */
  readonly fingerprint: string;
  readonly paused: boolean;
}

async function listNames(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const what = code === 'ENOENT' ? 'does not exist' : code === 'ENOTDIR' ? 'is no directory' : 'cannot be read';
    throw new KbindError('misconfigured', `fleet directory ${dir} ${what}`, {}, error);
  }
}

async function readOne(
  dir: string,
  { name, paused }: { readonly name: string; readonly paused: boolean },
  allowLoopback: boolean,
): Promise<FleetFile> {
  let text = '';
  try {
    text = await readFile(join(dir, `${name}${SUFFIX}`), 'utf8');
    const fingerprint = createHash('sha256').update(text).digest('hex');
    return { name, paused, fingerprint, target: parseForeignKubeconfig(text, { allowLoopback }) };
  } catch (error) {
    const fingerprint = createHash('sha256').update(text).digest('hex');
    return { name, paused, fingerprint, problem: (error as Error).message };
  }
}

/**
 * The keys in `NAME.hmac`; undefined when there is no such file.
 * @throws KbindError class `credential` for a file that holds no usable key, `misconfigured` for one that cannot be read
 */
export async function readIngestKeyFile(dir: string, name: string): Promise<readonly Uint8Array[] | undefined> {
  const path = join(dir, `${name}${KEY_SUFFIX}`);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new KbindError('misconfigured', `${path} cannot be read`, {}, error);
  });
  return text === undefined ? undefined : parseIngestKeys(text);
}

/**
 * Reads the directory. These kubeconfigs are the operator's own, and still only self-contained ones are taken, through the
 * same checks as a Connection's Secret: whatever an `exec` entry names must never run inside a handler.
 * @throws KbindError class `misconfigured` when there is no such directory
 */
export async function readFleetDirectory(dir: string, allowLoopback: boolean): Promise<readonly FleetFile[]> {
  const present = new Set(await listNames(dir));
  const names = [...present]
    .filter((file) => file.endsWith(SUFFIX) && file !== SUFFIX)
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
  return Promise.all(
    names.map((name) => readOne(dir, { name, paused: present.has(`${name}${PAUSED_SUFFIX}`) }, allowLoopback)),
  );
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
