import { KbindError } from '../../model/errors.ts';
import type { Clock } from '../../model/clock.ts';
import { checkReach, type Reach } from '../reach.ts';
import { clusterId, nameId, readItem, uidOf, type Item, type StoredCluster } from './item.ts';
import type { FleetTable } from './table.ts';

/** What an operator does with the fleet: the CLI's side of the table. */

/** A tombstone outlives every message that may still name the cluster: queues and dead letters keep 14 days. Seconds. */
const TOMBSTONE_SECONDS = 30 * 24 * 3600;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export interface NewCluster {
  readonly name: string;
  /** What the cluster itself said. */
  readonly uid: string;
  readonly reach: Reach;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly cell?: string | undefined;
  readonly ingestKeyArn?: string | undefined;
}

const conflict = (words: string): KbindError => new KbindError('conflict', words);

export class FleetAdmin {
  readonly #table: FleetTable;
  readonly #clock: Clock;

  constructor(table: FleetTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  /**
   * Adds a cluster: its name first, then its UID, each claimed once by a conditional write. Dying in between leaves a name
   * without a cluster, which whoever asks for it next takes over. Throws class `conflict` that says who has the name or the
   * UID, `misconfigured` for a name or a way to reach it that is not valid.
   */
  async add(cluster: NewCluster): Promise<void> {
    if (!NAME.test(cluster.name)) {
      throw new KbindError(
        'misconfigured',
        `${JSON.stringify(cluster.name)} is no name: lower-case letters, digits, -`,
      );
    }
    checkReach(cluster.reach);
    await this.#claimName(cluster);
    const claimed = await this.#table.put(this.#itemOf(cluster), {
      condition: 'attribute_not_exists(id) OR #state = :removed',
      names: { '#state': 'state' },
      values: { ':removed': { S: 'removed' } },
    });
    if (claimed) return;
    const holder = await this.#byUid(cluster.uid);
    // Added before, and the answer was lost: the name is its own.
    if (holder?.name !== cluster.name) await this.#releaseName(cluster.name, cluster.uid);
    throw conflict(`cluster ${cluster.uid} is in the fleet already, as ${holder?.name ?? 'another'}`);
  }

  /** All clusters of all cells, tombstones included. */
  async list(): Promise<StoredCluster[]> {
    const items = await this.#table.scan();
    return items.filter((item) => uidOf(item) !== undefined).map(readItem);
  }

  /** @throws KbindError class `absent` when no cluster has this name */
  async byName(name: string): Promise<StoredCluster> {
    const uid = (await this.#table.get(nameId(name)))?.['uid']?.S;
    const cluster = uid === undefined ? undefined : await this.#byUid(uid);
    if (cluster === undefined || cluster.state === 'removed' || cluster.name !== name) {
      throw new KbindError('absent', `no cluster ${name} in the fleet`);
    }
    return cluster;
  }

  /** Work of a paused cluster is dropped and counted from the next 5 seconds on. */
  async pause(name: string): Promise<void> {
    const { uid } = await this.byName(name);
    await this.#change(uid, 'SET paused = :true REMOVE sweepOwedSince', { ':true': { BOOL: true } });
  }

  /**
   * Lets it work again, and writes down in the same write that it is owed a sweep: the caller asks for it at once (8 s later,
   * design.md rule 14), and the next tick does if the caller dies. Answers with since when it is owed; undefined when the
   * cluster was not paused.
   */
  async resume(name: string): Promise<{ readonly uid: string; readonly owedSince: number } | undefined> {
    const { uid, paused } = await this.byName(name);
    if (!paused) return undefined;
    const owedSince = this.#clock.now();
    await this.#change(uid, 'SET paused = :false, sweepOwedSince = :now', {
      ':false': { BOOL: false },
      ':now': { N: String(owedSince) },
    });
    return { uid, owedSince };
  }

  /** Takes a cluster out of the fleet: a tombstone stays, so that late messages are counted and not dead-lettered. */
  async remove(name: string): Promise<void> {
    const { uid } = await this.byName(name);
    const now = this.#clock.now();
    await this.#change(uid, 'SET #state = :removed, removedAt = :now, expiresAt = :expires REMOVE heldBy', {
      ':removed': { S: 'removed' },
      ':now': { N: String(now) },
      ':expires': { N: String(Math.ceil(now / 1000) + TOMBSTONE_SECONDS) },
    });
    await this.#releaseName(name, uid);
  }

  async #byUid(uid: string): Promise<StoredCluster | undefined> {
    const item = await this.#table.get(clusterId(uid));
    return item === undefined ? undefined : readItem(item);
  }

  async #claimName({ name, uid }: NewCluster): Promise<void> {
    const item: Item = { id: { S: nameId(name) }, uid: { S: uid } };
    const condition = 'attribute_not_exists(id) OR uid = :uid';
    if (await this.#table.put(item, { condition, values: { ':uid': { S: uid } } })) return;
    const holder = (await this.#table.get(nameId(name)))?.['uid']?.S ?? '';
    const cluster = await this.#byUid(holder);
    if (cluster?.state === 'active' && cluster.name === name) {
      throw conflict(`the name ${name} belongs to cluster ${holder}`);
    }
    // Whoever claimed it died before the cluster was added.
    const taken = await this.#table.put(item, { condition: 'uid = :holder', values: { ':holder': { S: holder } } });
    if (!taken) throw conflict(`the name ${name} was taken meanwhile`);
  }

  async #releaseName(name: string, uid: string): Promise<void> {
    await this.#table.delete(nameId(name), { condition: 'uid = :uid', values: { ':uid': { S: uid } } });
  }

  async #change(uid: string, change: string, values: NonNullable<Parameters<FleetTable['update']>[2]['values']>) {
    const changed = await this.#table.update(clusterId(uid), change, {
      condition: '#state = :active',
      names: { '#state': 'state' },
      values: { ':active': { S: 'active' }, ...values },
    });
    if (!changed) throw new KbindError('absent', `cluster ${uid} was removed from the fleet meanwhile`);
  }

  #itemOf({ name, uid, reach, labels = {}, cell, ingestKeyArn }: NewCluster): Item {
    return {
      id: { S: clusterId(uid) },
      uid: { S: uid },
      name: { S: name },
      state: { S: 'active' },
      paused: { BOOL: false },
      reach: { S: JSON.stringify(reach) },
      labels: { S: JSON.stringify(labels) },
      since: { N: String(this.#clock.now()) },
      ...(cell === undefined ? {} : { cell: { S: cell } }),
      ...(ingestKeyArn === undefined ? {} : { ingestKeyArn: { S: ingestKeyArn } }),
    };
  }
}
