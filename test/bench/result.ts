import { describeRequests, messagesOf, requestsOf, isWrite, FORWARDER, type Measured } from '../support/bench/cell.ts';
import type { ProcessUse } from '../support/bench/processes.ts';
import type { Summary } from './medians.ts';

/** What one scenario cost. */
export interface Result {
  readonly scenario: string;
  readonly server: string;
  readonly n: number;
  /** Requests of the product and its forwarder at both API servers. */
  readonly requests: number;
  readonly writes: number;
  readonly forwarderRequests: number;
  readonly requestsPerObject: number;
  readonly writesPerObject: number;
  /** At all queues, those apart that deduplication swallowed. */
  readonly messages: number;
  readonly messagesSent: number;
  readonly messagesPerObject: number;
  readonly invocations: number;
  readonly deadLetters: number;
  /** From the first act to the last effect. */
  readonly ms: number;
  /** Of single objects, from the act to the effect that a watcher sees. */
  readonly p50?: number;
  readonly p99?: number;
  /** Each process's CPU time and peak of memory during the scenario; `bench` is the product, its queue and everybody's hands. */
  readonly processes: readonly ProcessUse[];
  readonly by: Readonly<Record<string, number>>;
  readonly more?: Readonly<Record<string, number>>;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

const round = (value: number): number => Math.round(value * 100) / 100;

export function resultOf(
  what: { readonly scenario: string; readonly server: string; readonly n: number; readonly ms?: number },
  measured: Measured,
  extra: { readonly lags?: readonly number[]; readonly more?: Readonly<Record<string, number>> } = {},
): Result {
  const seen = requestsOf(measured);
  const { lags, more } = extra;
  const writes = seen.filter(isWrite).length;
  const { control, instances, work } = measured.queues;
  return {
    scenario: what.scenario,
    server: what.server,
    n: what.n,
    requests: seen.length,
    writes,
    forwarderRequests: requestsOf(measured, FORWARDER).length,
    requestsPerObject: round(seen.length / what.n),
    writesPerObject: round(writes / what.n),
    messages: messagesOf(measured),
    messagesSent: control.sent + instances.sent + work.sent,
    messagesPerObject: round(messagesOf(measured) / what.n),
    invocations: control.invocations + instances.invocations + work.invocations,
    deadLetters: measured.deadLetters,
    ms: Math.round(what.ms ?? measured.ms),
    ...(lags === undefined ? {} : { p50: Math.round(percentile(lags, 0.5)), p99: Math.round(percentile(lags, 0.99)) }),
    processes: measured.processes,
    by: describeRequests(seen),
    ...(more === undefined ? {} : { more }),
  };
}

const COLUMNS = [
  ['scenario', ({ scenario }: Result) => scenario],
  ['N', ({ n }: Result) => n],
  ['requests', ({ requests }: Result) => requests],
  ['each', ({ requestsPerObject }: Result) => requestsPerObject],
  ['writes', ({ writes }: Result) => writes],
  ['each', ({ writesPerObject }: Result) => writesPerObject],
  ['messages', ({ messages }: Result) => messages],
  ['each', ({ messagesPerObject }: Result) => messagesPerObject],
  ['calls', ({ invocations }: Result) => invocations],
  ['ms', ({ ms }: Result) => ms],
  ['p50', ({ p50 }: Result) => p50 ?? ''],
  ['p99', ({ p99 }: Result) => p99 ?? ''],
  ['CPU ms', ({ processes }: Result) => processes.reduce((sum, { cpuMs }) => sum + cpuMs, 0)],
  ['of it ours', ({ processes }: Result) => processes.find(({ name }) => name === 'bench')?.cpuMs ?? ''],
  ['MB', ({ processes }: Result) => processes.find(({ name }) => name === 'bench')?.peakRssMb ?? ''],
  [
    'more',
    ({ more }: Result) =>
      more === undefined
        ? ''
        : Object.entries(more)
            .map(([k, v]) => `${k} ${v}`)
            .join(', '),
  ],
] as const;

/** A table for people, in Markdown. */
export function tableOf(results: readonly Result[], summary: readonly Summary[]): string {
  const over = ({ scenario }: Result, what: 'overLimit' | 'cpuOverLimit'): string =>
    String(summary.find((one) => one.scenario === scenario)?.[what] ?? '');
  const rows = [
    [...COLUMNS.map(([title]) => title), '× limit', 'CPU × limit'],
    ...results.map((result) => [
      ...COLUMNS.map(([, cell]) => String(cell(result))),
      over(result, 'overLimit'),
      over(result, 'cpuOverLimit'),
    ]),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = [], ...rest] = rows;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rest.map(line)].join('\n');
}
