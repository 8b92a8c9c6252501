const UNITS: Readonly<Record<string, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Milliseconds between two firings of an EventBridge `rate(...)`. Throws for anything else, `cron(...)` included. */
export function rateToMs(expression: string): number {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression.trim());
  const count = Number(match?.[1]);
  const unit = UNITS[match?.[2] ?? ''];
  if (unit === undefined || count < 1)
    throw new Error(`serverless.yml: the local runner knows rate(N minutes|hours|days) only, not ${expression}`);
  return count * unit;
}
