import { describe, expect, it } from 'vitest';
import { readEntry, type DeadEntry } from '../../../lib/replay/entry.ts';
import { dropDead } from '../../../lib/replay/drop.ts';
import { examineEntries, type Examine, type Finding } from '../../../lib/replay/examine.ts';
import { isEmptyFilter, matches, type DeadFilter } from '../../../lib/replay/filter.ts';
import { groupEntries } from '../../../lib/replay/groups.ts';
import { MemoryCell } from '../../support/queue/dead-queues.ts';
import { CLUSTER } from '../../support/queue/events.ts';
import { letter } from '../../support/queue/letters.ts';

const entry = (body: string, id = 'message-1'): DeadEntry =>
  readEntry({ queue: 'deadLetters', id, receipt: 'r', body, sentAt: 3_000 });

describe('a filter', () => {
  const widget = entry(letter('web-1', { class: 'forbidden', message: 'RBAC says No' }));
  const sweep = entry(
    JSON.stringify({ v: 1, type: 'sweep', cluster: CLUSTER, id: 's', retry: true, apis: ['a.example.org'] }),
  );
  const refresh = entry(JSON.stringify({ v: 1, type: 'refresh', cluster: CLUSTER, id: 's' }));
  const rows: [string, DeadFilter, DeadEntry, boolean][] = [
    ['nothing', {}, widget, true],
    ['cluster', { cluster: CLUSTER }, widget, true],
    ['another cluster', { cluster: 'other' }, widget, false],
    ['cluster of an obsolete entry', { cluster: CLUSTER }, refresh, true],
    ['controller', { controller: 'instance' }, widget, true],
    ['another controller', { controller: 'crd' }, widget, false],
    ['api', { api: 'widgets.example.org' }, widget, true],
    ['another api', { api: 'widgets.example' }, widget, false],
    ['namespace', { namespace: 'default' }, widget, true],
    ['another namespace', { namespace: 'other' }, widget, false],
    ['name', { name: 'web-1' }, widget, true],
    ['name pattern', { name: 'web*' }, widget, true],
    ['name pattern whose dots are dots', { name: 'we.-1' }, widget, false],
    ['error class', { error: 'forbidden' }, widget, true],
    ['part of the message', { error: 'rbac' }, widget, true],
    ['another error', { error: 'quota' }, widget, false],
    ['older', { olderThanSeconds: 98 }, widget, true],
    ['too young', { olderThanSeconds: 99 }, widget, false],
    ['newer', { newerThanSeconds: 98 }, widget, true],
    ['too old', { newerThanSeconds: 97 }, widget, false],
    ['id', { ids: ['mess'] }, widget, true],
    ['another id', { ids: ['x', 'y'] }, widget, false],
    ['controller sweep', { controller: 'sweep' }, sweep, true],
    ['api of a sweep', { api: 'a.example.org' }, sweep, true],
    ['another api of a sweep', { api: 'b.example.org' }, sweep, false],
    ['name of a sweep', { name: 'x' }, sweep, false],
  ];
  it.each(rows)('by %s', (_, filter, of, expected) => expect(matches(filter, of, 100_000)).toBe(expected));

  it('is empty when it names nothing', () => {
    expect([isEmptyFilter({}), isEmptyFilter({ name: undefined }), isEmptyFilter({ name: 'x' })]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

it('groups by error, cluster and API, the largest first', () => {
  const groups = groupEntries([
    entry(letter('a', { class: 'forbidden' })),
    entry(letter('b')),
    entry(letter('b', { lastFailure: 9_000, message: 'newest' })),
    entry('???'),
  ]);
  expect(groups).toEqual([
    {
      error: 'invalid',
      cluster: CLUSTER,
      api: 'widgets.example.org',
      entries: 2,
      keys: 1,
      oldest: 1_000,
      newest: 9_000,
      example: 'newest',
    },
    {
      error: 'forbidden',
      cluster: CLUSTER,
      api: 'widgets.example.org',
      entries: 1,
      keys: 1,
      oldest: 1_000,
      newest: 2_000,
      example: 'admission says no',
    },
    {
      error: 'malformed',
      cluster: '',
      api: 'unreadable',
      entries: 1,
      keys: 1,
      oldest: 3_000,
      newest: 3_000,
      example: 'message is not JSON',
    },
  ]);
});

const findings: Record<string, Finding> = {
  failing: { prospect: 'failing', detail: 'still' },
  healed: { prospect: 'healed', detail: 'synced' },
  gone: { prospect: 'gone', detail: 'gone' },
  idle: { prospect: 'idle', detail: 'not Ready' },
};
const examine: Examine = (request) =>
  Promise.resolve(findings[request.type === 'reconcile' ? request.name : ''] ?? { prospect: 'sweep', detail: '' });

it('tries each key once, and says what nobody can try', async () => {
  let tries = 0;
  const counting: Examine = (request) => {
    tries += 1;
    return examine(request);
  };
  const entries = [entry(letter('failing')), entry(letter('failing')), entry('?')];
  const examined = await examineEntries(entries, counting);
  expect(examined.map(({ finding }) => finding.prospect)).toEqual(['failing', 'failing', 'unreadable']);
  expect(tries).toBe(1);
});

describe('dropping', () => {
  function filled(): MemoryCell {
    const cell = new MemoryCell();
    for (const name of Object.keys(findings)) cell.bury('deadLetters', letter(name));
    cell.bury('workDead', JSON.stringify({ v: 1, type: 'refresh', cluster: CLUSTER, id: 's' }));
    cell.bury('workDead', 'unreadable');
    return cell;
  }
  const options = { filter: {}, max: 100, nowMs: () => 100_000 };

  it('takes out only what has served its purpose: healed, gone, obsolete', async () => {
    const cell = filled();
    expect(await dropDead(cell, examine, { ...options, settledOnly: true })).toEqual({
      matched: 6,
      dropped: 3,
      kept: 3,
    });
    expect(
      cell.dead.map(({ body }) =>
        readEntry({ ...cell.dead[0], body } as never)
          .key.split('|')
          .at(-1),
      ),
    ).toEqual(['failing', 'idle', 'unreadable']);
    expect(cell.dead.every(({ hiddenUntil }) => hiddenUntil === 0)).toBe(true);
  });

  it('takes out whatever the filter means, when it is told so, up to its maximum', async () => {
    const cell = filled();
    expect(await dropDead(cell, examine, { ...options, filter: { name: 'idle' }, settledOnly: false })).toMatchObject({
      dropped: 1,
    });
    expect(await dropDead(cell, examine, { ...options, max: 2, settledOnly: false })).toMatchObject({
      dropped: 2,
      stopped: 'maximum',
    });
    expect(cell.dead.length).toBe(3);
  });
});
