import jsonPatch, { type Operation } from 'fast-json-patch';
import type {
  JsonPatchOperation,
  KubeClient,
  ListOptions,
  ListPage,
  SentObject,
  WatchEvent,
  WatchOptions,
} from '../../../lib/kube/types.ts';
import { apiName, keyText, type KubeObject, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { instant, type Clock } from '../../../lib/model/clock.ts';
import { KbindError } from '../../../lib/model/errors.ts';

/** One write that was sent, before it was judged. */
export interface SeenWrite {
  readonly verb: 'create' | 'update' | 'patch' | 'delete';
  readonly api: string;
  readonly key: string;
  readonly dryRun: boolean;
}

/**
 * A cluster in memory with the guards that the charts rest on: resource versions, uids, finalizers. The guards' own behaviour
 * is checked on real API servers; here they only let a table test take every edge.
 */
export class FakeCluster {
  readonly objects = new Map<string, KubeObject>();
  readonly writes: SeenWrite[] = [];
  /** Called before each request; throws to inject a failure. */
  beforeRequest: (request: { verb: string; api: string; key: string; dryRun: boolean }) => void = () => undefined;
  /** Status of a CRD that is created or replaced. */
  crdConditions: readonly unknown[] = [
    { type: 'NamesAccepted', status: 'True' },
    { type: 'Established', status: 'True' },
  ];
  date: number | undefined;
  readonly #clock: Clock;
  #version = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  put(ref: ResourceRef, object: { metadata: object; [field: string]: unknown }): KubeObject {
    const metadata = {
      uid: `uid-${++this.#version}`,
      generation: 1,
      ...object.metadata,
      resourceVersion: `${++this.#version}`,
    };
    const stored = {
      apiVersion: `${ref.group}/${ref.version}`,
      kind: ref.kind,
      ...object,
      metadata,
    } as unknown as KubeObject;
    this.objects.set(id(ref, stored.metadata), stored);
    return stored;
  }

  at(ref: ResourceRef, key: ObjectKey): KubeObject | undefined {
    return this.objects.get(id(ref, key));
  }

  get client(): KubeClient {
    const unexpected = (): never => {
      throw new Error('not part of the fake');
    };
    return {
      host: 'fake',
      serverDate: () => this.date,
      get: (ref, key) => this.#get(ref, key),
      find: (ref, key) => this.#find(ref, key),
      list: (ref, options) => this.#list(ref, options),
      listMetadata: (ref, options) => this.#list(ref, options),
      listAll: (ref, options) => this.#list(ref, options),
      listAllMetadata: (ref, options) => this.#list(ref, options),
      watch: (ref, options) => this.#watch(ref, options),
      getPath: unexpected,
      apply: unexpected,
      create: (ref, object) => this.#create(ref, object),
      update: (ref, object, options) => this.#update(ref, object, options?.dryRun ?? false),
      patch: (ref, key, change) => this.#patch(ref, key, change),
      delete: (ref, key, read) => this.#delete(ref, key, read),
    };
  }

  #ask(verb: string, ref: ResourceRef, key: ObjectKey | undefined, dryRun = false): void {
    this.beforeRequest({ verb, api: apiName(ref), key: key === undefined ? '' : keyText(key), dryRun });
  }

  #write(verb: SeenWrite['verb'], ref: ResourceRef, key: ObjectKey, dryRun = false): void {
    this.writes.push({ verb, api: apiName(ref), key: keyText(key), dryRun });
    this.#ask(verb, ref, key, dryRun);
  }

  async #find(ref: ResourceRef, key: ObjectKey): Promise<KubeObject | undefined> {
    this.#ask('get', ref, key);
    return Promise.resolve(this.at(ref, key));
  }

  async #get(ref: ResourceRef, key: ObjectKey): Promise<KubeObject> {
    const found = await this.#find(ref, key);
    if (found === undefined) throw new KbindError('absent', 'absent');
    return found;
  }

  async #list(ref: ResourceRef, options: ListOptions = {}): Promise<ListPage<KubeObject>> {
    this.#ask('list', ref, undefined);
    const [label, value] = options.labelSelector?.split('=') ?? [];
    const items = [...this.objects.entries()]
      .filter(([key]) => key.startsWith(`${apiName(ref)}|`))
      .map(([, object]) => object)
      .filter(({ metadata }) => options.namespace === undefined || metadata.namespace === options.namespace)
      .filter(({ metadata }) => label === undefined || metadata.labels?.[label] === value);
    return Promise.resolve({ items, resourceVersion: `${this.#version}`, sentAt: instant(this.#clock), bytes: 0 });
  }

  /** Stands, and ends without an event. */
  // eslint-disable-next-line require-yield
  async *#watch(ref: ResourceRef, { onOpen }: WatchOptions): AsyncIterable<WatchEvent> {
    this.#ask('watch', ref, undefined);
    await Promise.resolve();
    onOpen?.();
  }

  async #create(ref: ResourceRef, object: SentObject): Promise<KubeObject> {
    const key = { namespace: object.metadata.namespace, name: object.metadata.name ?? '' };
    this.#write('create', ref, key);
    if (this.at(ref, key) !== undefined) throw new KbindError('conflict', 'exists already');
    const status = ref.kind === 'CustomResourceDefinition' ? { status: { conditions: this.crdConditions } } : {};
    return Promise.resolve(this.put(ref, { ...object, ...status }));
  }

  async #update(ref: ResourceRef, object: KubeObject, dryRun: boolean): Promise<KubeObject> {
    this.#write('update', ref, object.metadata, dryRun);
    const present = await this.#get(ref, object.metadata);
    if (present.metadata.resourceVersion !== object.metadata.resourceVersion) throw new KbindError('conflict', 'stale');
    return dryRun ? object : this.put(ref, object);
  }

  async #patch(
    ref: ResourceRef,
    key: ObjectKey,
    change: {
      readonly read: { readonly uid: string; readonly resourceVersion?: string | undefined };
      readonly operations: readonly JsonPatchOperation[];
    },
  ): Promise<KubeObject> {
    this.#write('patch', ref, key);
    const present = await this.#get(ref, key);
    const { uid, resourceVersion } = present.metadata;
    const { read } = change;
    if (read.uid !== uid || (read.resourceVersion ?? resourceVersion) !== resourceVersion) {
      throw new KbindError('conflict', 'test failed');
    }
    const copy = structuredClone(present);
    const patched = jsonPatch.applyPatch(copy, change.operations as Operation[]).newDocument;
    const gone = patched.metadata.deletionTimestamp !== undefined && (patched.metadata.finalizers ?? []).length === 0;
    if (gone) {
      this.objects.delete(id(ref, key));
      return patched;
    }
    return this.put(ref, patched);
  }

  async #delete(
    ref: ResourceRef,
    key: ObjectKey,
    read: { readonly uid: string; readonly resourceVersion: string },
  ): Promise<void> {
    this.#write('delete', ref, key);
    const { uid, resourceVersion } = (await this.#get(ref, key)).metadata;
    if (uid !== read.uid || resourceVersion !== read.resourceVersion) throw new KbindError('conflict', 'precondition');
    this.objects.delete(id(ref, key));
  }
}

const id = (ref: ResourceRef, key: { readonly namespace?: string | undefined; readonly name: string }): string =>
  `${apiName(ref)}|${keyText(key)}`;
