import { Metrics as Powertools, MetricUnit } from '@aws-lambda-powertools/metrics';
import { noMetrics, type Metrics } from '../model/log.ts';
import { settleMetrics } from '../queue/settle.ts';
import type { Config } from './config.ts';

/** Counters that are added up during an invocation and written at its end. */
export interface Counters extends Metrics {
  /** Writes what was counted since the last time. */
  flush(): void;
}

type Dimensions = Readonly<Record<string, string>>;

/** CloudWatch's embedded metric format: no request, one line per set of dimensions. */
export function createCounters(config: Pick<Config, 'metrics' | 'installation' | 'stage'>): Counters {
  if (config.metrics === 'none') return { ...noMetrics, flush: () => undefined };
  const { installation, stage } = config;
  const powertools = new Powertools({ namespace: 'kbind', serviceName: installation, defaultDimensions: { stage } });
  const sums = new Map<string, { readonly dimensions: Dimensions; readonly values: Map<string, number> }>();

  function count(name: string, value = 1, dimensions: Dimensions = {}): void {
    const key = JSON.stringify(dimensions);
    const group = sums.get(key) ?? { dimensions, values: new Map<string, number>() };
    sums.set(key, group);
    group.values.set(name, (group.values.get(name) ?? 0) + value);
  }

  // Every counter exists at zero before it fires: an alarm on a missing one would sleep.
  for (const name of settleMetrics) count(name, 0);

  return {
    count,
    flush() {
      for (const { dimensions, values } of sums.values()) {
        powertools.addDimensions({ ...dimensions });
        for (const [name, value] of values) powertools.addMetric(name, MetricUnit.Count, value);
        powertools.publishStoredMetrics();
      }
      sums.clear();
    },
  };
}
