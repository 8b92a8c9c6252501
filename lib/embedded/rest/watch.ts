import type { KubeObject } from '../api/object.ts';
import { badRequest, expired, invalid, type Status } from '../api/status.ts';
import { groupVersion } from '../api/resource.ts';
import type { Change } from '../storage/table.ts';
import { readInteger, readBoolean } from './options.ts';
import { readSelectors, type Matches } from './selectors.ts';
import { atVersion, type Call } from './world.ts';

/** One event of a watch stream. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: KubeObject | Status;
}

/** Where a watch writes. */
export interface WatchSink {
  /** Called once, before anything is sent: from here on a watch cannot be refused any more. */
  open(): void;
  send(event: WatchEvent): void;
  end(): void;
}

/** A running watch. */
export interface WatchHandle {
  stop(): void;
  /** Sends a bookmark when the client takes them. */
  bookmark(): void;
}

const BOOKMARK_INTERVAL_MS = 60_000;
const MIN_TIMEOUT_S = 1800;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Starts a watch: what is asked for first, then every change, until its time is up or the sink is closed. */
export function watch(call: Call, sink: WatchSink): WatchHandle {
  const { query, world, resource, version, info } = call;
  const matches = readSelectors(query, resource, version) ?? (() => true);
  const inNamespace = resource.namespaced && info.namespace ? info.namespace : undefined;
  const covers: Matches = (object) =>
    (inNamespace === undefined || object.metadata.namespace === inNamespace) && matches(object);
  const bookmarks = readBoolean(query.get('allowWatchBookmarks') ?? 'false');
  const seconds = readInteger(call, 'timeoutSeconds') ?? MIN_TIMEOUT_S * (1 + Math.random());
  checkInitialEvents(call);
  const table = world.store.table(resource);
  const handle = new Running(call, sink, { covers, bookmarks });
  if (!handle.start(query.get('resourceVersion') ?? '')) return handle;
  const unlisten = table.listen((change) => handle.deliver(change));
  handle.onStop(unlisten);
  handle.onStop(table.onClose(() => handle.stop()));
  handle.limit(seconds * 1000);
  return handle;
}

function checkInitialEvents(call: Call): void {
  const { query } = call;
  const initial = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch') ?? '';
  const refuse = (field: string, message: string): never => {
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      { reason: 'FieldValueForbidden', message: `Forbidden: ${message}`, field },
    ]);
  };
  if (initial === null) {
    if (match)
      refuse(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      );
    return;
  }
  if (match !== 'NotOlderThan')
    refuse('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
}

class Running implements WatchHandle {
  readonly #call: Call;
  readonly #sink: WatchSink;
  readonly #covers: Matches;
  readonly #bookmarks: boolean;
  #timers: NodeJS.Timeout[] = [];
  #cleanups: (() => void)[] = [];
  #stopped = false;

  constructor(call: Call, sink: WatchSink, { covers, bookmarks }: { covers: Matches; bookmarks: boolean }) {
    this.#call = call;
    this.#sink = sink;
    this.#covers = covers;
    this.#bookmarks = bookmarks;
  }

  /** Sends what came before this watch; false where that is not known any more. */
  start(from: string): boolean {
    const { world, resource, query } = this.#call;
    const table = world.store.table(resource);
    const initial = query.get('sendInitialEvents');
    checkVersion(from);
    this.#sink.open();
    const wantsState = initial === null ? from === '' || from === '0' : readBoolean(initial);
    if (wantsState) {
      this.#sendState(initial !== null);
      return true;
    }
    if (from === '' || from === '0') return true;
    if (Number(from) < table.compacted) {
      this.#fail(expired(`too old resource version: ${from} (${table.compacted})`).status);
      return false;
    }
    for (const change of table.since(Number(from))) this.deliver(change);
    return true;
  }

  deliver(change: Change): void {
    if (this.#stopped) return;
    const { object, previous, type } = change;
    const was = previous !== undefined && this.#covers(previous);
    const is = type !== 'DELETED' && this.#covers(object);
    if (is) this.#send(was ? 'MODIFIED' : 'ADDED', object);
    else if (was) this.#send('DELETED', type === 'DELETED' ? object : outOfSight(previous, object));
  }

  bookmark(): void {
    if (this.#bookmarks && !this.#stopped) this.#sendBookmark({});
  }

  limit(milliseconds: number): void {
    const end = setTimeout(() => {
      this.bookmark();
      this.stop();
    }, milliseconds);
    const tick = setInterval(() => this.bookmark(), BOOKMARK_INTERVAL_MS);
    for (const timer of [end, tick]) timer.unref();
    this.#timers.push(end, tick);
  }

  onStop(cleanup: () => void): void {
    this.#cleanups.push(cleanup);
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const cleanup of this.#cleanups) cleanup();
    this.#sink.end();
  }

  #sendState(end: boolean): void {
    const table = this.#call.world.store.table(this.#call.resource);
    for (const key of table.keys()) {
      const object = table.get(key);
      if (object && this.#covers(object)) this.#send('ADDED', object);
    }
    if (end && this.#bookmarks) this.#sendBookmark({ annotations: { [INITIAL_EVENTS_END]: 'true' } });
  }

  #sendBookmark(extra: object): void {
    const { world, resource, version } = this.#call;
    const metadata = { ...extra, resourceVersion: String(world.store.revision), creationTimestamp: null };
    const object = { apiVersion: groupVersion(resource.group, version.name), kind: resource.kind, metadata };
    this.#sink.send({ type: 'BOOKMARK', object: object as unknown as KubeObject });
  }

  #send(type: WatchEvent['type'], object: KubeObject): void {
    this.#sink.send({ type, object: atVersion(object, this.#call) });
  }

  #fail(status: Status): void {
    this.#sink.send({ type: 'ERROR', object: status });
    this.stop();
  }
}

function checkVersion(from: string): void {
  if (/^\d*$/.test(from)) return;
  const quoted = JSON.stringify(from);
  throw badRequest(`Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`);
}

// An object that left the selection is shown as it last was in it, at the revision of the change.
function outOfSight(previous: KubeObject, object: KubeObject): KubeObject {
  const { resourceVersion } = object.metadata;
  return { ...previous, metadata: { ...previous.metadata, ...(resourceVersion && { resourceVersion }) } };
}
