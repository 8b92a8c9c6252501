import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { outgoing } from '../../../lib/forwarder/mapping.ts';
import { createForwarderMetrics } from '../../../lib/forwarder/metrics.ts';
import { AMPLE, UNASKED } from '../../../lib/forwarder/allowance.ts';
import { Outbox } from '../../../lib/forwarder/outbox.ts';
import { MAX_BATCH, type Outgoing } from '../../../lib/forwarder/sink.ts';
import { recordLog } from '../../support/queue/recorded.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';

const connection = (change: string): Outgoing =>
  outgoing(reconcileRequest('local', 'connection', { name: 'east' }), change);
const widget = outgoing(
  reconcileRequest('local', 'instance', { namespace: 'default', name: 'a' }, { api: 'widgets.example.org' }),
  '1',
);

/** An outbox whose pauses last until they are told to end, or their signal does. */
function outbox(backlog: () => Promise<number> = () => Promise.resolve(0)) {
  const sent: string[] = [];
  const log = recordLog();
  const metrics = createForwarderMetrics(new Registry());
  const pauses: (() => void)[] = [];
  const box = new Outbox({
    cluster: 'local',
    sink: {
      send: (batch) => {
        for (const { queue, change } of batch) sent.push(`${queue} ${change}`);
        return Promise.resolve([]);
      },
      backlog,
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
    log,
    metrics,
  });
  box.start();
  return { box, sent, pauses, log, metrics };
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

describe('a burst', () => {
  const BURST = 400;
  const instance = (n: number): Outgoing =>
    outgoing(
      reconcileRequest('local', 'instance', { namespace: 'default', name: `n${n}` }, { api: 'widgets.example.org' }),
      String(n),
    );
  const burst = (box: Outbox): void => {
    for (let n = 0; n < BURST; n += 1) box.put(instance(n));
  };

  /** A queue of which nothing is worked off until that is said. */
  function standingQueue(first: number) {
    let gone = 0;
    const made = outbox(() => Promise.resolve(first + made.sent.length - gone));
    return { ...made, workOff: () => (gone = first + made.sent.length) };
  }

  it('is let out as far as there is room at the queue of all clusters, and goes on when there is', async () => {
    const { box, sent, pauses, metrics, workOff } = standingQueue(AMPLE - UNASKED - 20);
    pauses.splice(0);
    burst(box);
    await expect.poll(() => pauses.length).toBe(1);
    /** More than the room by no more than what the other lanes had under way when it was asked for. */
    const expectSent = (room: number): void => {
      expect(sent.length).toBeGreaterThanOrEqual(UNASKED + room);
      expect(sent.length).toBeLessThanOrEqual(UNASKED + room + 2 * 3 * MAX_BATCH);
    };
    expectSent(20);
    expect((await metrics.heldBack.get()).values[0]?.value).toBe(1);
    workOff();
    pauses.splice(0)[0]?.();
    await expect.poll(() => pauses.length).toBe(1);
    expectSent(20 + AMPLE);
    while (sent.length < BURST) {
      workOff();
      pauses.splice(0)[0]?.();
      await expect.poll(() => pauses.length + box.size()).not.toBe(box.size());
    }
    expect(new Set(sent).size).toBe(BURST);
  });

  it('coalesces while it is held back, and holds up neither Connections nor bindings', async () => {
    const { box, sent, pauses } = standingQueue(AMPLE);
    for (const end of pauses.splice(0)) end();
    burst(box);
    await expect.poll(() => pauses.length).toBe(1);
    expect(box.size()).toBe(BURST - UNASKED);
    burst(box);
    expect(box.size()).toBe(BURST);
    box.put(connection('meanwhile'));
    await expect.poll(() => sent.at(-1)).toBe('control meanwhile');
    expect(await box.flush(60_000)).toBe(0);
    expect(sent).toHaveLength(BURST + UNASKED + 1);
  });

  it('is delivered without a pause when the process is to end', async () => {
    const { box, sent, pauses } = outbox(() => Promise.resolve(AMPLE));
    burst(box);
    await expect.poll(() => pauses.length).toBe(2);
    expect(await box.flush(60_000)).toBe(0);
    expect(sent).toHaveLength(BURST);
  });

  it('is not held back where nobody can tell how much waits; that is said once', async () => {
    const { box, sent, log } = outbox(() => Promise.reject(new KbindError('unavailable', 'AccessDenied')));
    burst(box);
    await expect.poll(() => sent.length).toBe(BURST);
    expect(log.lines.map(({ message, fields }) => [message, fields['error']])).toEqual([
      ['bursts are not held back', 'AccessDenied'],
    ]);
  });
});
