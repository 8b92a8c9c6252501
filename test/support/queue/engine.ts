import { systemClock } from '../../../lib/model/clock.ts';
import { done } from '../../../lib/model/outcome.ts';
import type { FleetCluster, FleetRegistry, Heartbeat, Lookup } from '../../../lib/fleet/registry.ts';
import type { Controllers, Engine } from '../../../lib/app/engine.ts';
import { createBreaker } from '../../../lib/queue/breaker.ts';
import { identityMapper, type World } from '../../../lib/reconcile/world.ts';
import { CLUSTER } from './events.ts';
import {
  recordCounters,
  recordLog,
  recordQueues,
  type RecordedCounters,
  type RecordedLog,
  type RecordedQueues,
} from './recorded.ts';

export const fleetCluster: FleetCluster = {
  name: 'demo',
  uid: CLUSTER,
  paused: false,
  target: { server: 'https://127.0.0.1:1' },
};

export interface StubRegistry extends FleetRegistry {
  readonly beats: Map<string, Heartbeat>;
}

/** A registry of one cluster, or of what `lookup` says. */
export function registryOf(lookup: Lookup = { found: 'cluster', cluster: fleetCluster }): StubRegistry {
  const beats = new Map<string, Heartbeat>();
  return {
    beats,
    list: () => Promise.resolve({ clusters: lookup.found === 'cluster' ? [lookup.cluster] : [], unresolved: [] }),
    lookup: (uid) => Promise.resolve(uid === CLUSTER ? lookup : { found: 'unknown' }),
    heartbeat(uid, beat) {
      const found = uid === CLUSTER ? lookup.found : 'unknown';
      if (found !== 'cluster') return Promise.resolve(found);
      beats.set(uid, beat);
      return Promise.resolve('recorded');
    },
    swept: () => Promise.resolve(),
    sweepAsked: () => Promise.resolve(),
    held: () => Promise.resolve(),
    distrust: () => undefined,
  };
}

export interface TestEngine extends Engine {
  readonly queues: RecordedQueues;
  readonly log: RecordedLog;
  readonly metrics: RecordedCounters;
}

const synced = () => Promise.resolve(done('synced'));

/** Controllers that find nothing to do, but for those that are given. */
export function controllersWith(some: {
  readonly reconcile?: Partial<Controllers['reconcile']>;
  readonly sweep?: Controllers['sweep'];
  readonly refresh?: Controllers['refresh'];
}): Controllers {
  return {
    reconcile: {
      connection: synced,
      clusterbinding: synced,
      binding: synced,
      crd: synced,
      instance: synced,
      ...some.reconcile,
    },
    sweep: some.sweep ?? (() => Promise.resolve(undefined)),
    refresh: some.refresh ?? (() => Promise.resolve()),
  };
}

/** Handlers' engine around given controllers: queues, log and counters are recorded, worlds have no clients. */
export function engineWith(parts: Partial<Engine> = {}): TestEngine {
  const queues = recordQueues();
  const log = recordLog();
  const metrics = recordCounters();
  return {
    clock: systemClock,
    random: () => 0.5,
    versions: {},
    registry: registryOf(),
    breaker: createBreaker(systemClock),
    controllers: controllersWith({}),
    inWorld: (_cluster, { trace, signal, log }, use) =>
      use({ cluster: CLUSTER, trace, signal, log, clock: systemClock, mapper: identityMapper } as World),
    ...parts,
    queues,
    log,
    metrics,
  };
}
