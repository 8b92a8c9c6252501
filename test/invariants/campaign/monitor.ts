import type { Change } from '../../../lib/embedded/storage/table.ts';
import { jsonEqual } from '../../../lib/kube/json.ts';
import type { Network, TestCluster } from '../../support/faults/network.ts';
import type { Consumer, Process } from './cell.ts';
import { apis, type ApiName } from './setup.ts';

/** What an object looks like to the watchman. */
export interface Seen {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly creationTimestamp?: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly [field: string]: unknown;
}

export const SYNCER = 'core.kbind.io/syncer';
export const CLEANUP = 'core.kbind.io/cleanup';
export const CLUSTER = 'core.kbind.io/consumer-cluster-uid';
export const OBJECT = 'core.kbind.io/consumer-object-uid';
export const CONFLICT = 'core.kbind.io/conflict';
const MANAGED = 'core.kbind.io/managed';
const CONNECTION = 'core.kbind.io/connection';
const POLICY = 'core.kbind.io/deletion-policy';
/** Reads of bindings are believed for 5 s; a little more passes on the way. */
const BELIEVED_MS = 8_500;
const GRACE_MS = 8_000;
/** How old the answer to "who are you" may be before a create, and what passes on the way. */
/** More events of one key than a history has steps. */
const MANY_FIRST_FAILURES = 40;
const CONFIRMED_MS = 13_000;

const tableOf = (api: ApiName): string => `example.org/${apis[api].resource}`;
const apiOfTable = (table: string): ApiName | undefined =>
  (Object.keys(apis) as ApiName[]).find((api) => tableOf(api) === table);

/** All objects of a resource. */
export const objectsOf = (cluster: TestCluster, group: string, plural: string): Seen[] =>
  [...cluster.world.store.table({ group, plural }).values()] as unknown as Seen[];
export const instancesOf = (cluster: TestCluster, api: ApiName): Seen[] =>
  objectsOf(cluster, 'example.org', apis[api].resource);
export const keyOfSeen = ({ metadata }: Seen): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
export const annotation = (object: Seen | undefined, name: string): string | undefined =>
  object?.metadata.annotations?.[name];
export const has = (object: Seen | undefined, finalizer: string): boolean =>
  object?.metadata.finalizers?.includes(finalizer) ?? false;

export interface SeenBinding extends Seen {
  readonly kind: string;
  readonly spec: {
    readonly apis: readonly { readonly name: string }[];
    readonly conflictPolicy?: string;
    readonly connectionRef: { readonly name: string };
  };
}
export const bindingsOf = (cluster: TestCluster): SeenBinding[] =>
  [
    ...objectsOf(cluster, 'core.kbind.io', 'clusterbindings'),
    ...objectsOf(cluster, 'core.kbind.io', 'bindings'),
  ] as SeenBinding[];
export const lists = (binding: SeenBinding, api: string): boolean => binding.spec.apis.some(({ name }) => name === api);
export const inScope = (binding: SeenBinding, object: Seen): boolean =>
  binding.kind === 'ClusterBinding' ||
  (object.metadata.namespace !== undefined && binding.metadata.namespace === object.metadata.namespace);

/** Watches every change as it is made, and holds those of the product against lines 1 and 2 of spec §8. */
export class Monitor {
  readonly violations: string[] = [];
  /** UIDs of instances that were let go with their copy kept (Orphan). */
  readonly orphaned = new Set<string>();
  /** UIDs of instances whose finalizer somebody else removed, and of copies that a person touched the markers of. */
  readonly handled = new Set<string>();
  /** Copies that a drain had to leave behind: `cluster|api|key`. */
  readonly leftBehind = new Set<string>();
  readonly #network: Network;
  readonly #consumers: readonly Consumer[];
  readonly #firstFailures = new Map<string, number>();
  readonly #last = new Map<string, Seen>();
  readonly #lastAdopt = new Map<string, number>();
  /** A Connection was made while its address led elsewhere, and is pinned to what it found there. */
  misled = false;
  writes = 0;
  /** Writes while something that must not write is looked at. */
  readonly watched: string[] = [];

