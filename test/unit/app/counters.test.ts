import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createCounters } from '../../../lib/app/counters.ts';
import { metricNames } from '../../../lib/model/metric-names.ts';

interface EmfLine {
  readonly _aws: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[];
    }[];
  };
  readonly [name: string]: unknown;
}

const lines: EmfLine[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.stubEnv('POWERTOOLS_DEV', 'true');
  vi.stubEnv('POWERTOOLS_METRICS_DISABLED', 'false');
  vi.spyOn(console, 'log').mockImplementation((text: string) => void lines.push(JSON.parse(text) as EmfLine));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const counters = () => createCounters({ metrics: 'emf', installation: 'kbind', stage: 'one' });
const linesWith = (...dimensions: string[]): EmfLine[] =>
  lines.filter(({ _aws }) =>
    _aws.CloudWatchMetrics.some(({ Dimensions }) =>
      Dimensions.some((set) => [...set].toSorted().join() === [...dimensions, 'service', 'stage'].toSorted().join()),
    ),
  );

describe('counters', () => {
  it('exist at zero before they fire, once for each container', () => {
    const made = counters();
    made.flush();
    const [first] = linesWith();
    const names = first?._aws.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name));
    expect(names?.toSorted()).toEqual(
      Object.keys(metricNames)
        .filter((name) => name !== 'SyncLag')
        .toSorted(),
    );
    expect(first).toMatchObject({ DeadLettered: 0, service: 'kbind', stage: 'one' });
    lines.length = 0;
    made.flush();
    expect(lines).toEqual([]);
  });

  it('add up for the whole and for each value of a dimension', () => {
    const made = counters();
    made.count('ReconcileFailed', 1, { class: 'internal' });
    made.count('ReconcileFailed', 2, { class: 'forbidden' });
    made.flush();
    expect(linesWith()).toMatchObject([{ ReconcileFailed: 3 }]);
    expect(linesWith('class')).toMatchObject([
      { class: 'internal', ReconcileFailed: 1 },
      { class: 'forbidden', ReconcileFailed: 2 },
    ]);
  });

  it('keep every value of what is measured', () => {
    const made = counters();
    made.flush();
    lines.length = 0;
    for (let ms = 1; ms <= 250; ms += 1) made.measure('SyncLag', ms);
    made.flush();
    expect(linesWith().flatMap(({ SyncLag }) => SyncLag)).toHaveLength(250);
    expect(lines[0]?._aws.CloudWatchMetrics[0]?.Metrics).toEqual([{ Name: 'SyncLag', Unit: 'Milliseconds' }]);
  });
});
