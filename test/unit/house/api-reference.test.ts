import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('docs/api-reference.md is what infra/crds and infra/samples say: node scripts/api-reference.ts', () => {
  const run = (): string =>
    execFileSync(process.execPath, ['scripts/api-reference.ts', '--check'], { encoding: 'utf8' });
  expect(run()).toBe('');
});
