import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('nothing is coloured in a pipe, in CI neither', () => {
  const { NO_COLOR: _, ...env } = process.env;
  const ran = spawnSync(process.execPath, ['lib/cli/main.ts', '--fleet', '/nowhere/at/all', 'clusters', 'list'], {
    env: { ...env, CI: 'true' },
    encoding: 'utf8',
  });
  const said = ran.stdout + ran.stderr;
  expect(said).toContain('/nowhere/at/all');
  expect(said).not.toContain('\u001b');
});
