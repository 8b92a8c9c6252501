import { stopAtFirstWrite } from '../kube/dry-run.ts';
import { resources, type KubeObject, type ResourceRef } from '../model/api.ts';
import type { KubeClient, SentObject } from '../kube/types.ts';
import { interceptClient } from './intercept-client.ts';
import type { Events, Providers, Side, Tell, World } from './world.ts';

/** A dry run came to where somebody would be told. Thrown like the client's `WouldWrite`; no failure. */
export class WouldTell extends Error {
  override readonly name = 'WouldTell';
}

export interface DryRunOptions {
  /**
   * What happens to heartbeat Leases on providers, which would otherwise stop every dry run of a Connection: `renew` writes
   * them (the 30-second refresh, design.md rule 11), `pretend` writes nothing (`explain`).
   */
  readonly heartbeats: 'renew' | 'pretend';
}

/**
 * The same world, in which a reconcile stops where it would first write (`WouldWrite`) or tell somebody ({@link WouldTell}).
 * Both are thrown through the reconcile: nothing of ours catches what is no KbindError. Events are silent.
 */
export function dryRunWorld(world: World, options: DryRunOptions = { heartbeats: 'pretend' }): World {
  return {
    ...world,
    consumer: stopped(world.consumer, stopAtFirstWrite(world.consumer.client)),
    providers: dryProviders(world.providers, options),
    tell: refusingTell,
    events: silentEvents,
  };
}

const stopped = (side: Side, client: KubeClient): Side => ({
  which: side.which,
  uid: side.uid,
  client,
  confirmIdentity: (maxAgeMs) => side.confirmIdentity(maxAgeMs),
});

function dryProviders(providers: Providers, { heartbeats }: DryRunOptions): Providers {
  const dry = (side: Side): Side =>
    stopped(side, exceptLeases(stopAtFirstWrite(side.client), heartbeats === 'renew' ? side.client : undefined));
  return {
    open: async (connection) => dry(await providers.open(connection)),
    probe: async (connection) => {
      const probe = await providers.probe(connection);
      return { ...probe, side: dry(probe.side) };
    },
  };
}

const isLease = (ref: ResourceRef): boolean =>
  ref.group === resources.leases.group && ref.resource === resources.leases.resource;

/** Leases are created and updated by `writer`, or pretended to be. */
function exceptLeases(client: KubeClient, writer: KubeClient | undefined): KubeClient {
  const pretend = (object: SentObject | KubeObject): Promise<KubeObject> => Promise.resolve(object as KubeObject);
  return {
    ...bound(client),
    create: (ref, object, options) => {
      if (!isLease(ref)) return client.create(ref, object, options);
      return writer === undefined ? pretend(object) : writer.create(ref, object, options);
    },
    update: (ref, object, options) => {
      if (!isLease(ref)) return client.update(ref, object, options);
      return writer === undefined ? pretend(object) : writer.update(ref, object, options);
    },
  };
}

/** The client's methods as own members, whatever it is made of. */
const bound = (client: KubeClient): KubeClient => interceptClient(client, (_call, send) => send());

const refusingTell: Tell = {
  reconcile: (requests) => {
    const keys = requests.map((request) => `${request.controller} ${request.name}`);
    return Promise.reject(new WouldTell(`would tell ${keys.slice(0, 5).join(', ')}`));
  },
  sweep: (request) => Promise.reject(new WouldTell(`would sweep ${request.apis?.join(', ') ?? 'every API'}`)),
};

const silentEvents: Events = { warn: () => Promise.resolve(), normal: () => Promise.resolve() };
