import { keyOf, keyText, type KubeObject, type MetaObject, type ObjectKey } from '../model/api.ts';
import { findCondition } from '../model/conditions.ts';
import { secretKeyOf, usedSecretRef } from '../model/secret-ref.ts';
import { parseConnection, type AnyBinding } from '../model/kinds.ts';
import type { Logger } from '../model/log.ts';
import { CONFLICT_MARKER, TRUE } from '../model/markers.ts';
import { watchPlanOf } from '../model/watch-plan.ts';
import type { ConnectionView, ConsumerView, CrdView } from './plan-set.ts';
import { bindingView, type BindingView } from './related-watches.ts';

/**
 * What the forwarder remembers of the consumer: a line per Connection and managed CRD, what bindings select of related
 * resources, and the keys of conflicting instances. Nothing else: its memory does not grow with the objects that it watches.
 */
export class ConsumerState implements ConsumerView {
  readonly clusterUid: string;
  readonly connections = new Map<string, ConnectionView>();
  readonly crds = new Map<string, CrdView>();
  readonly relatedBindings = new Map<string, BindingView>();
  connectionsKnown = false;
  readonly #conflicts = new Map<string, Map<string, ObjectKey>>();
  readonly #log: Logger;

  constructor(clusterUid: string, log: Logger) {
    this.clusterUid = clusterUid;
    this.#log = log;
  }

  get conflictingApis(): ReadonlySet<string> {
    return new Set(this.#conflicts.keys());
  }

  /** Takes a complete list for the truth. Answers with the names that are gone since. */
  replaceConnections(objects: readonly KubeObject[]): string[] {
    this.connectionsKnown = true;
    return replace(this.connections, objects, (object) => this.setConnection(object));
  }

  replaceCrds(objects: readonly MetaObject[]): string[] {
    return replace(this.crds, objects, (object) => this.setCrd(object));
  }

  setConnection(object: KubeObject): void {
    const { name } = object.metadata;
    try {
      this.connections.set(name, connectionView(object));
    } catch (error) {
      // Its key is forwarded all the same; there is nothing to watch for it.
      this.connections.delete(name);
      this.#log.warn('unreadable Connection', { connection: name, error: (error as Error).message.slice(0, 200) });
    }
  }

  setCrd(object: MetaObject): void {
    this.crds.set(object.metadata.name, { uid: object.metadata.uid, plan: watchPlanOf(object) });
  }

  /** Takes a complete list of one kind of bindings for the truth. */
  replaceBindings(kind: AnyBinding['kind'], objects: readonly KubeObject[]): void {
    for (const id of this.relatedBindings.keys()) if (id.startsWith(`${kind} `)) this.relatedBindings.delete(id);
    for (const object of objects) this.noteBinding(kind, object, false);
  }

  /** Notes what a binding selects. Answers with whether that may have changed what is to be watched. */
  noteBinding(kind: AnyBinding['kind'], object: KubeObject, deleted: boolean): boolean {
    const id = `${kind} ${keyText(keyOf(object))}`;
    const view = deleted ? undefined : bindingView(object, kind);
    if (view === undefined) return this.relatedBindings.delete(id);
    this.relatedBindings.set(id, view);
    return true;
  }

  /** Names of the Connections whose kubeconfig is in this Secret. */
  connectionsOf(secret: ObjectKey): string[] {
    const wanted = keyText(secret);
    return [...this.connections].filter(([, view]) => keyText(view.secret) === wanted).map(([name]) => name);
  }

  conflicts(api: string, key: ObjectKey): boolean {
    return this.#conflicts.get(api)?.has(keyText(key)) ?? false;
  }

  conflictingKeys(api: string): ObjectKey[] {
    return [...(this.#conflicts.get(api)?.values() ?? [])];
  }

  /** Takes a complete list of conflicting objects for the truth. */
  replaceConflicts(api: string, objects: readonly MetaObject[]): void {
    this.#conflicts.delete(api);
    for (const object of objects) this.noteConflict(api, object, false);
  }

  /** Notes whether an object that was seen is in conflict. */
  noteConflict(api: string, object: MetaObject, deleted: boolean): void {
    const key = keyOf(object);
    const keys = this.#conflicts.get(api);
    if (!deleted && object.metadata.labels?.[CONFLICT_MARKER] === TRUE) {
      if (keys === undefined) this.#conflicts.set(api, new Map([[keyText(key), key]]));
      else keys.set(keyText(key), key);
      return;
    }
    keys?.delete(keyText(key));
    if (keys?.size === 0) this.#conflicts.delete(api);
  }

  forgetConflicts(api: string): void {
    this.#conflicts.delete(api);
  }
}

function connectionView(object: KubeObject): ConnectionView {
  const connection = parseConnection(object);
  const { status, metadata } = connection;
  return {
    uid: metadata.uid,
    secret: secretKeyOf(usedSecretRef(connection)),
    remoteClusterUID: status.remoteClusterUID,
    secretVersion: status.secretVersion,
    connected: findCondition(status.conditions, 'Connected')?.status === 'True',
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

function replace<T extends MetaObject>(
  held: Map<string, unknown>,
  objects: readonly T[],
  set: (object: T) => void,
): string[] {
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const gone = [...held.keys()].filter((name) => !names.has(name));
  for (const name of gone) held.delete(name);
  for (const object of objects) set(object);
  return gone;
}
