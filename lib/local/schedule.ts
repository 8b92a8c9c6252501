import type { Clock } from '../model/clock.ts';
import type { Logger } from '../model/log.ts';
import { scheduledEvent } from './lambda/events.ts';
import type { LocalFunction } from './lambda/invoke.ts';

export interface ScheduleOptions {
  readonly everyMs: number;
  readonly region: string;
  readonly target: LocalFunction;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onFired: (error: unknown) => void;
}

/** A schedule that runs: first at once, so that a start converges without waiting for the minute, then at its rate. */
export interface RunningSchedule {
  /** Fires no more; waits for the invocations under way. */
  stop(): Promise<void>;
}

/** Invokes a function at a rate, as EventBridge does: whether or not the last invocation has ended. */
export function startSchedule(options: ScheduleOptions): RunningSchedule {
  const running = new Set<Promise<void>>();
  const fire = (): void => {
    const run = once(options).finally(() => running.delete(run));
    running.add(run);
  };
  fire();
  const timer = setInterval(fire, options.everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(running);
    },
  };
}

/** EventBridge would repeat a failed invocation twice; here the next firing does. */
async function once(options: ScheduleOptions): Promise<void> {
  const { target, region, clock, log, onFired } = options;
  try {
    await target.invoke(scheduledEvent({ name: target.declared.name, region }, clock.now()));
    onFired(undefined);
  } catch (error) {
    log.error('a scheduled function failed', { function: target.declared.name, error: String(error) });
    onFired(error);
  }
}
