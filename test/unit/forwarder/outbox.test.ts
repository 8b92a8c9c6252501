import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { outgoing } from '../../../lib/forwarder/mapping.ts';
import { createForwarderMetrics } from '../../../lib/forwarder/metrics.ts';
import { Outbox } from '../../../lib/forwarder/outbox.ts';
import type { Outgoing } from '../../../lib/forwarder/sink.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';

const connection = (change: string): Outgoing =>
  outgoing(reconcileRequest('local', 'connection', { name: 'east' }), change);
const widget = outgoing(
  reconcileRequest('local', 'instance', { namespace: 'default', name: 'a' }, { api: 'widgets.example.org' }),
  '1',
);

/** An outbox whose pauses last until they are told to end, or their signal does. */
function outbox() {
  const sent: string[] = [];
  const pauses: (() => void)[] = [];
  const box = new Outbox({
    cluster: 'local',
    sink: {
      send: (batch) => {
        for (const { queue, change } of batch) sent.push(`${queue} ${change}`);
        return Promise.resolve([]);
      },
    },
    pace: {
      clock: { now: () => 0, monotonic: () => 0 },
      chance: () => 0.5,
      sleep: (_ms, signal) =>
        new Promise((resolve) => {
          pauses.push(resolve);
          signal.addEventListener('abort', () => resolve());
        }),
    },
    log: silentLogger,
    metrics: createForwarderMetrics(new Registry()),
  });
  box.start();
  return { box, sent, pauses };
}

it('gathers the keys of the control plane at a start, and holds up no instance', async () => {
  const { box, sent, pauses } = outbox();
  for (const change of ['its own list', 'its Secret', 'its exports']) box.put(connection(change));
  box.put(widget);
  await expect.poll(() => sent).toEqual(['instances 1']);
  for (const end of pauses.splice(0)) end();
  await expect.poll(() => sent).toEqual(['instances 1', 'control its exports']);
  box.put(connection('a change later on'));
  await expect.poll(() => sent.at(-1)).toBe('control a change later on');
  expect(await box.flush(60_000)).toBe(0);
});

it('delivers what it gathers when it is told to end before the time is up', async () => {
  const { box, sent } = outbox();
  box.put(connection('1'));
  expect(await box.flush(60_000)).toBe(0);
  expect(sent).toEqual(['control 1']);
});
