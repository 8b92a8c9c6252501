import { expect, it } from 'vitest';
import { MOST_LATE_MS, StreamBody } from '../../support/faults/bodies.ts';
import { Faults } from '../../support/faults/plan.ts';
import { seeded } from '../../support/faults/random.ts';
import { VirtualTime } from '../../support/faults/virtual-time.ts';

const MINUTE_MS = 60_000;
const IDLE_MS = 150_000;
const BOOKMARK = '{"type":"BOOKMARK"}';

/** A watch that falls behind within its first minute, and what has arrived of it, with the minute. */
function lateWatch(seed: number) {
  const time = new VirtualTime();
  const faults = new Faults(seeded(seed), { rate: 1, kinds: ['late-watch'], time, until: 20 * MINUTE_MS });
  const stream = new StreamBody(time, faults, { actor: { alive: true }, idleMs: IDLE_MS, signal: undefined });
  const arrived: { readonly text: string; readonly at: number }[] = [];
  let broken: unknown;
  const reading = (async () => {
    try {
      for await (const chunk of stream) arrived.push({ text: chunk.toString(), at: time.elapsed() });
    } catch (error) {
      broken = error;
    }
  })();
  return { time, stream, arrived, reading, broken: () => broken };
}

it.each([1, 2, 3, 4, 5])(
  'a late watch stays open, and brings its events minutes late and in order (seed %s)',
  async (seed) => {
    const { time, stream, arrived, reading, broken } = lateWatch(seed);
    stream.push(Buffer.from(BOOKMARK));
    await time.runUntil(MINUTE_MS);
    stream.push(Buffer.from('first'));
    stream.push(Buffer.from('second'));
    await time.runUntil(2 * MINUTE_MS);
    expect(arrived.map(({ text }) => text)).not.toContain('first');
    await time.runUntil(MINUTE_MS + MOST_LATE_MS + 1_000);
    const events = arrived.filter(({ text }) => text !== BOOKMARK);
    expect(events.map(({ text }) => text)).toEqual(['first', 'second']);
    await time.runUntil(20 * MINUTE_MS);
    expect(broken()).toBeUndefined();
    stream.end();
    await time.runUntil(21 * MINUTE_MS);
    await reading;
    // The server has said where it is all the while.
    expect(arrived.filter(({ text }) => text === BOOKMARK).length).toBeGreaterThan(15);
  },
);
