import { Counter, Gauge, type Registry } from 'prom-client';
import { forwarderQueues } from './sink.ts';

/** Everything that the forwarder counts, on one registry; what can be known beforehand stands at zero from the start. */
export interface ForwarderMetrics {
  readonly registry: Registry;
  readonly events: Counter<'source' | 'type'>;
  readonly forwarded: Counter<'queue'>;
  readonly sendFailures: Counter<'queue'>;
  readonly heldBack: Counter;
  readonly reconnects: Counter<'source' | 'cause'>;
  readonly sweeps: Counter;
  readonly watches: Gauge<'state'>;
  readonly pending: Gauge<'queue'>;
  readonly lag: Gauge;
}

/** Makes the metrics on a registry of the caller's. */
export function createForwarderMetrics(registry: Registry): ForwarderMetrics {
  const registers = [registry];
  const named = (name: string, help: string) => ({ name: `kbind_forwarder_${name}`, help, registers });
  const metrics: ForwarderMetrics = {
    registry,
    events: new Counter({ ...named('events_total', 'Watch events seen.'), labelNames: ['source', 'type'] }),
    forwarded: new Counter({ ...named('forwarded_total', 'Messages that a queue took.'), labelNames: ['queue'] }),
    sendFailures: new Counter({
      ...named('send_failures_total', 'Messages that a queue did not take; each is sent again.'),
      labelNames: ['queue'],
    }),
    heldBack: new Counter(
      named('held_back_total', 'Pauses of a burst because many keys waited at the queue of all clusters.'),
    ),
    reconnects: new Counter({
      ...named('reconnects_total', 'Watches that ended or failed, by cause.'),
      labelNames: ['source', 'cause'],
    }),
    sweeps: new Counter(named('sweeps_total', 'Sweeps asked for after a start or a gap.')),
    watches: new Gauge({ ...named('watches', 'Watches by state.'), labelNames: ['state'] }),
    pending: new Gauge({ ...named('pending', 'Keys seen and not yet delivered.'), labelNames: ['queue'] }),
    lag: new Gauge(named('lag_seconds', 'Age of the oldest key that is not yet delivered.')),
  };
  for (const queue of forwarderQueues) {
    metrics.forwarded.inc({ queue }, 0);
    metrics.sendFailures.inc({ queue }, 0);
    metrics.pending.set({ queue }, 0);
  }
  return metrics;
}
