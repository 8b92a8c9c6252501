import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { until } from '../../support/e2e/until.ts';
import { StartedProcess } from '../../support/local/process.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);
const page = readFileSync(join(root, 'docs', 'quickstart.md'), 'utf8');
const blocks = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, text]) => text ?? '');

let started: StartedProcess | undefined;
afterEach(() => started?.end());

it('every command of docs/quickstart.md does what the page says', { timeout: 240_000 }, async () => {
  const [start, ...rest] = blocks;
  expect(start).toBe('npm start\n');
  expect(rest).toHaveLength(10);
  const demo = new StartedProcess([], { cwd: root });
  started = demo;
  await until('the demonstration is through', () => demo.output.includes('Stop with Ctrl-C'));

  const folder = `.local/demo-${demo.child.pid}`;
  expect(demo.output).toContain(`${folder}/fleet/shop.kubeconfig`);
  const script = rest.join('echo "=== next"\n').replaceAll('.local/demo-12345', folder);
  const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], { cwd: root });
  const [, offered, connected, bound, used, answered] = stdout.split('=== next\n');
  expect(offered).toContain('widgets.example.org condition met');
  expect(connected).toMatch(/databases\.demo\.example\.org widgets\.example\.org$/m);
  expect(bound).toMatch(/^widgets\s+example\.org\/v1\s+true\s+Widget/m);
  expect(used).toContain('core.kbind.io/consumer-object-uid');
  expect(answered).toMatch(/my-widget\s+large\s+Ready/);
});
