import { createHash } from 'node:crypto';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { ageMs, instant, type Clock, type Instant } from '../../model/clock.ts';
import type { IngestKeyring, KeysLookup } from '../ingest-keys.ts';
import type { Reach, ReachResolver } from '../reach.ts';
import type { FleetListing, FleetMember, FleetRegistry, Heartbeat, HeartbeatAnswer, Lookup } from '../registry.ts';
import { clusterId, isTombstone, readItem, uidOf, type Item, type StoredCluster } from './item.ts';
import type { FleetTable } from './table.ts';

/** The registry's entries are believed for that long, ms (design.md, rule 9). */
const ENTRY_MAX_AGE_MS = 5_000;
/** Entries of clusters that are not asked for any more are forgotten beyond this many. */
const MAX_ENTRIES = 1_000;

export interface DynamoRegistryOptions {
  readonly table: FleetTable;
  readonly resolver: ReachResolver;
  readonly clock: Clock;
  /** The stage: clusters of another cell are none of ours. */
  readonly cell: string;
}

interface Entry {
  readonly at: Instant;
  readonly item: Promise<Item | undefined>;
}

/** An active item, for updates: a tombstone takes no notes. */
const ACTIVE = { condition: '#state = :active', names: { '#state': 'state' }, values: { ':active': { S: 'active' } } };

const revisionOf = (reach: Reach): string => createHash('sha256').update(JSON.stringify(reach)).digest('hex');

/** The registry of a deployed cell. */
export class DynamoRegistry implements FleetRegistry, IngestKeyring {
  readonly #options: DynamoRegistryOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: DynamoRegistryOptions) {
    this.#options = options;
  }

  async list(): Promise<FleetListing> {
    const clusters: FleetMember[] = [];
    const unresolved: { name: string; reason: string }[] = [];
    for (const item of await this.#options.table.scan()) {
      if (uidOf(item) === undefined || isTombstone(item) || !this.#isOurs(item)) continue;
      try {
        clusters.push(memberOf(readItem(item)));
      } catch (error) {
        unresolved.push({ name: item['name']?.S ?? '', reason: (error as Error).message });
      }
    }
    clusters.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { clusters, unresolved };
  }

  async lookup(uid: string): Promise<Lookup> {
    const found = await this.#stored(uid);
    if ('found' in found) return found;
    const { reach } = found;
    try {
      const target = await this.#options.resolver.resolve(reach);
      return { found: 'cluster', cluster: { ...memberOf(found), target, revision: revisionOf(reach) } };
    } catch (error) {
      return { found: 'unresolved', reason: `${found.name}: ${(error as Error).message}` };
    }
  }

  async heartbeat(uid: string, beat: Heartbeat): Promise<HeartbeatAnswer> {
    const found = await this.#stored(uid);
    if ('found' in found) return found.found;
    const values = {
      ':heard': { N: String(this.#options.clock.now()) },
      ':at': { N: String(beat.at) },
      ':watches': { N: String(beat.watches) },
    };
    const taken = await this.#note(uid, 'SET heardAt = :heard, heartbeatAt = :at, watches = :watches', values);
    return taken ? 'recorded' : 'removed';
  }

  async swept(uid: string, at: number): Promise<void> {
    await this.#note(uid, 'SET sweptAt = :at', { ':at': { N: String(at) } });
  }

  async sweepAsked(uid: string, owedSince: number): Promise<void> {
    await this.#options.table.update(clusterId(uid), 'REMOVE sweepOwedSince', {
      condition: 'sweepOwedSince = :since',
      values: { ':since': { N: String(owedSince) } },
    });
    this.#entries.delete(uid);
  }

  async held(uid: string, by: string | undefined): Promise<void> {
    if (by === undefined) await this.#note(uid, 'REMOVE heldBy', {});
    else await this.#note(uid, 'SET heldBy = :by', { ':by': { S: by } });
    this.#entries.delete(uid);
  }

  distrust(uid: string): void {
    const entry = this.#entries.get(uid);
    this.#entries.delete(uid);
    // What cannot be read any more is not remembered either.
    entry?.item.then(
      (item) => item !== undefined && this.#forget(item),
      () => undefined,
    );
  }

  async keysOf(uid: string): Promise<KeysLookup> {
    const found = await this.#stored(uid);
    if ('found' in found) return found;
    if (found.ingestKeyArn === undefined) return { found: 'none' };
    try {
      return { found: 'keys', keys: await this.#options.resolver.ingestKeys(found.ingestKeyArn) };
    } catch (error) {
      return { found: 'unresolved', reason: (error as Error).message };
    }
  }

  #forget(item: Item): void {
    try {
      this.#options.resolver.forget(readItem(item).reach);
    } catch {
      // An entry that cannot be read has nothing that could be forgotten; the next look-up says so.
      return;
    }
  }

  /** The entry of an active cluster of this cell, or what else it is. */
  async #stored(uid: string): Promise<StoredCluster | Exclude<Lookup, { found: 'cluster' }>> {
    const item = await this.#item(uid);
    if (item === undefined) return { found: 'unknown' };
    if (isTombstone(item) || !this.#isOurs(item)) return { found: 'removed' };
    try {
      return readItem(item);
    } catch (error) {
      return { found: 'unresolved', reason: (error as Error).message };
    }
  }

  /** Only the entries of active clusters are believed for a while: nobody is called unknown or removed from memory. */
  async #item(uid: string): Promise<Item | undefined> {
    const { clock, table } = this.#options;
    const known = this.#entries.get(uid);
    if (known !== undefined && ageMs(clock, known.at) < ENTRY_MAX_AGE_MS) return known.item;
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear();
    const entry: Entry = { at: instant(clock), item: table.get(clusterId(uid)) };
    this.#entries.set(uid, entry);
    try {
      const item = await entry.item;
      if (item === undefined || isTombstone(item) || !this.#isOurs(item)) this.#drop(uid, entry);
      return item;
    } catch (error) {
      this.#drop(uid, entry);
      throw error;
    }
  }

  #drop(uid: string, entry: Entry): void {
    if (this.#entries.get(uid) === entry) this.#entries.delete(uid);
  }

  #isOurs(item: Item): boolean {
    const cell = item['cell']?.S;
    return cell === undefined || cell === this.#options.cell;
  }

  #note(uid: string, change: string, values: Readonly<Record<string, AttributeValue>>): Promise<boolean> {
    const { condition, names } = ACTIVE;
    return this.#options.table.update(clusterId(uid), change, {
      condition,
      names,
      values: { ...ACTIVE.values, ...values },
    });
  }
}

const memberOf = ({ name, uid, paused, labels, cell, activity }: StoredCluster): FleetMember => ({
  name,
  uid,
  paused,
  labels,
  ...(cell === undefined ? {} : { cell }),
  activity,
});
