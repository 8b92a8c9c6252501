import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { readFleetDirectory, type FleetFile } from '../../fleet/directory-files.ts';
import type { FleetCluster, FleetRegistry, Lookup } from '../../fleet/registry.ts';
import { createKubeClient } from '../../kube/client.ts';
import { readClusterIdentity } from '../../kube/identity.ts';
import { parseForeignKubeconfig } from '../../kube/kubeconfig.ts';
import type { ConnectionTarget } from '../../kube/target.ts';
import { systemClock } from '../../model/clock.ts';
import { KbindError } from '../../model/errors.ts';
import { CliError } from '../exit-codes.ts';
import type { Fleet, FleetEntry, NewCluster, NewReach } from './fleet.ts';

/** How long a cluster may take to say who it is when a UID is looked for, ms. */
const ASK_MS = 5_000;
/** Reading and vetting 200 kubeconfigs takes a while: for each of 200 clusters it is not done anew, ms. */
const FILES_MAX_AGE_MS = 2_000;
/** Clusters that are asked who they are side by side when a UID is looked for. */
const AT_ONCE = 32;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * A fleet as a directory of `NAME.kubeconfig` files. Pausing is a marker beside it, `NAME.paused`, which a running cell sees
 * within five seconds. Each cluster is asked for its UID by itself, so that one that hangs keeps no other waiting.
 */
export class DirectoryFleet implements Fleet {
  readonly place: string;
  readonly registry = lookupsOnly((uid) => this.#lookup(uid));
  readonly #allowLoopback: boolean;
  /** UIDs by the bytes of kubeconfigs. */
  readonly #known = new Map<string, Promise<string>>();
  /** Those that have answered. */
  readonly #answered = new Map<string, string>();
  #read: { readonly at: number; readonly files: Promise<readonly FleetFile[]> } | undefined;

  constructor(dir: string, allowLoopback: boolean) {
    this.place = dir;
    this.#allowLoopback = allowLoopback;
  }

  async entries(): Promise<readonly FleetEntry[]> {
    this.#read = undefined;
    return (await this.#files()).map(entryOf);
  }

  async open(nameOrUid: string, signal: AbortSignal): Promise<FleetCluster> {
    const file = (await this.#files()).find(({ name }) => name === nameOrUid);
    if (file !== undefined) return this.#open(file, signal);
    const found = await this.#lookup(nameOrUid);
    if (found.found !== 'cluster') throw unknownCluster(nameOrUid, this.place);
    return found.cluster;
  }

  async target(reach: NewReach): Promise<ConnectionTarget> {
    if (!('kubeconfig' in reach)) throw onlyDeployed();
    return parseForeignKubeconfig(await readKubeconfig(reach.kubeconfig), { allowLoopback: this.#allowLoopback });
  }

  async add({ name, reach, labels, ingestKeyArn }: NewCluster): Promise<void> {
    if (!('kubeconfig' in reach)) throw onlyDeployed();
    if (labels !== undefined || ingestKeyArn !== undefined) {
      throw new CliError('usage', 'a directory fleet keeps no --label and no --ingest-key-arn: a deployed cell does');
    }
    if (!NAME.test(name)) throw new CliError('usage', `${name} is no name: lower-case letters, digits, -`);
    const text = await readKubeconfig(reach.kubeconfig);
    const path = join(this.place, `${name}.kubeconfig`);
    await writeFile(path, text, { mode: 0o600, flag: 'wx' }).catch((error: Error) => {
      throw new CliError('refused', `${name} is in the fleet already, or cannot be written: ${error.message}`);
    });
    this.#read = undefined;
  }

  async pause(name: string): Promise<void> {
    await writeFile(join(this.place, `${name}.paused`), '');
    this.#read = undefined;
  }

  async resume(name: string): Promise<undefined> {
    await rm(join(this.place, `${name}.paused`), { force: true });
    this.#read = undefined;
  }

  async remove(name: string): Promise<void> {
    for (const suffix of ['kubeconfig', 'paused', 'hmac']) {
      await rm(join(this.place, `${name}.${suffix}`), { force: true });
    }
    this.#read = undefined;
  }

  close(): void {
    this.#known.clear();
    this.#answered.clear();
  }

  #files(): Promise<readonly FleetFile[]> {
    const now = performance.now();
    if (this.#read !== undefined && now - this.#read.at < FILES_MAX_AGE_MS) return this.#read.files;
    const files = readFleetDirectory(this.place, this.#allowLoopback);
    this.#read = { at: now, files };
    return files;
  }

  async #open(file: FleetFile, signal: AbortSignal): Promise<FleetCluster> {
    if ('problem' in file) throw new KbindError('credential', `${file.name}: ${file.problem}`);
    const { name, paused, target, fingerprint } = file;
    const asked = this.#known.get(fingerprint) ?? this.#ask(target, signal);
    this.#known.set(fingerprint, asked);
    asked.catch(() => this.#known.delete(fingerprint));
    const uid = await asked;
    this.#answered.set(fingerprint, uid);
    return { name, paused, target, uid };
  }

  async #ask(target: ConnectionTarget, signal: AbortSignal): Promise<string> {
    const egress = { allowLoopback: this.#allowLoopback };
    const client = createKubeClient(target, { clock: systemClock, egress, side: 'consumer' });
    try {
      return await readClusterIdentity(client, { signal });
    } finally {
      await client.close();
    }
  }

  /** Asks nobody where the one that is meant has said before who it is; else answers as soon as it does: others may hang. */
  async #lookup(uid: string): Promise<Lookup> {
    const files = await this.#files();
    const known = files.find((file) => 'fingerprint' in file && this.#answered.get(file.fingerprint) === uid);
    const signal = AbortSignal.timeout(ASK_MS);
    if (known !== undefined) return { found: 'cluster', cluster: await this.#open(known, signal) };
    const limit = pLimit(AT_ONCE);
    const asked = files.map((file) => limit(() => this.#open(file, signal)));
    const meant = asked.map(async (one) => {
      const cluster = await one;
      return cluster.uid === uid ? cluster : Promise.reject(new CliError('notFound', 'another cluster'));
    });
    const cluster = await Promise.any(meant).catch(() => undefined);
    if (cluster !== undefined) {
      limit.clearQueue();
      return { found: 'cluster', cluster };
    }
    const silent = (await Promise.allSettled(asked)).find((one) => one.status === 'rejected');
    return silent === undefined
      ? { found: 'unknown' }
      : { found: 'unresolved', reason: (silent.reason as Error).message };
  }
}

const unknownCluster = (name: string, place: string): CliError =>
  new CliError('notFound', `no cluster ${name} in the fleet ${place}; see: kbind-fleet clusters list`);

const onlyDeployed = (): CliError =>
  new CliError('usage', 'a directory fleet takes --kubeconfig only: EKS names and secrets belong to a deployed cell');

const entryOf = (file: FleetFile): FleetEntry => ({
  name: file.name,
  paused: file.paused,
  ...('problem' in file ? { problem: file.problem } : {}),
});

/** @throws CliError `usage` for a file that cannot be read */
export async function readKubeconfig(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError('usage', `${path} cannot be read (${error.code ?? 'unknown'})`);
  });
}

/** A registry for dry runs: nothing is written down of what they see. */
function lookupsOnly(lookup: (uid: string) => Promise<Lookup>): FleetRegistry {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    list: () => Promise.resolve({ clusters: [], unresolved: [] }),
    lookup,
    heartbeat: () => Promise.resolve('recorded'),
    swept: nothing,
    sweepAsked: nothing,
    held: nothing,
    distrust: () => undefined,
  };
}
