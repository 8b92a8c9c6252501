import type { Clock } from '../model/clock.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import type { KubeClient } from '../kube/types.ts';
import type { FleetFile } from './directory-files.ts';

/** A cluster that did not say who it is is asked again after that long, ms, doubling to the second. */
const FIRST_ASK_AGAIN_MS = 1_000;
const MAX_ASK_AGAIN_MS = 15_000;
/** An answer that is doubted is asked for again, but not more often than this, ms. */
const DOUBT_PAUSE_MS = 5_000;

/** Opens a client to ask a cluster for its identity; closed at once after. */
export type Connect = (target: ConnectionTarget) => KubeClient & { close(): Promise<void> };

/** What is known of the cluster behind one file. */
interface Resolution {
  readonly fingerprint: string;
  uid?: string | undefined;
  /** What it said before it was doubted. */
  before?: string | undefined;
  /** Why there is no UID yet. */
  reason: string;
  failures: number;
  /** Monotonic ms before which it is not asked again. */
  askAgainAt: number;
  asking?: Promise<void> | undefined;
}

/** What came of {@link AskedIdentities.dropAllBut} and of answers that changed. */
export interface Departures {
  /** UIDs of clusters that are not behind any file any more. */
  readonly gone: readonly string[];
  /** UIDs of clusters that appeared in the place of another. */
  readonly arrived: readonly string[];
}

/**
 * Which cluster is behind each kubeconfig of a directory: asked when needed first, kept with the file's bytes until
 * somebody doubts it, and asked again with growing pauses while it does not answer.
 */
export class AskedIdentities {
  readonly #clock: Clock;
  readonly #connect: Connect;
  readonly #resolutions = new Map<string, Resolution>();
  #gone: string[] = [];
  #arrived: string[] = [];

  constructor(clock: Clock, connect: Connect) {
    this.#clock = clock;
    this.#connect = connect;
  }

  /** The UID, if it is known, without asking. */
  known(file: FleetFile): string | undefined {
    return this.#of(file).uid;
  }

  /** Why the UID is not known. */
  reason(file: FleetFile): string {
    return this.#of(file).reason;
  }

  /** Makes the UID known, if the cluster answers. Never throws. */
  async ask(file: FleetFile): Promise<void> {
    const resolution = this.#of(file);
    if ('problem' in file || resolution.uid !== undefined) return;
    if (resolution.asking === undefined && this.#clock.monotonic() >= resolution.askAgainAt) {
      resolution.asking = this.#askNow(resolution, file.target);
    }
    await resolution.asking;
  }

  /** Another cluster answered where this one was: who is there is asked again. */
  doubt(uid: string): void {
    for (const resolution of this.#resolutions.values()) {
      if (resolution.uid !== uid) continue;
      resolution.before = uid;
      resolution.uid = undefined;
      resolution.reason = 'another cluster answered at its address';
    }
  }

  /** Forgets files that are not there any more. */
  dropAllBut(files: readonly FleetFile[]): void {
    const present = new Set(files.map(({ name }) => name));
    for (const [name, { uid, before }] of this.#resolutions) {
      if (present.has(name)) continue;
      this.#resolutions.delete(name);
      this.#gone.push(...[uid ?? before].filter((one) => one !== undefined));
    }
  }

  /** Who came and went since this was asked last. */
  takeDepartures(): Departures {
    const departures = { gone: this.#gone, arrived: this.#arrived };
    this.#gone = [];
    this.#arrived = [];
    return departures;
  }

  #of(file: FleetFile): Resolution {
    const known = this.#resolutions.get(file.name);
    if (known?.fingerprint === file.fingerprint) return known;
    const reason = 'problem' in file ? file.problem : 'it did not say yet which cluster it is';
    const fresh = { fingerprint: file.fingerprint, reason, failures: 0, askAgainAt: Number.NEGATIVE_INFINITY };
    this.#resolutions.set(file.name, fresh);
    return fresh;
  }

  async #askNow(resolution: Resolution, target: ConnectionTarget): Promise<void> {
    const client = this.#connect(target);
    try {
      this.#answered(resolution, await readClusterIdentity(client, {}));
    } catch (error) {
      resolution.reason = (error as Error).message;
      const pause = Math.min(FIRST_ASK_AGAIN_MS * 2 ** resolution.failures, MAX_ASK_AGAIN_MS);
      resolution.failures += 1;
      resolution.askAgainAt = this.#clock.monotonic() + pause;
    } finally {
      resolution.asking = undefined;
      await client.close();
    }
  }

  #answered(resolution: Resolution, uid: string): void {
    const { before } = resolution;
    resolution.uid = uid;
    resolution.before = undefined;
    resolution.failures = 0;
    resolution.askAgainAt = this.#clock.monotonic() + DOUBT_PAUSE_MS;
    if (before === undefined || before === uid) return;
    this.#gone.push(before);
    this.#arrived.push(uid);
  }
}
