import { expect, it } from 'vitest';
import { Faults } from '../../support/faults/plan.ts';
import { seeded } from '../../support/faults/random.ts';
import { VirtualTime } from '../../support/faults/virtual-time.ts';
import { VirtualQueues } from '../../support/queue/virtual-queue.ts';

const FIVE_MINUTES_MS = 300_000;

function queues() {
  const time = new VirtualTime();
  const faults = new Faults(seeded(1), { rate: 0, kinds: [], time, until: 0 });
  return { time, queues: new VirtualQueues(time, faults) };
}

it('takes a dead letter of one id and group once within five minutes, as the FIFO queue that it stands for does', async () => {
  const { time, queues: held } = queues();
  const send = (group: string, deduplicationId: string, body: string) =>
    held.send('deadLetters', [{ group, deduplicationId, body }]);
  send('g', 'chain-1', 'first');
  send('g', 'chain-1', 'again');
  send('g', 'chain-2', 'another chain');
  send('h', 'chain-1', 'another key');
  await time.runUntil(FIVE_MINUTES_MS);
  send('g', 'chain-1', 'later');
  expect(held.dead.map(({ body }) => body)).toEqual(['first', 'another chain', 'another key', 'later']);
});

it('refuses a dead letter without an id, as that queue does', () => {
  expect(() => queues().queues.send('deadLetters', [{ body: 'x', group: 'g' }])).toThrow('needs a group and an id');
});
