import type { Logger, LogFields } from '../../../lib/model/log.ts';
import type { QueueMessage, QueueName, Queues } from '../../../lib/queue/queues.ts';
import type { Counters } from '../../../lib/app/counters.ts';

/** What was sent, kept for looking at. Fails on demand, as a queue that does not answer does. */
export interface RecordedQueues extends Queues {
  readonly sent: { readonly queue: QueueName; readonly message: QueueMessage }[];
  /** Parsed bodies of one queue. */
  bodies(queue: QueueName): unknown[];
  failing: Set<QueueName>;
  /** What waits at the instances' queue. */
  waiting: number;
}

export function recordQueues(): RecordedQueues {
  const sent: RecordedQueues['sent'] = [];
  const failing = new Set<QueueName>();
  return {
    sent,
    failing,
    waiting: 0,
    backlog() {
      return Promise.resolve(this.waiting);
    },
    bodies: (queue) => sent.filter((entry) => entry.queue === queue).map(({ message }) => JSON.parse(message.body)),
    send(queue, messages) {
      if (failing.has(queue)) return Promise.reject(new Error(`queue ${queue} does not answer`));
      sent.push(...messages.map((message) => ({ queue, message })));
      return Promise.resolve();
    },
  };
}

export interface RecordedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

export interface RecordedLog extends Logger {
  readonly lines: RecordedLine[];
}

export function recordLog(fixed: LogFields = {}, lines: RecordedLine[] = []): RecordedLog {
  const line =
    (level: RecordedLine['level']) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push({ level, message, fields: { ...fixed, ...fields } });
    };
  return {
    lines,
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (fields) => recordLog({ ...fixed, ...fields }, lines),
  };
}

export interface RecordedCounters extends Counters {
  of(name: string): number;
  measured(name: string): readonly number[];
}

export function recordCounters(): RecordedCounters {
  const sums = new Map<string, number>();
  const measured = new Map<string, readonly number[]>();
  return {
    count: (name, value = 1) => sums.set(name, (sums.get(name) ?? 0) + value),
    measure: (name, ms) => measured.set(name, [...(measured.get(name) ?? []), ms]),
    flush: () => undefined,
    measured: (name) => measured.get(name) ?? [],
    of: (name) => sums.get(name) ?? 0,
  };
}
