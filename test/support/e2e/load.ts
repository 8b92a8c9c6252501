import { isDeepStrictEqual } from 'node:util';
import { resources, type KubeObject, type ObjectKey } from '../../../lib/model/api.ts';
import type { Random } from '../faults/random.ts';
import { ApiError, type TestCluster } from './cluster.ts';
import { widgets } from './f0.ts';

/** What people do to instances, as many times as asked, and what must be there once it is done and has arrived. */

export type Change = 'create' | 'edit' | 'status' | 'delete';
export type Counts = Readonly<Partial<Record<Change, number>>>;
const OURS = 'core.kbind.io/consumer-object-uid';
const SYNCER = 'core.kbind.io/syncer';
/** Of the names of new objects, the part that was another object's before. */
const REUSED = 0.2;
/** People at work at the same time. */
const PEOPLE = 6;

interface Expected {
  readonly uid: string;
  spec: Record<string, unknown>;
  status: Record<string, unknown> | undefined;
}

export interface LoadOptions {
  readonly consumer: TestCluster;
  readonly provider: TestCluster;
  readonly random: Random;
  /** How many of each are made. */
  readonly counts: Counts;
}

export class Load {
  readonly #options: LoadOptions;
  readonly #left: Record<Change, number> = { create: 0, edit: 0, status: 0, delete: 0 };
  readonly #expected = new Map<string, Expected>();
  /** Names that somebody is at: one change of one object at a time keeps the model true. */
  readonly #taken = new Set<string>();
  readonly #deleted: string[] = [];
  #names = 0;
  #revision = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.more(options.counts);
  }

  /** That many more are to be made. */
  more(counts: Counts): void {
    for (const [kind, count] of Object.entries(counts)) this.#left[kind as Change] += count;
  }

  /** Changes that are still to be made. */
  get left(): number {
    return Object.values(this.#left).reduce((sum, count) => sum + count, 0);
  }

  /** Names that must be there. */
  get alive(): readonly string[] {
    return [...this.#expected.keys()];
  }

  /** Makes that many changes, several at a time. */
  async run(changes: number): Promise<void> {
    const end = Math.max(0, this.left - changes);
    const person = async (): Promise<void> => {
      while (this.left > end) await this.#something();
    };
    await Promise.all(Array.from({ length: PEOPLE }, person));
  }

  async #something(): Promise<void> {
    const { random } = this.#options;
    const kinds = (Object.keys(this.#left) as Change[]).filter((kind) => this.#left[kind] > 0);
    const deck = kinds.flatMap((kind) => Array<Change>(this.#left[kind]).fill(kind));
    const kind = deck.length === 0 ? undefined : random.pick(deck);
    if (kind === undefined) return;
    // Counted before it is made, so that several people together make no more than was asked for.
    this.#left[kind] -= 1;
    const name = kind === 'create' ? this.#newName() : this.#freeName();
    const made = name !== undefined && (await this.#holding(name, () => this.#make(kind, name)));
    if (made) return;
    this.#left[kind] += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** A name of its own, or that of an object which was deleted a while ago: its successor must not inherit anything. */
  #newName(): string {
    const { random } = this.#options;
    const former = random.chance(REUSED) ? this.#deleted.shift() : undefined;
    if (former !== undefined) return former;
    this.#names += 1;
    return `load-${this.#names}`;
  }

  #freeName(): string | undefined {
    const free = this.alive.filter((name) => !this.#taken.has(name));
    return free.length === 0 ? undefined : this.#options.random.pick(free);
  }

  async #holding(name: string, make: () => Promise<boolean>): Promise<boolean> {
    this.#taken.add(name);
    try {
      return await make();
    } finally {
      this.#taken.delete(name);
    }
  }

  async #make(kind: Change, name: string): Promise<boolean> {
    const { consumer } = this.#options;
    const expected = this.#expected.get(name);
    this.#revision += 1;
    const spec = { size: `r${this.#revision}`, nested: { list: [this.#revision, { deep: true }] } };
    if (kind === 'create') return this.#create(name, spec);
    if (expected === undefined) return false;
    if (kind === 'edit') {
      await consumer.merge(widgets, at(name), { spec });
      expected.spec = spec;
      return true;
    }
    if (kind === 'status') return this.#setStatus(name, expected);
    await consumer.delete(widgets, at(name));
    this.#expected.delete(name);
    this.#deleted.push(name);
    return true;
  }

  async #create(name: string, spec: Expected['spec']): Promise<boolean> {
    try {
      const { metadata } = await this.#options.consumer.make(widgets, at(name), { spec });
      this.#expected.set(name, { uid: metadata.uid, spec, status: undefined });
      return true;
    } catch (error) {
      // The one before it is still on its way out.
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      this.#deleted.push(name);
      return false;
    }
  }

  /** Of a copy that is there and is this object's; the version keeps it from being set on another one of that name. */
  async #setStatus(name: string, expected: Expected): Promise<boolean> {
    const { provider } = this.#options;
    const copy = await provider.find(widgets, at(name));
    if (copy?.metadata.annotations?.[OURS] !== expected.uid) return false;
    const status = { phase: `p${this.#revision}`, seen: { generation: this.#revision } };
    const { resourceVersion } = copy.metadata;
    try {
      await provider.merge(widgets, at(name), { metadata: { resourceVersion }, status }, '/status');
    } catch (error) {
      if (error instanceof ApiError && (error.status === 409 || error.status === 404)) return false;
      throw error;
    }
    expected.status = status;
    return true;
  }

  /** What is not as it must be at rest, in words; empty when both clusters hold what the last change asked for. */
  async differences(): Promise<string[]> {
    const { consumer, provider } = this.#options;
    const [sources, copies] = await Promise.all([byName(consumer), byName(provider)]);
    const names = new Set([...this.#expected.keys(), ...sources.keys(), ...copies.keys()]);
    return [...names].flatMap((name) => {
      const wrong = differenceOf(this.#expected.get(name), sources.get(name), copies.get(name));
      return wrong === undefined ? [] : [`${name}: ${wrong}`];
    });
  }
}

const at = (name: string): ObjectKey & { namespace: string } => ({ namespace: 'default', name });

async function byName(cluster: TestCluster): Promise<Map<string, KubeObject>> {
  const objects = await cluster.list(widgets);
  return new Map(
    objects.filter(({ metadata }) => metadata.name.startsWith('load-')).map((each) => [each.metadata.name, each]),
  );
}

function differenceOf(
  expected: Expected | undefined,
  source: KubeObject | undefined,
  copy: KubeObject | undefined,
): string | undefined {
  if (expected === undefined) {
    if (source !== undefined) return `deleted, and still on the consumer with ${String(source.metadata.finalizers)}`;
    return copy === undefined ? undefined : 'deleted, and its copy is left';
  }
  if (source?.metadata.uid !== expected.uid) return 'not on the consumer';
  if (!isDeepStrictEqual(source.metadata.finalizers, [SYNCER])) return 'without our finalizer';
  if (!isDeepStrictEqual(source.spec, expected.spec)) return 'the user’s own spec was changed';
  if (copy === undefined) return 'no copy';
  if (copy.metadata.annotations?.[OURS] !== expected.uid) return 'the copy is another object’s';
  if (copy.metadata.deletionTimestamp !== undefined) return 'its copy is being deleted';
  if (!isDeepStrictEqual(copy.spec, expected.spec)) return 'the copy has an older spec';
  if (!isDeepStrictEqual(copy.status, expected.status)) return 'the provider’s status was changed';
  return isDeepStrictEqual(source.status, expected.status) ? undefined : 'an older status came back';
}

/** Objects that are nobody's business of ours, on both sides, and the way to see that they were left alone. */
export async function putForeign(consumer: TestCluster, provider: TestCluster): Promise<() => Promise<string[]>> {
  const owned = {
    annotations: { 'core.kbind.io/consumer-cluster-uid': 'another-cluster', [OURS]: 'another-object' },
    labels: { 'core.kbind.io/managed': 'true', 'core.kbind.io/consumer-cluster-uid': 'another-cluster' },
  };
  for (let index = 0; index < 10; index += 1) {
    await provider.make(widgets, at(`theirs-${index}`), { spec: { size: 'theirs' } });
    await provider.make(widgets, at(`others-${index}`), { metadata: owned, spec: { size: 'others' } });
    await consumer.make(resources.configmaps, at(`own-${index}`), { data: { key: 'value' } });
  }
  // Half of them are in the way of objects of the same name.
  for (let index = 0; index < 5; index += 1) {
    await consumer.make(widgets, at(`theirs-${index}`), { spec: { size: 'mine' } });
    await consumer.make(widgets, at(`others-${index}`), { spec: { size: 'mine' } });
  }
  const look = async (): Promise<string[]> => {
    const [copies, maps] = await Promise.all([provider.list(widgets), consumer.list(resources.configmaps)]);
    return [...copies, ...maps]
      .filter(({ metadata }) => /^(?:theirs|others|own)-/.test(metadata.name))
      .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`)
      .toSorted();
  };
  const before = await look();
  return async () => {
    const after = await look();
    return [...before.filter((line) => !after.includes(line)), ...after.filter((line) => !before.includes(line))];
  };
}
