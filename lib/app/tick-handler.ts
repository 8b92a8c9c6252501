import type { RefreshRequest, SweepRequest } from '../model/request.ts';
import { spread } from '../queue/ids.ts';
import { sendAll, workMessage, type Addressed } from '../queue/queues.ts';
import { isSilent, type FleetMember } from '../fleet/registry.ts';
import { keepNote, type Engine } from './engine.ts';

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

/** A resumed cluster is swept that long after, seconds: by then nobody believes any more that it is paused (rule 14). */
export const RESUME_SWEEP_SECONDS = 8;

/** The sweep that a resumed cluster is owed: what was dropped meanwhile is found again. */
export function resumeMessages(cluster: string, owedSince: number, nowMs: number): Addressed[] {
  const sweep: SweepRequest = { v: 1, type: 'sweep', cluster, id: `resume/${owedSince}`, retry: true };
  const leftMs = owedSince + RESUME_SWEEP_SECONDS * 1000 - nowMs;
  return [workMessage(sweep, Math.max(0, leftMs) / 1000)];
}

/** What a tick needs. */
type TickParts = Pick<Engine, 'registry' | 'queues' | 'clock' | 'log' | 'metrics'>;

/** Asks for the sweeps that are owed; only then are they not owed any more. */
async function sweepResumed(engine: TickParts, active: readonly FleetMember[]): Promise<void> {
  for (const { uid, activity } of active) {
    const owedSince = activity?.sweepOwedSince;
    if (owedSince === undefined) continue;
    await sendAll(engine.queues, resumeMessages(uid, owedSince, engine.clock.now()));
    await keepNote(engine, uid, () => engine.registry.sweepAsked(uid, owedSince));
  }
}

/** Tells of forwarders that have not been heard for three minutes: the alarm stands on the metric. */
function reportSilent({ metrics, log, clock }: TickParts, clusters: readonly FleetMember[]): void {
  const silent = clusters.filter((member) => isSilent(member, clock.now()));
  metrics.count('ForwarderSilent', silent.length);
  for (const { name, uid } of silent) log.warn('forwarder is silent', { name, cluster: uid });
}

/** Every minute: refreshes and sweeps of all clusters that are not paused. Throws when the queue takes less than all. */
export function createTickHandler(engine: TickParts): TickHandler {
  const { registry, queues, clock, log, metrics } = engine;
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
      await sweepResumed(engine, active);
      reportSilent(engine, clusters);
      metrics.count('Ticked', active.length);
      metrics.count('ClusterHeldByAnother', clusters.filter(({ activity }) => activity?.heldBy !== undefined).length);
      metrics.count('ClusterUnresolved', unresolved.length);
      for (const { name, reason } of unresolved) log.warn('cluster of the fleet cannot be reached', { name, reason });
    } finally {
      metrics.flush();
    }
  };
}