  constructor(network: Network, consumers: readonly Consumer[]) {
    this.#network = network;
    this.#consumers = consumers;
    for (const [name, cluster] of network.clusters)
      cluster.world.store.observe((table, change) => this.#changed(name, cluster, table, change));
  }

  /** Takes note of what the product says. */
  said(message: string, fields: Readonly<Record<string, unknown>>): void {
    if (message === 'work failed' && fields['counted'] === 'Retried' && fields['attempt'] === 0)
      this.#noteFirstFailure(String(fields['key']));
    if (message === 'provider copy left behind by a drain')
      this.leftBehind.add(`${String(fields['cluster'])}|${String(fields['api'])}|${String(fields['key'])}`);
  }

  /** A chain of retries counts its attempts: what fails as a first attempt again and again does not. */
  #noteFirstFailure(key: string): void {
    const failures = (this.#firstFailures.get(key) ?? 0) + 1;
    this.#firstFailures.set(key, failures);
    if (failures === MANY_FIRST_FAILURES)
      this.#fail(`attempts are not counted: ${key} failed ${failures} times as if for the first time`);
  }

  #fail(text: string): void {
    this.violations.push(`${this.#network.time.elapsed()} ms: ${text}`);
  }

  #changed(name: string, cluster: TestCluster, table: string, change: Change): void {
    // Not the change's own: an object that goes with its last finalizer was never stored without it.
    const id = `${name}|${table}|${change.key}`;
    const previous = this.#last.get(id);
    const object = change.object as unknown as Seen;
    if (change.type === 'DELETED') this.#last.delete(id);
    else this.#last.set(id, object);
    const { doing } = this.#network;
    const product = doing?.actor.product === true;
    if (table === 'core.kbind.io/clusterbindings' || table === 'core.kbind.io/bindings')
      this.#noteAdopt(name, previous, object);
    const api = apiOfTable(table);
    if (api !== undefined && name !== 'provider' && name !== 'impostor')
      this.#noteRelease(name, api, { previous, object, product, deleted: change.type === 'DELETED' });
    if (!product) {
      if (api !== undefined && previous !== undefined && !jsonEqual(owners(previous), owners(object)))
        this.handled.add(object.metadata.uid);
      return;
    }
    this.writes += 1;
    const event = {
      name,
      table,
      previous,
      object,
      deleted: change.type === 'DELETED',
      process: doing?.actor as Process,
    };
    this.watched.push(
      `${event.process.name} ${doing?.verb ?? ''} ${name} ${table} ${keyOfSeen(object)} ${difference(previous, object)}`,
    );
    if (
      table === 'core.kbind.io/connections' &&
      (object.status as { remoteClusterUID?: string } | undefined)?.remoteClusterUID === this.#impostorUid()
    )
      this.misled = true;
    if (name === 'impostor') return this.#onImpostor(event);
    if (name === 'provider') this.#onProvider(event, api);
    else this.#onConsumer(event, api, cluster);
  }

  #noteAdopt(name: string, previous: Seen | undefined, object: Seen): void {
    for (const each of [previous, object] as (SeenBinding | undefined)[]) {
      if (each?.spec.conflictPolicy !== 'Adopt') continue;
      for (const api of each.spec.apis) this.#lastAdopt.set(`${name}|${api.name}`, this.#network.time.now());
    }
  }

  #mayAdopt(consumer: string, api: string): boolean {
    const last = this.#lastAdopt.get(`${consumer}|${api}`);
    const cluster = this.#network.clusters.get(consumer);
    const adopting =
      cluster !== undefined &&
      bindingsOf(cluster).some((binding) => binding.spec.conflictPolicy === 'Adopt' && lists(binding, api));
    return adopting || (last !== undefined && this.#network.time.now() - last < BELIEVED_MS);
  }

  #impostorUid(): string | undefined {
    return this.#network.clusters.get('impostor')?.uid;
  }

  /** Who an address leads to is asked before a create when the last answer is older than 10 s: a create may come that late. */
  #onImpostor(event: Event): void {
    const { time, faults } = this.#network;
    const now = time.elapsed();
    const just = faults.episodes.some(
      ({ kind, from }) => kind === 'other-cluster' && from <= now && now - from <= CONFIRMED_MS,
    );
    if (this.misled || (event.previous === undefined && just)) return;
    this.#fail(`wrote into a cluster that it was not sent to: ${describe(event)}`);
  }

  /** Line 1 on the provider. */
  #onProvider(event: Event, api: ApiName | undefined): void {
    const { table, previous, object, process, deleted } = event;
    if (api !== undefined) return this.#onCopy(event, api);
    const ours = object.metadata.labels?.[MANAGED] === 'true';
    if (table === '/namespaces' && previous === undefined && ours) return;
    if (
      table === 'coordination.k8s.io/leases' &&
      !deleted &&
      (previous === undefined ? ours : annotation(previous, CLUSTER) === annotation(object, CLUSTER))
    )
      return;
    this.#fail(`${process.name} touched what is not ours on the provider: ${describe(event)}`);
  }

  #onCopy(event: Event, api: ApiName): void {
    const { previous, object, process } = event;
    const owner = annotation(previous ?? object, CLUSTER);
    const consumer = this.#consumers.find(({ uid }) => uid === (owner ?? annotation(object, CLUSTER)));
    if (previous === undefined) {
      if (annotation(object, OBJECT) === undefined || consumer === undefined)
        this.#fail(`a copy was made without its owner's names: ${describe(event)}`);
      process.made.push(object.metadata.uid);
      return;
    }
    const unmarked = annotation(previous, CLUSTER) === undefined && annotation(previous, OBJECT) === undefined;
    if (unmarked) {
      process.made.push(object.metadata.uid);
      if (event.deleted || consumer === undefined || !this.#mayAdopt(consumer.name, api))
        this.#fail(`an object without our markers was touched: ${describe(event)}`);
      return;
    }
    if (
      annotation(previous, CLUSTER) === undefined ||
      annotation(previous, OBJECT) === undefined ||
      consumer === undefined
    ) {
      this.#fail(`an object with one marker of two was touched: ${describe(event)}`);
    }
  }

  /** Line 1 on the consumer. */
  #onConsumer(event: Event, api: ApiName | undefined, cluster: TestCluster): void {
    const { table, previous, object, process, deleted } = event;
    if (api !== undefined) {
      const only = previous !== undefined && jsonEqual(withoutOurs(previous, true), withoutOurs(object, true));
      if (
        !only &&
        !(deleted && previous !== undefined && jsonEqual(withoutOurs(previous, true), withoutOurs(object, true)))
      )
        this.#fail(`a user's object was changed beyond our own: ${describe(event)}`);
      return;
    }
    if (table === '/events' || table === 'coordination.k8s.io/leases') return;
    if (table === 'apiextensions.k8s.io/customresourcedefinitions') return this.#onCrd(event, cluster);
    const kbind = table.startsWith('core.kbind.io/');
    if (
      (kbind || table === '/secrets') &&
      previous !== undefined &&
      jsonEqual(withoutOurs(previous, kbind), withoutOurs(object, kbind))
    )
      return;
    if (table === 'core.kbind.io/clusterbindings' && object.metadata.labels?.[MANAGED] === 'true') return;
    this.#fail(`${process.name} touched what is not ours on the consumer: ${describe(event)}`);
  }

  #onCrd(event: Event, cluster: TestCluster): void {
    const { previous, object } = event;
    if (previous === undefined) {
      if (object.metadata.labels?.[MANAGED] !== 'true')
        this.#fail(`a CRD was installed without our label: ${describe(event)}`);
      return;
    }
    const ours = previous.metadata.labels?.[MANAGED] === 'true' && annotation(previous, CONNECTION) !== undefined;
    const deletes =
      previous.metadata.deletionTimestamp === undefined && object.metadata.deletionTimestamp !== undefined;
    if (!ours && !jsonEqual(withoutOurs(previous, true), withoutOurs(object, true)))
      this.#fail(`a CRD that is not ours was changed: ${describe(event)}`);
    if (!deletes) return;
    const old = (binding: SeenBinding): boolean => this.#age(binding.metadata.creationTimestamp) > BELIEVED_MS;
    const live = bindingsOf(cluster).find(
      (binding) =>
        lists(binding, object.metadata.name) && binding.metadata.deletionTimestamp === undefined && old(binding),
    );
    if (live !== undefined) this.#fail(`a CRD was deleted though ${live.kind} ${live.metadata.name} lists it`);
  }

  #age(time: string | undefined): number {
    return time === undefined ? 0 : this.#network.time.now() - Date.parse(time);
  }

  /** Line 2: what holds when our finalizer leaves an instance. */
  #noteRelease(
    name: string,
    api: ApiName,
    event: { previous: Seen | undefined; object: Seen; product: boolean; deleted: boolean },
  ): void {
    const { previous, object, product } = event;
    if (previous === undefined || !has(previous, SYNCER) || has(event.deleted ? undefined : object, SYNCER)) return;
    const { uid } = previous.metadata;
    if (!product) {
      this.handled.add(uid);
      return;
    }
    if (annotation(previous, POLICY) === 'Orphan') {
      this.orphaned.add(uid);
      return;
    }
    const consumer = this.#consumers.find((each) => each.name === name);
    const provider = this.#network.clusters.get('provider');
    const cluster = this.#network.clusters.get(name);
    if (consumer === undefined || provider === undefined || cluster === undefined) return;
    const copy = instancesOf(provider, api).find(
      (each) => annotation(each, CLUSTER) === consumer.uid && annotation(each, OBJECT) === uid,
    );
    const drained = this.#drains(cluster, api, previous);
    if (copy === undefined || drained) {
      if (previous.metadata.deletionTimestamp === undefined && !drained)
        this.#fail(
          `the finalizer of ${name} ${api} ${keyOfSeen(previous)} was released though it is neither deleted nor drained`,
        );
      return;
    }
    this.#fail(`the finalizer of ${name} ${api} ${keyOfSeen(previous)} was released while its copy stands`);
  }

  #drains(cluster: TestCluster, api: string, object: Seen): boolean {
    const listing = bindingsOf(cluster).filter((binding) => lists(binding, api));
    const live = listing.some(
      (binding) =>
        binding.metadata.deletionTimestamp === undefined && this.#age(binding.metadata.creationTimestamp) > BELIEVED_MS,
    );
    if (live) return false;
    return listing.some(
      (binding) =>
        binding.metadata.deletionTimestamp !== undefined &&
        has(binding, CLEANUP) &&
        inScope(binding, object) &&
        this.#age(binding.metadata.deletionTimestamp) >= GRACE_MS - 1_000,
    );
  }
}

