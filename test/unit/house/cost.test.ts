import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { amountsOf, billOf, PRICES, type Fleet } from '../../../scripts/cost-model.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const quiet: Fleet = { clusters: 1, apis: 1, objects: 0, changesPerHour: 0 };
const MINUTES = 30 * 24 * 60;

/** Cells of the rows of a table, without the padding. */
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^[|\s-]+$/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));

describe('the cost model', () => {
  it('counts the schedules of a quiet cluster', () => {
    expect(amountsOf(quiet).messages).toBe(MINUTES * 3 + 30 * 24 * 6);
  });

  it('grows with the number of objects by pages of sweeps only', () => {
    const many = amountsOf({ ...quiet, objects: 5_000 });
    expect(many.messages).toBe(amountsOf(quiet).messages);
    expect(many.kubeRequests - amountsOf(quiet).kubeRequests).toBe(30 * 24 * 6 * 2 * 9);
  });

  it('adds its lines up, and is linear in prices', () => {
    const { lines, total } = billOf(quiet);
    expect(total).toBeCloseTo(
      lines.reduce((sum, { dollars }) => sum + dollars, 0),
      9,
    );
    const free = Object.fromEntries(Object.keys(PRICES).map((name) => [name, 0])) as unknown as typeof PRICES;
    expect(billOf(quiet, free).total).toBe(0);
  });

  it('is the table of docs/cost.md', () => {
    const script = join(root, 'scripts', 'cost.ts');
    const printed = execFileSync(process.execPath, [script, '--table'], { encoding: 'utf8' });
    expect(rowsOf(readFileSync(join(root, 'docs', 'cost.md'), 'utf8'))).toEqual(rowsOf(printed));
  });

  it('refuses what is no number', () => {
    const script = join(root, 'scripts', 'cost.ts');
    expect(() => execFileSync(process.execPath, [script, '--clusters', 'many'], { stdio: 'pipe' })).toThrow(/clusters/);
  });
});
