import type { RefreshRequest, SweepRequest } from '../model/request.ts';
import { spread } from '../queue/ids.ts';
import { sendAll, workMessage, type Addressed } from '../queue/queues.ts';
import type { Engine } from './engine.ts';

/** What the schedule sends: only its time matters. */
export interface TickEvent {
  /** RFC 3339; now, when it is absent. */
  readonly time?: string | undefined;
  /** A cell has just started: everything is refreshed and swept at once, whatever the minute. */
  readonly atStart?: boolean | undefined;
}

export type TickHandler = (event: TickEvent) => Promise<void>;

const MINUTE_MS = 60_000;
const HALF_MINUTE_SECONDS = 30;
/** Minutes between two backstop sweeps of a cluster. */
const SWEEP_MINUTES = 10;

/**
 * What one minute's tick asks for of one cluster: a refresh in each half of the minute, and every tenth minute the backstop
 * sweep; both at a moment of that cluster's own, so that a fleet does not come all at once. Ids name the period: two ticks
 * of one minute do no harm.
 */
export function tickMessages(cluster: string, timeMs: number): Addressed[] {
  const minute = Math.floor(timeMs / MINUTE_MS);
  const second = spread(`${cluster}/second`, HALF_MINUTE_SECONDS);
  const refresh = (half: 0 | 1): RefreshRequest => ({
    v: 1,
    type: 'refresh',
    cluster,
    id: `refresh/${minute}/${half}`,
  });
  const refreshes = [workMessage(refresh(0), second), workMessage(refresh(1), second + HALF_MINUTE_SECONDS)];
  if ((minute + spread(`${cluster}/minute`, SWEEP_MINUTES)) % SWEEP_MINUTES !== 0) return refreshes;
  const sweep: SweepRequest = { v: 1, type: 'sweep', cluster, id: `backstop/${minute}`, retry: false };
  return [...refreshes, workMessage(sweep, second)];
}

/** What a cell that has just started asks for of one cluster: it knows of nothing that happened before. */
export function startMessages(cluster: string, timeMs: number): Addressed[] {
  const sweep: SweepRequest = { v: 1, type: 'sweep', cluster, id: `start/${timeMs}`, retry: true };
  return [workMessage({ v: 1, type: 'refresh', cluster, id: `start/${timeMs}` }), workMessage(sweep)];
}

/** Every minute: refreshes and sweeps of all clusters that are not paused. Throws when the queue takes less than all. */
export function createTickHandler({ registry, queues, clock, log, metrics }: Engine): TickHandler {
  return async (event) => {
    const asked = event.time === undefined ? Number.NaN : Date.parse(event.time);
    const timeMs = Number.isNaN(asked) ? clock.now() : asked;
    try {
      const { clusters, unresolved } = await registry.list();
      const active = clusters.filter(({ paused }) => !paused);
      await sendAll(
        queues,
        active.flatMap(({ uid }) => [
          ...(event.atStart === true ? startMessages(uid, timeMs) : []),
          ...tickMessages(uid, timeMs),
        ]),
      );
      metrics.count('Ticked', active.length);
      metrics.count('ClusterUnresolved', unresolved.length);
      for (const { name, reason } of unresolved) log.warn('cluster of the fleet cannot be reached', { name, reason });
    } finally {
      metrics.flush();
    }
  };
}
