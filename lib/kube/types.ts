import type { KubeObject, MetaObject, ObjectKey, ResourceRef } from '../model/api.ts';
import type { Instant } from '../model/clock.ts';

/**
 * The port to one Kubernetes API server. One implementation speaks HTTP (client.ts); wrappers add a dry run that stops at
 * the first write, counting, and injected faults. Every method throws `KbindError`s and nothing else.
 */
export interface KubeClient extends KubeReads, KubeWrites {
  /** `host:port`, for logs. */
  readonly host: string;
  /**
   * The latest `Date` that this server has shown in an answer, epoch ms; undefined before the first. Of each answer no more is
   * believed than our own clock said when it came: the 8 s after a deletion (spec §8) have passed by both, and one wrong answer,
   * far in the future, ends no later ones sooner.
   */
  serverDate(): number | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions extends ReadOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Items a page. */
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
  /** Of complete lists: bytes of all pages together; class `unavailable` beyond. */
  readonly maxTotalBytes?: number | undefined;
}

export interface ListPage<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  /** Token of the next page; absent on the last. */
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
  /** When the (first) request left. */
  readonly sentAt: Instant;
  /** Bytes of the answer's body, for choosing page sizes. */
  readonly bytes: number;
}

export interface WatchOptions extends ReadOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Watch from here; required, because a watch without one replays everything. */
  readonly resourceVersion: string;
  /** PartialObjectMetadata events instead of whole objects. */
  readonly metadataOnly: boolean;
  /** Seconds after which the server ends the stream. */
  readonly timeoutSeconds?: number | undefined;
  /** Milliseconds without a byte after which the stream counts as dead. */
  readonly idleMs?: number | undefined;
  /** Called once the server has answered 200 and the stream stands. */
  readonly onOpen?: (() => void) | undefined;
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: MetaObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

export interface KubeReads {
  /** Reads one object. Throws class `absent` only for what spec §7 calls absent; any other 404 is `unserved`. */
  get(ref: ResourceRef, key: ObjectKey, options?: ReadOptions): Promise<KubeObject>;
  /** Like get, with undefined for absence. */
  find(ref: ResourceRef, key: ObjectKey, options?: ReadOptions): Promise<KubeObject | undefined>;
  /** One page. Items carry apiVersion and kind. */
  list(ref: ResourceRef, options?: ListOptions): Promise<ListPage<KubeObject>>;
  /** One page of metadata only. */
  listMetadata(ref: ResourceRef, options?: ListOptions): Promise<ListPage<MetaObject>>;
  /**
   * All pages without `resourceVersion`, or nothing: a 410 on the way starts over (three times, then throws class
   * `expired`); a page that is too large is asked for again in halves.
   */
  listAll(ref: ResourceRef, options?: ListOptions): Promise<ListPage<KubeObject>>;
  /** The same with metadata only. */
  listAllMetadata(ref: ResourceRef, options?: ListOptions): Promise<ListPage<MetaObject>>;
  /**
   * Events until the server ends the stream (returns) or it breaks (throws; class `expired` for a 410 in either form).
   * Back-pressure: nothing is read ahead while the consumer works.
   */
  watch(ref: ResourceRef, options: WatchOptions): AsyncIterable<WatchEvent>;
  /**
   * GET of a path that is no resource (discovery, OpenAPI, /version). Throws like get; a body over the cap (`maxBytes`, 64 MiB
   * by default) is class `invalid`.
   */
  getPath(
    path: string,
    options?: ReadOptions & {
      readonly accept?: string;
      readonly maxBytes?: number | undefined;
      /** JSON may come as `text/plain`. */
      readonly plainText?: boolean | undefined;
    },
  ): Promise<unknown>;
}

/**
 * What a write rests on: reads of Connections and bindings are believed for 5 s from when their request was sent. A write
 * is not sent with less than 1 s of that left (class `stale`), and carries the rest as its `timeout` (spec §8).
 */
export interface Belief {
  readonly sentAt: Instant;
}

export interface WriteOptions {
  readonly signal?: AbortSignal | undefined;
  readonly belief?: Belief | undefined;
  /** `dryRun=All`: a request, not a write. */
  readonly dryRun?: boolean | undefined;
  /** Defaults to `kbind-konnector`. */
  readonly fieldManager?: string | undefined;
}

/** Both uid and resourceVersion of the object that was read. */
export interface ReadVersion {
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

/** What an object is sent as: no server-set metadata. */
export interface SentObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name?: string;
    readonly generateName?: string;
    readonly namespace?: string | undefined;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** The writes of design.md's table; there are no others. Each guard is in the type. */
export interface KubeWrites {
  /** POST. `strict` adds `fieldValidation=Strict` (ignored by servers before 1.25). 409 → class `conflict`. */
  create(
    ref: ResourceRef,
    object: SentObject,
    options?: WriteOptions & { readonly strict?: boolean },
  ): Promise<KubeObject>;
  /** Server-side apply, force, with uid and resourceVersion in the body. 409 and 404 → class `conflict` (read again). */
  apply(
    ref: ResourceRef,
    object: SentObject,
    read: ReadVersion,
    options?: WriteOptions & { readonly strict?: boolean },
  ): Promise<KubeObject>;
  /**
   * PUT with the uid and resourceVersion that `object.metadata` carries (class `internal` without them). CRDs, autoBind
   * bindings, Leases. 409 and 404 → class `conflict`.
   */
  update(ref: ResourceRef, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /**
   * JSON patch guarded by `test /metadata/uid` and, unless `read.resourceVersion` is absent (status of a user's instance),
   * `test /metadata/resourceVersion`. A failed test, and an object that is gone → class `conflict`; a subresource that the
   * API does not have → class `unserved`.
   */
  patch(
    ref: ResourceRef,
    key: ObjectKey,
    change: {
      readonly read: { readonly uid: string; readonly resourceVersion?: string | undefined };
      readonly operations: readonly JsonPatchOperation[];
      readonly subresource?: 'status' | undefined;
    },
    options?: WriteOptions,
  ): Promise<KubeObject>;
  /** DELETE with both preconditions. Absent already → `absent`; a failed precondition → class `conflict`. */
  delete(ref: ResourceRef, key: ObjectKey, read: ReadVersion, options?: WriteOptions): Promise<void>;
}
