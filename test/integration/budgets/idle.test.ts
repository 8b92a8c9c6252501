import { describe, expect, test } from 'vitest';
import { atMost } from '../../support/bench/at-most.ts';
import { simulateIdle } from '../../support/bench/idle.ts';

/** What a cluster costs at which nothing happens: counted over an hour that passes in no time. */

const HOUR = 60;

describe('an idle cluster', () => {
  test('without an instance costs at most 30 requests a minute, 2 of them writes', async () => {
    const { requests, writes, minutes } = await simulateIdle({ bindings: 1, instances: 0, minutes: 10 });
    expect(requests / minutes).toBeLessThanOrEqual(30);
    expect(writes / minutes).toBeLessThanOrEqual(2);
  }, 60_000);

  test('with 1,000 instances costs at most 31 requests a minute, 2 of them writes', async () => {
    const idle = await simulateIdle({ bindings: 1, instances: 1_000, minutes: HOUR });
    atMost(31, idle.requests / idle.minutes, idle);
    expect(idle.writes / idle.minutes).toBeLessThanOrEqual(2);
  }, 60_000);

  test('with three bindings costs at most 130 invocations and 130 messages an hour, and 40 requests a minute', async () => {
    const idle = await simulateIdle({ bindings: 3, instances: 1_000, minutes: HOUR });
    const what = idle;
    atMost(130, idle.invocations, what);
    atMost(130, idle.messages, what);
    atMost(40, idle.requests / idle.minutes, what);
    atMost(2, idle.writes / idle.minutes, what);
  }, 60_000);
});
