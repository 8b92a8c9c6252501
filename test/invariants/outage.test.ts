import { describe, expect, it } from 'vitest';
import { simulateOutage } from '../support/bench/outage.ts';

const INSTANCES = 250;
const MINUTES = 5;
/** Looks of the Connection, of the refresh and of the forwarder, each tried three times where the network itself fails. */
const ATTEMPTS_A_MINUTE = 20;
/** Until the Connection has found out, each of seven containers tries now and then, however many keys wait. */
const ATTEMPTS_OF_THE_FIRST = 120;
const CONVERGED_SECONDS = 120;

describe(`a provider that is away for ${MINUTES} minutes while its ${INSTANCES} instances are edited`, () => {
  it.each([['refused'], ['silent']] as const)(
    '%s: is asked a handful of times a minute, leaves no dead letter, and all arrives within two minutes of its return',
    async (away) => {
      const outage = await simulateOutage({ instances: INSTANCES, minutes: MINUTES, editsPerSecond: 1, away });
      const [first = 0, ...others] = outage.attemptsByMinute;
      expect(outage.edits).toBe(MINUTES * 60);
      expect(first).toBeLessThanOrEqual(ATTEMPTS_OF_THE_FIRST);
      expect(others).toHaveLength(MINUTES - 1);
      expect(Math.max(...others)).toBeLessThanOrEqual(ATTEMPTS_A_MINUTE);
      expect(Math.min(...others)).toBeGreaterThan(0);
      expect(outage.deadLetters).toEqual([]);
      expect(outage.convergedAfterSeconds).toBeLessThanOrEqual(CONVERGED_SECONDS);
    },
  );
});
