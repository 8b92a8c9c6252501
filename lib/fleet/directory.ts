import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { AskedIdentities, type Connect } from './asked-identities.ts';
import { readFleetDirectory, readIngestKeyFile, type FleetFile } from './directory-files.ts';
import type { IngestKeyring, KeysLookup } from './ingest-keys.ts';
import type {
  Activity,
  FleetCluster,
  FleetListing,
  FleetRegistry,
  Heartbeat,
  HeartbeatAnswer,
  Lookup,
} from './registry.ts';

/** The registry's entries are believed for that long, ms (design.md, rule 9). */
const LISTING_MAX_AGE_MS = 5_000;

export interface DirectoryRegistryOptions {
  readonly dir: string;
  readonly allowLoopback: boolean;
  readonly clock: Clock;
  readonly connect: Connect;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * A registry over a directory of kubeconfigs. UIDs are not written there: each is asked of its cluster when it is needed
 * first. Tombstones and what was seen of clusters are remembered by this process only.
 */
export class DirectoryRegistry implements FleetRegistry, IngestKeyring {
  readonly #options: DirectoryRegistryOptions;
  readonly #identities: AskedIdentities;
  readonly #tombstones = new Set<string>();
  readonly #activity = new Map<string, Mutable<Activity>>();
  /** Those that were paused when the directory was read last. */
  readonly #paused = new Set<string>();
  #listing: { readonly at: Instant; readonly files: Promise<readonly FleetFile[]> } | undefined;

  constructor(options: DirectoryRegistryOptions) {
    this.#options = options;
    this.#identities = new AskedIdentities(options.clock, options.connect);
  }

  async list(): Promise<FleetListing> {
    const files = await this.#files(LISTING_MAX_AGE_MS);
    await Promise.all(files.map((file) => this.#identities.ask(file)));
    return this.#listingOf(files);
  }

  async lookup(uid: string): Promise<Lookup> {
    const lookup = await this.#find(uid, LISTING_MAX_AGE_MS);
    // Nobody is called unknown or removed on the word of an old listing: a file may have come since.
    return lookup.found === 'cluster' || lookup.found === 'unresolved' ? lookup : this.#find(uid, 0);
  }

  async heartbeat(uid: string, beat: Heartbeat): Promise<HeartbeatAnswer> {
    const { found } = await this.lookup(uid);
    if (found !== 'cluster') return found;
    const activity = this.#activityOf(uid);
    activity.heartbeat = beat;
    activity.heardAt = this.#options.clock.now();
    return 'recorded';
  }

  swept(uid: string, at: number): Promise<void> {
    this.#activityOf(uid).sweptAt = at;
    return Promise.resolve();
  }

  sweepAsked(uid: string, owedSince: number): Promise<void> {
    const activity = this.#activityOf(uid);
    if (activity.sweepOwedSince === owedSince) activity.sweepOwedSince = undefined;
    return Promise.resolve();
  }

  held(uid: string, by: string | undefined): Promise<void> {
    this.#activityOf(uid).heldBy = by;
    return Promise.resolve();
  }

  distrust(uid: string): void {
    this.#identities.doubt(uid);
  }

  async keysOf(uid: string): Promise<KeysLookup> {
    const lookup = await this.lookup(uid);
    if (lookup.found !== 'cluster') return lookup;
    try {
      const keys = await readIngestKeyFile(this.#options.dir, lookup.cluster.name);
      return keys === undefined ? { found: 'none' } : { found: 'keys', keys };
    } catch (error) {
      return { found: 'unresolved', reason: (error as Error).message };
    }
  }

  async #find(uid: string, maxAgeMs: number): Promise<Lookup> {
    const files = await this.#files(maxAgeMs);
    const atOnce = this.#listingOf(files).clusters.find((cluster) => cluster.uid === uid);
    // A known cluster does not wait for others that are slow to say who they are.
    if (atOnce !== undefined) return { found: 'cluster', cluster: atOnce };
    await Promise.all(files.map((file) => this.#identities.ask(file)));
    const { clusters, unresolved } = this.#listingOf(files);
    const cluster = clusters.find((entry) => entry.uid === uid);
    if (cluster !== undefined) return { found: 'cluster', cluster };
    const [first] = unresolved;
    if (first !== undefined) return { found: 'unresolved', reason: `${first.name}: ${first.reason}` };
    return { found: this.#tombstones.has(uid) ? 'removed' : 'unknown' };
  }

  #listingOf(
    files: readonly FleetFile[],
  ): Omit<FleetListing, 'clusters'> & { readonly clusters: readonly FleetCluster[] } {
    this.#noteDepartures();
    const clusters: FleetCluster[] = [];
    const unresolved: { name: string; reason: string }[] = [];
    for (const file of files) {
      const uid = this.#identities.known(file);
      if (uid !== undefined && 'target' in file) clusters.push(this.#clusterOf(file, uid));
      else unresolved.push({ name: file.name, reason: this.#identities.reason(file) });
    }
    return { clusters, unresolved };
  }

  #clusterOf(file: FleetFile & { readonly target: FleetCluster['target'] }, uid: string): FleetCluster {
    const { name, paused, target } = file;
    const activity = this.#activityOf(uid);
    if (paused) {
      this.#paused.add(uid);
      activity.sweepOwedSince = undefined;
    } else if (this.#paused.delete(uid)) activity.sweepOwedSince = this.#options.clock.now();
    return { name, uid, paused, target, activity: { ...activity } };
  }

  #activityOf(uid: string): Mutable<Activity> {
    const activity = this.#activity.get(uid) ?? { since: this.#options.clock.now() };
    this.#activity.set(uid, activity);
    return activity;
  }

  /** What came to the place of another was not watched there: it is owed a sweep. */
  #noteDepartures(): void {
    const { gone, arrived } = this.#identities.takeDepartures();
    for (const uid of gone) this.#tombstones.add(uid);
    for (const uid of arrived) this.#activityOf(uid).sweepOwedSince = this.#options.clock.now();
  }

  async #files(maxAgeMs: number): Promise<readonly FleetFile[]> {
    const { dir, allowLoopback, clock } = this.#options;
    const listing = this.#listing;
    if (listing !== undefined && ageMs(clock, listing.at) < maxAgeMs) return listing.files;
    const fresh = { at: instant(clock), files: readFleetDirectory(dir, allowLoopback) };
    this.#listing = fresh;
    try {
      const files = await fresh.files;
      this.#identities.dropAllBut(files);
      return files;
    } catch (error) {
      if (this.#listing === fresh) this.#listing = undefined;
      throw error;
    }
  }
}
