import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const folder = join(root, 'test', 'mutations');
const patches = readdirSync(folder);

test('at least the fifteen bugs that the campaign has to find are there', () => {
  expect(patches.length).toBeGreaterThanOrEqual(15);
});

test.each(patches)('%s says what it breaks, and still applies', (file) => {
  const [what, blank] = readFileSync(join(folder, file), 'utf8').split('\n');
  expect(what).toMatch(/^\w.*\.$/);
  expect(blank).toBe('');
  const { status, stderr } = spawnSync('git', ['apply', '--check', join(folder, file)], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
});
