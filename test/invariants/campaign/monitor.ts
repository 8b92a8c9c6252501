import type { Change } from '../../../lib/embedded/storage/table.ts';
import { jsonEqual } from '../../../lib/kube/json.ts';
import type { Network, TestCluster } from '../../support/faults/network.ts';
import type { Consumer, Process } from './cell.ts';
import { apis, type ApiName } from './setup.ts';
import {
  annotation,
  bindingsOf,
  CLEANUP,
  CLUSTER,
  deleting,
  has,
  inScope,
  instancesOf,
  keyOfSeen,
  lists,
  MANAGED,
  OBJECT,
  objectsOf,
  RELATED,
  SYNCER,
  type Seen,
  type SeenBinding,
} from './seen.ts';

const CONNECTION = 'core.kbind.io/connection';
const POLICY = 'core.kbind.io/deletion-policy';
/** Reads of bindings are believed for 5 s; a little more passes on the way. */
const BELIEVED_MS = 8_500;
const GRACE_MS = 8_000;
/** What passes between the answer to "who are you", asked before each create, and its arrival; where answers are slow. */
const CONFIRMED_MS = 1_000;
const CONFIRMED_SLOWLY_MS = 13_000;
/** Between two empty lists, less what two clocks may differ by. */
const EMPTY_MS = 57_000;

const tableOf = (api: ApiName): string => `example.org/${apis[api].resource}`;
const apiOfTable = (table: string): ApiName | undefined =>
  (Object.keys(apis) as ApiName[]).find((api) => tableOf(api) === table);

