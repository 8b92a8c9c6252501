import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const document = readFileSync(join(root, 'docs/coverage.md'), 'utf8');
const named = [...document.matchAll(/`([\w/-]+) › ([^`]+)`/g)].map(([, file = '', words = '']) => ({ file, words }));
const files = [...document.matchAll(/`(lib\/[\w./-]+)`/g)].map(([, file = '']) => file);

describe('docs/coverage.md', () => {
  test('names tests that exist', () => {
    const missing = named.filter(({ file, words }) => {
      const path = join(root, 'test', `${file}.test.ts`);
      return !existsSync(path) || !readFileSync(path, 'utf8').includes(words);
    });
    expect(missing).toEqual([]);
    expect(named.length).toBeGreaterThan(100);
  });

  test('names files that exist', () => {
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  test.each([
    ['L', 44],
    ['C', 22],
  ])('has a line for every limit %s1 to %i', (letter, count) => {
    const lines = Array.from({ length: count }, (_, index) => `| ${letter}${index + 1} `);
    expect(lines.filter((line) => !document.includes(line))).toEqual([]);
  });
});