interface Event {
  readonly name: string;
  readonly table: string;
  readonly previous: Seen | undefined;
  readonly object: Seen;
  readonly deleted: boolean;
  readonly process: Process;
}

/** Where two states of an object differ, for a person. */
function difference(before: unknown, after: unknown, path = ''): string {
  if (jsonEqual(before ?? null, after ?? null) || /managedFields|resourceVersion/.test(path)) return '';
  const maps = [before, after].every((value) => typeof value === 'object' && value !== null);
  if (!maps) return `${path}: ${JSON.stringify(before)} → ${JSON.stringify(after)}; `;
  const [a, b] = [before, after] as [Record<string, unknown>, Record<string, unknown>];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .map((key) => difference(a[key], b[key], `${path}/${key}`))
    .join('');
}

const owners = (object: Seen): unknown => [annotation(object, CLUSTER) ?? null, annotation(object, OBJECT) ?? null];
const describe = ({ name, table, object, previous, deleted }: Event): string =>
  `${name} ${table} ${keyOfSeen(object)} ${deleted ? 'deleted' : previous === undefined ? 'made' : 'changed'}`;

const OURS = /^core\.kbind\.io\/(?!deletion-policy)/;
const without = (map: Readonly<Record<string, string>> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !OURS.test(key)));

/** An object without what is ours to change on it. */
function withoutOurs(object: Seen, status: boolean): unknown {
  const { metadata, ...rest } = object;
  const { status: _, ...body } = rest;
  return {
    ...(status ? body : rest),
    metadata: {
      name: metadata.name,
      uid: metadata.uid,
      labels: without(metadata.labels),
      annotations: without(metadata.annotations),
      finalizers: (metadata.finalizers ?? []).filter((finalizer) => finalizer !== SYNCER && finalizer !== CLEANUP),
      deletionTimestamp: null,
    },
  };
}
