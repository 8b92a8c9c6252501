import { expect, it } from 'vitest';
import { dropDead, type DropReport } from '../../../lib/replay/drop.ts';
import type { Examine } from '../../../lib/replay/examine.ts';
import { MemoryCell, settleAwaits } from '../../support/queue/dead-queues.ts';
import { letter } from '../../support/queue/letters.ts';

const HOLD_MS = 900_000;
/** Names, oldest first, with their groups: of a group, a queue gives out one at a time. */
const buried: readonly (readonly [name: string, group: string])[] = [
  ['w-healed-a', 'one'],
  ['w-healed-b', 'one'],
  ['w-failing', 'one'],
  ['w-healed-c', 'two'],
  ['x-healed', 'three'],
];
/** What is not meant, and what is still of use. */
const kept = ['w-failing', 'x-healed'];

function cellThatDies(dieAt: number): MemoryCell {
  const cell = new MemoryCell();
  cell.dieAt = dieAt;
  for (const [name, group] of buried) cell.bury('deadLetters', letter(name), group);
  return cell;
}

const stillDead = (cell: MemoryCell): string[] =>
  cell.dead.map(({ body }) => (JSON.parse(body) as { request: { name: string } }).request.name);

interface Drop {
  /** What an examination has called settled. */
  readonly settled: Set<string>;
  readonly said: DropReport[];
  readonly report: Promise<DropReport>;
}

/** Drops what has served its purpose among those that are meant; looking at an entry asks the cell, and takes awaits. */
function drop(cell: MemoryCell): Drop {
  const settled = new Set<string>();
  const said: DropReport[] = [];
  const examine: Examine = async (request) => {
    await cell.count('deadLetters');
    const name = 'name' in request ? request.name : '';
    if (!name.includes('healed')) return { prospect: 'failing', detail: 'still' };
    settled.add(name);
    return { prospect: 'healed', detail: 'synced' };
  };
  const report = dropDead(cell, examine, {
    filter: { name: 'w-*' },
    settledOnly: true,
    max: 100,
    nowMs: () => cell.now,
    onProgress: (progress) => said.push(progress),
  });
  return { settled, said, report };
}

it('killed at any await, takes out nothing but what it was told to and has looked at; and going on finishes it', async () => {
  const whole = cellThatDies(0);
  expect(await drop(whole).report).toMatchObject({ dropped: 3 });
  expect(whole.awaits).toBeGreaterThan(20);
  for (let dieAt = 1; dieAt <= whole.awaits; dieAt += 1) {
    const cell = cellThatDies(dieAt);
    const { settled, said, report } = drop(cell);
    void report;
    await settleAwaits();
    const dead = stillDead(cell);
    const gone = buried.map(([name]) => name).filter((name) => !dead.includes(name));
    expect([...settled], `await ${dieAt}`).toEqual(expect.arrayContaining(gone));
    expect(dead, `await ${dieAt}`).toEqual(expect.arrayContaining(kept));
    expect(said.at(-1)?.dropped ?? 0, `await ${dieAt}`).toBeLessThanOrEqual(gone.length);

    cell.dieAt = 0;
    cell.now += HOLD_MS;
    await drop(cell).report;
    expect(stillDead(cell), `await ${dieAt}`).toEqual(kept);
    expect(cell.dead.map(({ hiddenUntil }) => hiddenUntil <= cell.now)).toEqual(kept.map(() => true));
    expect(cell.sent).toEqual([]);
  }
});
