import type { MetricDimensions, MetricName } from './metric-names.ts';

/** Fields of a log line. Never objects, kubeconfigs, tokens or Secret data. */
export type LogFields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Messages are constant; what varies goes into fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

const nothing = (): void => undefined;

/** Says nothing: for tests and for reads whose outcome alone matters. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  child: () => silentLogger,
};

/** Counters and gauges by name. Every counter exists at zero before it fires, where the backend allows it. */
export interface Metrics {
  count(name: MetricName, value?: number, dimensions?: MetricDimensions): void;
}

export const noMetrics: Metrics = { count: nothing };
