import { keyText, type KubeObject, type ObjectKey, type ResourceRef, resources } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';
import { MANAGED_LABEL, TRUE } from '../model/markers.ts';
import type { AnyBinding, Connection } from '../model/kinds.ts';
import type { KubeClient } from '../kube/types.ts';
import { interceptClient } from '../reconcile/intercept-client.ts';
import type { Believed, SharedReads, World } from '../reconcile/world.ts';

/** What a refresh reads of its cluster, once for the whole pass. */
export interface Snapshot {
  readonly connections: Believed<readonly Connection[]>;
  readonly clusterBindings: Believed<readonly AnyBinding[]>;
  readonly bindings: Believed<readonly AnyBinding[]>;
  readonly crds: Believed<readonly KubeObject[]>;
}

/** Reads the four kinds that a pass is about. */
export async function takeSnapshot(reads: SharedReads): Promise<Snapshot> {
  const [connections, clusterBindings, bindings, crds] = await Promise.all([
    reads.connections(),
    reads.clusterBindings(),
    reads.bindings(),
    reads.managedCrds(),
  ]);
  return { connections, clusterBindings, bindings, crds };
}

/**
 * The world of a pass: what reconciles read of these kinds comes from the snapshot, `fresh` or not. Only for dry runs:
 * whatever would rest on it is decided again, on reads of its own, by the reconcile that is enqueued.
 */
export function passWorld(world: World, snapshot: Snapshot): World {
  const client = snapshotClient(world.consumer.client, snapshot);
  const { which, uid } = world.consumer;
  return {
    ...world,
    consumer: { which, uid, client, confirmIdentity: (maxAgeMs) => world.consumer.confirmIdentity(maxAgeMs) },
    reads: snapshotReads(world.reads, snapshot),
  };
}

function snapshotReads(reads: SharedReads, { connections, clusterBindings, bindings, crds }: Snapshot): SharedReads {
  const named = <T extends { readonly metadata: { readonly name: string } }>(
    list: Believed<readonly T[]>,
    name: string,
  ): T | undefined => list.value.find(({ metadata }) => metadata.name === name);
  return {
    connection: (name) => Promise.resolve({ value: named(connections, name), sentAt: connections.sentAt }),
    connections: () => Promise.resolve(connections),
    clusterBindings: () => Promise.resolve(clusterBindings),
    bindings: ({ namespace } = {}) =>
      Promise.resolve({
        value: bindings.value.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
        sentAt: bindings.sentAt,
      }),
    crd: (name, options) => {
      const crd = named(crds, name);
      return crd === undefined ? reads.crd(name, options) : Promise.resolve({ value: crd, sentAt: crds.sentAt });
    },
    managedCrds: () => Promise.resolve(crds),
    secret: (key) => reads.secret(key),
  };
}

const tableKey = (ref: ResourceRef, key: ObjectKey): string => `${ref.resource}.${ref.group} ${keyText(key)}`;

/** Own objects come from the lists; an unmanaged CRD, and everything else, from the server. */
function snapshotClient(client: KubeClient, snapshot: Snapshot): KubeClient {
  const table = new Map<string, KubeObject>();
  const put = (ref: ResourceRef, objects: readonly KubeObject[]): void => {
    for (const object of objects) table.set(tableKey(ref, object.metadata), object);
  };
  put(
    resources.connections,
    snapshot.connections.value.map(({ raw }) => raw),
  );
  put(
    resources.clusterBindings,
    snapshot.clusterBindings.value.map(({ raw }) => raw),
  );
  put(
    resources.bindings,
    snapshot.bindings.value.map(({ raw }) => raw),
  );
  put(
    resources.crds,
    snapshot.crds.value.filter(({ metadata }) => metadata.labels?.[MANAGED_LABEL] === TRUE),
  );
  const find: KubeClient['find'] = (ref, key, options) => {
    const known = table.get(tableKey(ref, key));
    return known === undefined ? client.find(ref, key, options) : Promise.resolve(known);
  };
  return {
    ...interceptClient(client, (_call, send) => send()),
    find,
    get: async (ref, key, options) => {
      const object = await find(ref, key, options);
      if (object === undefined) throw new KbindError('absent', `${tableKey(ref, key)} does not exist`, { key });
      return object;
    },
  };
}