/** Watches every change as it is made, and holds those of the product against lines 1 and 2 of spec §8. */
export class Monitor {
  readonly violations: string[] = [];
  /** UIDs of instances that were let go with their copy kept (Orphan). */
  readonly orphaned = new Set<string>();
  /** UIDs of instances whose finalizer somebody else removed, and of copies that a person touched the markers of. */
  readonly handled = new Set<string>();
  /** Copies that a drain had to leave behind: `cluster|api|key`; related ones: `cluster|name of the binding`. */
  readonly leftBehind = new Set<string>();
  readonly #network: Network;
  readonly #consumers: readonly Consumer[];
  readonly #last = new Map<string, Seen>();
  /** What the product made in the cluster that an address led to by mistake. */
  readonly #madeElsewhere = new Set<string>();
  readonly #lastAdopt = new Map<string, number>();
  /** When a binding that asks for an API last stood, not deleting: `consumer|api|namespace` (none for all), or by its UID. */
  readonly #lastBound = new Map<string, number>();
  /** When a CRD of the provider was offered last, as far as its changes tell. */
  #lastExported = 0;
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
    if (message === 'provider copy left behind by a drain')
      this.leftBehind.add(`${String(fields['cluster'])}|${String(fields['api'])}|${String(fields['key'])}`);
    if (message === 'related copies left behind')
      this.leftBehind.add(`${String(fields['cluster'])}|${String(fields['binding'])}`);
  }

  /** Takes note of what the product sends to its queues: whoever has failed counts it (design.md, rule 5). */
  sent(body: string): void {
    if (!body.includes('"firstFailure"') || body.includes('"type":"dead-letter"')) return;
    const message = JSON.parse(body) as { readonly request?: Counted } & Counted;
    const { attempt = 0, firstFailure } = message.request ?? message;
    if (firstFailure !== undefined && attempt === 0) this.#fail(`attempts are not counted: ${body.slice(0, 200)}`);
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
    if (name === 'provider' && table === 'apiextensions.k8s.io/customresourcedefinitions')
      this.#noteExport(previous, object);
    const { doing } = this.#network;
    const product = doing?.actor.product === true;
    if (table === 'core.kbind.io/clusterbindings' || table === 'core.kbind.io/bindings')
      this.#noteBinding(name, previous as SeenBinding | undefined, object as SeenBinding);
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

  #noteExport(...states: readonly (Seen | undefined)[]): void {
    if (states.some((crd) => crd?.metadata.labels?.['core.kbind.io/exported'] === 'true'))
      this.#lastExported = this.#network.time.now();
  }

  #noteBinding(name: string, previous: SeenBinding | undefined, object: SeenBinding): void {
    const now = this.#network.time.now();
    for (const { kind, spec, metadata } of [previous ?? object, object]) {
      if (metadata.deletionTimestamp === undefined) this.#lastBound.set(metadata.uid, now);
      for (const api of spec.apis) {
        if (spec.conflictPolicy === 'Adopt') this.#lastAdopt.set(`${name}|${api.name}`, now);
        const scope = kind === 'ClusterBinding' ? '' : (metadata.namespace ?? '');
        if (metadata.deletionTimestamp === undefined) this.#lastBound.set(`${name}|${api.name}|${scope}`, now);
      }
    }
  }

  /** Spec §8: what was read of bindings is believed for 5 s; later nobody acts on one that is gone or deleting. */
  #checkBound(consumer: string, api: ApiName, event: Event): void {
    const cluster = this.#network.clusters.get(consumer);
    if (cluster === undefined) return;
    const live = bindingsOf(cluster).some(
      (binding) =>
        binding.metadata.deletionTimestamp === undefined && lists(binding, api) && inScope(binding, event.object),
    );
    const scopes = ['', event.object.metadata.namespace ?? ''];
    const last = Math.max(...scopes.map((scope) => this.#lastBound.get(`${consumer}|${api}|${scope}`) ?? 0));
    if (!live && this.#network.time.now() - last > BELIEVED_MS)
      this.#fail(`acted on a binding that is no more: ${describe(event)}`);
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

  /**
   * Who an address leads to is asked before each create: a create may come as late as that answer and itself take, and what was
   * made so carries our markers.
   */
  #onImpostor(event: Event): void {
    const { time, faults } = this.#network;
    const now = time.elapsed();
    const late = faults.kinds.has('slow') ? CONFIRMED_SLOWLY_MS : CONFIRMED_MS;
    const begun = faults.episodes.filter(({ kind }) => kind === 'other-cluster').map(({ from }) => from);
    const just = [...begun, this.#network.ledElsewhereAt].some((from) => from <= now && now - from <= late);
    const { uid } = event.object.metadata;
    if (this.misled || this.#madeElsewhere.has(uid)) return;
    if (event.previous === undefined && just) {
      this.#madeElsewhere.add(uid);
      return;
    }
    this.#fail(`wrote into a cluster that it was not sent to: ${describe(event)}`);
  }

  /** Line 1 on the provider. */
  #onProvider(event: Event, api: ApiName | undefined): void {
    const { table, previous, object, process, deleted } = event;
    if (api !== undefined) return this.#onCopy(event, api);
    if (RELATED_TABLES.has(table)) return this.#onRelated(event);
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
      if (consumer !== undefined) this.#checkBound(consumer.name, api, event);
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
    } else if (startsDeletion(event)) {
      this.#checkUnkept(consumer.name, api, event);
    } else if (!event.deleted && !jsonEqual(previous.spec ?? null, object.spec ?? null)) {
      this.#checkBound(consumer.name, api, event);
    }
  }

  /** A copy is deleted only where its source goes, has gone, was never ours to sync, or is drained. */
  #checkUnkept(consumer: string, api: ApiName, event: Event): void {
    const cluster = this.#network.clusters.get(consumer);
    if (cluster === undefined) return;
    const owner = annotation(event.previous, OBJECT);
    const source = instancesOf(cluster, api).find(({ metadata }) => metadata.uid === owner);
    if (source === undefined || deleting(source) || !has(source, SYNCER) || this.#drains(cluster, api, source)) return;
    this.#fail(`a copy was deleted whose source stands: ${describe(event)}`);
  }

  /** Line 1 on the consumer. */
  #onConsumer(event: Event, api: ApiName | undefined, cluster: TestCluster): void {
    const { name, table, previous, object, process } = event;
    const kbind = table.startsWith('core.kbind.io/');
    const auto =
      table === 'core.kbind.io/clusterbindings' && (previous ?? object).metadata.labels?.[MANAGED] === 'true';
    if ((api !== undefined || kbind) && !auto && startsDeletion(event))
      this.#fail(`a user's object was deleted: ${describe(event)}`);
    if (api !== undefined) {
      if (!has(previous, SYNCER) && has(object, SYNCER)) this.#checkBound(name, api, event);
      if (previous === undefined || !jsonEqual(withoutOurs(previous, true), withoutOurs(object, true)))
        this.#fail(`a user's object was changed beyond our own: ${describe(event)}`);
      return;
    }
    if (auto) return this.#onAutoBinding(event, cluster);
    if (table === '/events' || table === 'coordination.k8s.io/leases') return;
    if (table === 'apiextensions.k8s.io/customresourcedefinitions') return this.#onCrd(event, cluster);
    if (
      (kbind || table === '/secrets') &&
      previous !== undefined &&
      jsonEqual(withoutOurs(previous, kbind), withoutOurs(object, kbind)) &&
      (kbind || (jsonEqual(markings(previous), markings(object)) && !startsDeletion(event)))
    )
      return;
    if (RELATED_TABLES.has(table)) return this.#onRelated(event);
    if (table === '/namespaces' && previous === undefined && object.metadata.labels?.[MANAGED] === 'true') return;
    this.#fail(`${process.name} touched what is not ours on the consumer: ${describe(event)}`);
  }

  /** Line 1 for related copies, on either side: they carry our markers from the first moment, and nothing else is touched. */
  #onRelated(event: Event): void {
    const { name, previous, object, process } = event;
    const marked = previous ?? object;
    const binding = annotation(marked, RELATED);
    const owner = this.#consumers.find(({ uid }) => uid === annotation(marked, CLUSTER));
    const here = owner !== undefined && (name === 'provider' || name === owner.name);
    if (binding === undefined || !here || marked.metadata.labels?.[MANAGED] !== 'true')
      this.#fail(
        `${previous === undefined ? 'a related copy was made without our markers' : "somebody's object was touched"}: ${describe(event)}`,
      );
    else if (!event.deleted && annotation(object, RELATED) !== binding)
      this.#fail(`a related copy went from one binding to another: ${describe(event)}`);
    if (previous !== undefined) return;
    process.made.push(object.metadata.uid);
    const last = this.#lastBound.get(binding ?? '') ?? 0;
    const cluster = this.#network.clusters.get(owner?.name ?? '');
    const live =
      cluster !== undefined &&
      bindingsOf(cluster).some(
        ({ metadata: { uid, deletionTimestamp } }) => uid === binding && deletionTimestamp === undefined,
      );
    if (!live && this.#network.time.now() - last > BELIEVED_MS)
      this.#fail(`a related copy was made for a binding that is no more: ${describe(event)}`);
  }

  /** A list of exports that is empty, or was not answered, for a moment unbinds nobody (spec §2.6). */
  #onAutoBinding(event: Event, cluster: TestCluster): void {
    const { object } = event;
    if (!startsDeletion(event)) return;
    const connection = objectsOf(cluster, 'core.kbind.io', 'connections').find(
      ({ metadata }) => metadata.name === object.metadata.name,
    );
    const going = connection === undefined || deleting(connection);
    if (!going && this.#network.time.now() - this.#lastExported < EMPTY_MS)
      this.#fail('the ClusterBinding of autoBind was deleted though something was exported a moment ago');
  }

  #onCrd(event: Event, cluster: TestCluster): void {
    const { previous, object } = event;
    if (previous === undefined) {
      if (object.metadata.labels?.[MANAGED] !== 'true')
        this.#fail(`a CRD was installed without our label: ${describe(event)}`);
      return;
    }
    const ours = previous.metadata.labels?.[MANAGED] === 'true' && annotation(previous, CONNECTION) !== undefined;
    if (!ours && !jsonEqual(withoutOurs(previous, true), withoutOurs(object, true)))
      this.#fail(`a CRD that is not ours was changed: ${describe(event)}`);
    if (!startsDeletion(event)) return;
    if (!ours) this.#fail(`a CRD that is not ours was deleted: ${describe(event)}`);
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

/** The product asked for a deletion, and did not merely take away the last finalizer of what goes anyway. */
const startsDeletion = ({ previous, object, deleted }: Event): boolean =>
  previous !== undefined && !deleting(previous) && (deleted || deleting(object));

interface Counted {
  readonly attempt?: number;
  readonly firstFailure?: number;
}

const RELATED_TABLES: ReadonlySet<string> = new Set(['/secrets', '/configmaps']);

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

const markings = ({ metadata: { labels, annotations } }: Seen): unknown => [labels ?? {}, annotations ?? {}];

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
