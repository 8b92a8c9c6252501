import { describe, expect, it } from 'vitest';
import { parseMessage } from '../../../lib/queue/codec.ts';
import { workMessage } from '../../../lib/queue/queues.ts';
import { listDead } from '../../../lib/replay/hold.ts';
import { holdSeconds, replayDead, type ReplayOptions, type ReplayReport } from '../../../lib/replay/replay.ts';
import { MemoryCell, settleAwaits } from '../../support/queue/dead-queues.ts';
import { CLUSTER, instanceRequest } from '../../support/queue/events.ts';
import { letter } from '../../support/queue/letters.ts';

function replayIn(cell: MemoryCell, options: Partial<ReplayOptions> = {}) {
  const pauses: number[] = [];
  let time = 0;
  const parts = {
    dead: cell,
    queues: cell,
    clock: { now: () => cell.now, monotonic: () => time },
    pause: (ms: number) => {
      pauses.push(ms);
      time += ms;
      return Promise.resolve();
    },
  };
  const report = replayDead(parts, { id: 'r1', filter: {}, max: 1000, perSecond: 1000, ...options });
  return { report, pauses };
}

const names = (cell: MemoryCell): string[] =>
  cell.sent.map(({ message }) => {
    const request = parseMessage(message.body);
    return request.type === 'reconcile' ? request.name : request.type;
  });

describe('a replay', () => {
  it('enqueues a fresh chain, the oldest first, and removes it from the dead', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('newer', { firstFailure: 5_000 }));
    cell.bury('deadLetters', letter('older', { firstFailure: 1_000 }));
    expect(await replayIn(cell).report).toEqual({ id: 'r1', matched: 2, enqueued: 2, notRemoved: 0, unfit: 0 });
    expect(names(cell)).toEqual(['older', 'newer']);
    expect(cell.sent[0]?.queue).toBe('instances');
    expect(parseMessage(cell.sent[0]?.message.body ?? '')).toEqual({
      ...instanceRequest('older'),
      retry: true,
      firstFailure: cell.now,
    });
    expect(cell.dead).toEqual([]);
  });

  it('reads raw bodies of both queues: keys, due keys and sweeps; a sweep starts at its beginning', async () => {
    const cell = new MemoryCell();
    const cursor = { api: 'widgets.example.org', consumer: 'token' };
    cell.bury('deadLetters', JSON.stringify(instanceRequest('raw')));
    cell.bury(
      'workDead',
      workMessage({ v: 1, type: 'due', request: instanceRequest('due'), dueAt: 1, delaySeconds: 2 }).message.body,
    );
    cell.bury('workDead', JSON.stringify({ v: 1, type: 'sweep', cluster: CLUSTER, id: 'old', retry: false, cursor }));
    await replayIn(cell).report;
    expect(names(cell).toSorted()).toEqual(['due', 'raw', 'sweep']);
    const sweep = cell.sent.find(({ queue }) => queue === 'work');
    expect(parseMessage(sweep?.message.body ?? '')).toEqual({
      v: 1,
      type: 'sweep',
      cluster: CLUSTER,
      id: 'replay/r1',
      retry: true,
    });
  });

  it('leaves what nobody can read, what nobody needs, and what the filter does not mean', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', 'not JSON');
    cell.bury('workDead', JSON.stringify({ v: 1, type: 'refresh', cluster: CLUSTER, id: 'x' }));
    expect(await replayIn(cell).report).toMatchObject({ matched: 2, enqueued: 0, unfit: 2 });
    cell.bury('deadLetters', letter('meant'));
    cell.bury('deadLetters', letter('other'));
    expect(await replayIn(cell, { filter: { name: 'mea*' } }).report).toMatchObject({ matched: 1, enqueued: 1 });
    expect(cell.dead.every(({ hiddenUntil }) => hiddenUntil === 0)).toBe(true);
    expect(cell.dead.length).toBe(3);
  });

  it('comes to what stands behind another entry of its key', async () => {
    const cell = new MemoryCell();
    for (const n of [1, 2, 3]) cell.bury('deadLetters', letter(`w${n}`), 'one-group');
    expect(await replayIn(cell).report).toMatchObject({ matched: 3, enqueued: 3 });
    expect(names(cell)).toEqual(['w1', 'w2', 'w3']);
  });

  it('of two entries of one key sends one request, and removes both', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('w'), 'g');
    cell.bury('deadLetters', letter('w', { firstFailure: 1_500 }), 'g');
    expect(await replayIn(cell).report).toMatchObject({ enqueued: 2 });
    expect(names(cell)).toEqual(['w']);
  });

  it('keeps its rate, stops at its maximum, and tells how far it is', async () => {
    const cell = new MemoryCell();
    for (let n = 0; n < 30; n += 1) cell.bury('deadLetters', letter(`w${n}`));
    const progress: ReplayReport[] = [];
    const { report, pauses } = replayIn(cell, { max: 25, perSecond: 5, onProgress: (now) => progress.push(now) });
    expect(await report).toMatchObject({ matched: 30, enqueued: 25, stopped: 'maximum' });
    expect(pauses).toEqual([1000, 1000, 1000, 1000]);
    expect(progress.map(({ enqueued }) => enqueued)).toEqual([5, 10, 15, 20, 25]);
    expect(cell.dead.length).toBe(5);
  });

  it.each([
    ['deadline', { deadline: 1_000_000 }],
    ['aborted', { signal: AbortSignal.abort() }],
  ] as const)('ends with the reason %s', async (stopped, options) => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('w'));
    expect(await replayIn(cell, options).report).toMatchObject({ enqueued: 0, stopped });
    expect(cell.dead[0]?.hiddenUntil).toBe(0);
  });

  it('says which entries the queue did not let go: they are enqueued, and dead as well', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('w'));
    cell.remove = (messages) => Promise.resolve(messages);
    expect(await replayIn(cell).report).toMatchObject({ enqueued: 0, notRemoved: 1 });
    expect(names(cell)).toEqual(['w']);
  });

  it('removes nothing that the queue did not take', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('w'));
    cell.send = () => Promise.reject(new Error('refused'));
    await expect(replayIn(cell).report).rejects.toThrow('refused');
    expect(cell.dead.map(({ hiddenUntil }) => hiddenUntil)).toEqual([0]);
  });

  it('hides what it holds for twice the time that it should take, as far as SQS allows', () => {
    expect([holdSeconds(10, 10), holdSeconds(1000, 10), holdSeconds(1_000_000, 1)]).toEqual([122, 320, 43_200]);
  });
});

