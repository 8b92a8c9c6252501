import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import { AskedIdentities, type Connect } from './asked-identities.ts';
import { readFleetDirectory, type FleetFile } from './directory-files.ts';
import type { FleetCluster, FleetListing, FleetRegistry, Heartbeat, Lookup } from './registry.ts';

/** The registry's entries are believed for that long, ms (design.md, rule 9). */
const LISTING_MAX_AGE_MS = 5_000;

export interface DirectoryRegistryOptions {
  readonly dir: string;
  readonly allowLoopback: boolean;
  readonly clock: Clock;
  readonly connect: Connect;
}

/**
 * A registry over a directory of kubeconfigs. UIDs are not written there: each is asked of its cluster when it is needed
 * first. Tombstones and heartbeats are remembered by this process only.
 */
export class DirectoryRegistry implements FleetRegistry {
  readonly #options: DirectoryRegistryOptions;
  readonly #identities: AskedIdentities;
  readonly #tombstones = new Set<string>();
  readonly #heartbeats = new Map<string, Heartbeat>();
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

  heartbeat(uid: string, beat: Heartbeat): Promise<void> {
    this.#heartbeats.set(uid, beat);
    return Promise.resolve();
  }

  /** The last heartbeat of a cluster's forwarder. */
  lastHeartbeat(uid: string): Heartbeat | undefined {
    return this.#heartbeats.get(uid);
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

  #listingOf(files: readonly FleetFile[]): FleetListing {
    const clusters: FleetCluster[] = [];
    const unresolved: { name: string; reason: string }[] = [];
    for (const file of files) {
      const uid = this.#identities.known(file);
      if (uid !== undefined && 'target' in file) {
        clusters.push({ name: file.name, uid, paused: false, target: file.target });
      } else {
        unresolved.push({ name: file.name, reason: this.#identities.reason(file) });
      }
    }
    return { clusters, unresolved };
  }

  async #files(maxAgeMs: number): Promise<readonly FleetFile[]> {
    const { dir, allowLoopback, clock } = this.#options;
    const listing = this.#listing;
    if (listing !== undefined && ageMs(clock, listing.at) < maxAgeMs) return listing.files;
    const fresh = { at: instant(clock), files: readFleetDirectory(dir, allowLoopback) };
    this.#listing = fresh;
    try {
      const files = await fresh.files;
      for (const uid of this.#identities.dropAllBut(files)) this.#tombstones.add(uid);
      return files;
    } catch (error) {
      if (this.#listing === fresh) this.#listing = undefined;
      throw error;
    }
  }
}
