import { Metrics as Powertools, MetricUnit } from '@aws-lambda-powertools/metrics';
import { noMetrics, type Metrics } from '../model/log.ts';
import { metricNames, type MetricDimensions, type MetricName } from '../model/metric-names.ts';
import type { Config } from './config.ts';

/** Counters that are added up during an invocation and written at its end. */
export interface Counters extends Metrics {
  /** One value of a distribution, milliseconds. */
  measure(name: MetricName, ms: number): void;
  /** Writes what was counted since the last time. */
  flush(): void;
}

interface Series {
  readonly dimensions: MetricDimensions;
  readonly sums: Map<MetricName, number>;
}

/** Values of one metric in one line of the embedded metric format: one fewer than Powertools would write out by itself. */
const MAX_VALUES = 99;
/** Those that are no sums. */
const MEASURED: ReadonlySet<string> = new Set<MetricName>(['SyncLag']);

/** CloudWatch's embedded metric format: no request, one line per set of dimensions. */
export function createCounters(config: Pick<Config, 'metrics' | 'installation' | 'stage'>): Counters {
  if (config.metrics === 'none') return { ...noMetrics, measure: () => undefined, flush: () => undefined };
  const { installation, stage } = config;
  const powertools = new Powertools({ namespace: 'kbind', serviceName: installation, defaultDimensions: { stage } });
  const series = new Map<string, Series>();
  const measured = new Map<MetricName, number[]>();

  function add(name: MetricName, value: number, dimensions: MetricDimensions): void {
    const key = JSON.stringify(dimensions);
    const group = series.get(key) ?? { dimensions, sums: new Map<MetricName, number>() };
    series.set(key, group);
    group.sums.set(name, (group.sums.get(name) ?? 0) + value);
  }

  function publish(name: MetricName, values: readonly number[]): void {
    for (let at = 0; at < values.length; at += MAX_VALUES) {
      for (const value of values.slice(at, at + MAX_VALUES)) powertools.addMetric(name, MetricUnit.Milliseconds, value);
      powertools.publishStoredMetrics();
    }
  }

  // Every counter exists at zero before it fires: an alarm on a missing one would sleep.
  for (const name of Object.keys(metricNames) as MetricName[]) if (!MEASURED.has(name)) add(name, 0, {});

  return {
    count(name, value = 1, dimensions = {}) {
      add(name, value, {});
      // An alarm on the whole cannot add series up: the sum is one of its own.
      if (Object.keys(dimensions).length > 0) add(name, value, dimensions);
    },
    measure(name, ms) {
      measured.set(name, [...(measured.get(name) ?? []), ms]);
    },
    flush() {
      for (const { dimensions, sums } of series.values()) {
        if (Object.keys(dimensions).length > 0) powertools.addDimensions({ ...dimensions });
        for (const [name, value] of sums) powertools.addMetric(name, MetricUnit.Count, value);
        powertools.publishStoredMetrics();
      }
      for (const [name, values] of measured) publish(name, values);
      series.clear();
      measured.clear();
    },
  };
}