describe('killed at any await', () => {
  const buried = ['a', 'b', 'c', 'd'];
  function cellThatDies(dieAt: number): MemoryCell {
    const cell = new MemoryCell();
    cell.dieAt = dieAt;
    for (const name of buried) cell.bury('deadLetters', letter(name), name < 'c' ? 'same' : name);
    return cell;
  }
  const stillDead = (cell: MemoryCell): string[] =>
    cell.dead.map(({ body }) => (JSON.parse(body) as { request: { name: string } }).request.name);

  it('leaves each entry dead, or enqueued, or both, never neither; and going on finishes it', async () => {
    const whole = cellThatDies(0);
    await replayIn(whole, { perSecond: 1 }).report;
    expect(whole.awaits).toBeGreaterThan(20);
    for (let dieAt = 1; dieAt <= whole.awaits; dieAt += 1) {
      const cell = cellThatDies(dieAt);
      void replayIn(cell, { perSecond: 1 }).report;
      await settleAwaits();
      expect(new Set([...stillDead(cell), ...names(cell)]), `await ${dieAt}`).toEqual(new Set(buried));

      cell.dieAt = 0;
      cell.now += 1_000 * holdSeconds(1000, 1);
      await replayIn(cell).report;
      expect(cell.dead, `await ${dieAt}`).toEqual([]);
      expect(names(cell).toSorted(), `await ${dieAt}`).toEqual(buried);
    }
  });
});

describe('a listing', () => {
  it('shows entries with their story, gives everything back, and says how many are behind others', async () => {
    const cell = new MemoryCell();
    cell.bury('deadLetters', letter('a'), 'g');
    cell.bury('deadLetters', letter('b'), 'g');
    cell.bury('workDead', '{"v":1');
    const listing = await listDead(cell, {}, { nowMs: cell.now });
    expect(listing).toMatchObject({ seen: 2, hidden: 1 });
    expect(listing.entries).toMatchObject([
      {
        origin: 'settled',
        key: `${CLUSTER}|instance|widgets.example.org|default|a`,
        error: { class: 'invalid' },
        attempts: 10,
      },
      { origin: 'redriven', unfit: 'unreadable', key: 'unreadable|{"v":1', error: { class: 'malformed' } },
    ]);
    expect(cell.dead.map(({ hiddenUntil }) => hiddenUntil)).toEqual([0, 0, 0]);
  });
});
