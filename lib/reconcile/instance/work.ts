import type { Belief, WriteOptions } from '../../kube/types.ts';
import { keyText, type KubeObject, type ObjectKey } from '../../model/api.ts';
import { KbindError, isError } from '../../model/errors.ts';
import type { Connection } from '../../model/kinds.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import type { Believed, Side, World } from '../world.ts';
import { instanceApi, type InstanceApi } from './which-api.ts';
import type { BindingLists, InstanceName } from './which-binding.ts';
import type { Owner } from './who-owns-it.ts';

/** One reconcile of one instance: which object of which API, and what the decision rests on so far. */
export interface Work {
  readonly world: World;
  readonly api: InstanceApi;
  readonly name: InstanceName;
  readonly providerKey: ObjectKey;
  /** Failed attempts before this one. */
  readonly attempt: number;
  /** The read of the CRD that `api` came from. */
  readonly crd: Believed<KubeObject>;
}

/** A consumer object with the provider that its copy belongs to, and the belief that writes rest on. */
export interface Pair {
  readonly source: KubeObject;
  readonly provider: Side;
  readonly belief: Belief;
}

/** The instance that a request names; undefined when its API does not exist on the consumer, and with it no instance. */
export async function workOf(world: World, request: ReconcileRequest): Promise<Work | undefined> {
  const { api: name } = request;
  if (name === undefined) throw new KbindError('malformed', 'an instance request names no API');
  const { value, sentAt } = await world.reads.crd(name);
  if (value === undefined) return undefined;
  const api = instanceApi(value);
  const key = request.namespace === undefined ? { name: request.name } : pick(request.namespace, request.name);
  return {
    world,
    api,
    name: { api: name, namespaced: api.ref.namespaced, key },
    providerKey: providerKeyOf(world, name, key),
    attempt: request.attempt,
    crd: { value, sentAt },
  };
}

const pick = (namespace: string, name: string): ObjectKey => ({ namespace, name });

/** Map consumer key to provider key. A mapper that does not lead back would mix up objects. */
export function providerKeyOf(world: World, api: string, key: ObjectKey): ObjectKey {
  const mapped = world.mapper.toProvider(api, key);
  const back = world.mapper.toConsumer(api, mapped);
  if (keyText(back) !== keyText(key)) {
    throw new KbindError('misconfigured', `the mapper leads from ${keyText(key)} to ${keyText(back)}`, { api, key });
  }
  return mapped;
}

/** All bindings, from the cache that the batch shares, or complete and asked for now. */
export async function readBindings(world: World, fresh = false): Promise<Believed<BindingLists>> {
  const [clusterBindings, bindings] = await Promise.all([
    world.reads.clusterBindings({ fresh }),
    world.reads.bindings({ fresh }),
  ]);
  return {
    value: { clusterBindings: clusterBindings.value, bindings: bindings.value },
    sentAt: oldest(clusterBindings, bindings).sentAt,
  };
}

/** The Connection that the CRD is pinned to. */
export async function pinnedConnection({ world, api }: Work): Promise<Believed<Connection | undefined> | undefined> {
  return api.connection === undefined ? undefined : world.reads.connection(api.connection);
}

/** What a write rests on: the oldest of the reads behind it, by either clock. */
export function oldest(...reads: readonly Belief[]): Belief {
  return {
    sentAt: {
      wall: Math.min(...reads.map(({ sentAt }) => sentAt.wall)),
      mono: Math.min(...reads.map(({ sentAt }) => sentAt.mono)),
    },
  };
}

/** Whose the copy must be. */
export const ownerOf = ({ world }: Work, source: KubeObject): Owner => ({
  cluster: world.cluster,
  object: source.metadata.uid,
});

/** Options of a write that rests on what was read of Connections and bindings. */
export const believing = ({ world }: Work, belief: Belief): WriteOptions => ({ signal: world.signal, belief });

/** The consumer object with the API that it is written in. */
export const consumerTarget = ({ api }: Work, object: KubeObject): { ref: InstanceApi['ref']; object: KubeObject } => ({
  ref: api.ref,
  object,
});

/** The consumer object as it is now. */
export const readSource = ({ world, api, name }: Work): Promise<KubeObject | undefined> =>
  world.consumer.client.find(api.ref, name.key, { signal: world.signal });

/**
 * The copy as it is now; undefined only where the server calls that very object absent (spec §7).
 * @throws KbindError `unserved` naming the versions that the provider serves instead.
 */
export async function readCopy({ world, api, providerKey }: Work, provider: Side): Promise<KubeObject | undefined> {
  try {
    return await provider.client.find(api.ref, providerKey, { signal: world.signal });
  } catch (error) {
    if (!isError(error, 'unserved')) throw error;
    const versions = await servedVersions(world, api, provider);
    const message = `the provider does not serve ${api.name} at ${api.ref.version}; its versions of the group: ${versions}`;
    throw new KbindError('unserved', message, error.details, error);
  }
}

/** Looked up in discovery, for the person who reads the error: no decision rests on it. */
async function servedVersions(world: World, { ref }: InstanceApi, provider: Side): Promise<string> {
  try {
    const group = (await provider.client.getPath(`/apis/${ref.group}`, { signal: world.signal })) as {
      readonly versions?: readonly { readonly version: string }[];
    };
    return (group.versions ?? []).map(({ version }) => version).join(', ');
  } catch (error) {
    if (error instanceof KbindError) return `unknown (${error.errorClass})`;
    throw error;
  }
}
