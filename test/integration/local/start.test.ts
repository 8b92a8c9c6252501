import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { until } from '../../support/e2e/until.ts';
import { StartedProcess } from '../../support/local/process.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const started: StartedProcess[] = [];
const folders: string[] = [];

function start(...args: string[]): StartedProcess {
  const process = new StartedProcess(args, { cwd: root });
  started.push(process);
  return process;
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'kbind-fleet-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

afterEach(async () => {
  for (const process of started.splice(0)) await process.end();
});
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe('npm start -- --fleet, given what cannot work, says so in one line and ends with 1', () => {
  const kubeconfig = (user: string): string => `
apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: u, user: ${user} }]
`;
  it.concurrent.each([
    ['a folder that is missing', () => '/no/such/folder', /fleet directory \/no\/such\/folder does not exist/],
    ['an empty folder', () => folderWith({}), /holds no NAME\.kubeconfig file/],
    ['a folder without kubeconfigs', () => folderWith({ 'readme.txt': '' }), /holds no NAME\.kubeconfig file/],
    ['a file that is no YAML', () => folderWith({ 'a.kubeconfig': 'a: [' }), /a\.kubeconfig cannot be used: .*YAML/],
    ['an empty file', () => folderWith({ 'a.kubeconfig': '' }), /a\.kubeconfig cannot be used/],
    [
      'a kubeconfig that runs a command',
      () => folderWith({ 'a.kubeconfig': kubeconfig('{ exec: { command: touch } }') }),
      /a\.kubeconfig cannot be used: .*exec/,
    ],
  ])('%s', async (_title, folder, message) => {
    // Ends by itself, and is not to end with the case beside it.
    const process = new StartedProcess(['--fleet', folder()], { cwd: root });
    expect(await process.exited).toEqual({ code: 1, signal: null });
    expect(process.errors.trim().split('\n')).toEqual([expect.stringMatching(message)]);
    expect(process.output).toBe('');
  });

  it('an option that does not exist', async () => {
    const process = start('--flet', 'x');
    expect(await process.exited).toEqual({ code: 1, signal: null });
    expect(process.errors).toMatch(/unknown option '--flet'[^]*Did you mean --fleet/);
  });
});

it('npm start -- --help tells what it does', async () => {
  const process = start('--help');
  expect(await process.exited).toEqual({ code: 0, signal: null });
  expect(process.output).toMatch(/Runs the whole product on this machine[^]*--fleet <folder>/);
});

it('npm start -- --fleet waits for a cluster that does not answer, and says so', async () => {
  const unreachable = `
apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: u, user: { token: t } }]
`;
  const process = start('--fleet', folderWith({ 'away.kubeconfig': unreachable }));
  await until('it says so', () => process.output.includes('away does not answer'));
  process.child.kill('SIGTERM');
  expect(await process.exited).toEqual({ code: 0, signal: null });
});

describe('the demonstration', () => {
  it('runs once and ends with a summary', async () => {
    const process = start('--once');
    expect(await process.exited).toEqual({ code: 0, signal: null });
    expect(process.errors).toBe('');
    expect(process.output).toMatch(/11 steps in [\d.]+ s, with \d+ invocations for \d+ messages; 0 dead letters/);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('ends cleanly at %s, its folder gone; two do not collide', async (signal) => {
    const both = [start(), start()];
    await Promise.all(both.map((process) => until('it invites', () => process.output.includes('Stop with Ctrl-C'))));
    const folder = /--kubeconfig (\S+)\/fleet\//.exec(both[0]?.output ?? '')?.[1] ?? '';
    expect(existsSync(join(root, folder, 'fleet', 'shop.kubeconfig'))).toBe(true);
    for (const process of both) process.child.kill(signal);
    for (const process of both) {
      expect(await process.exited).toEqual({ code: 0, signal: null });
      expect(process.errors).toBe('');
    }
    expect(existsSync(join(root, folder))).toBe(false);
  });

  it('ends cleanly when it is told before it is done', async () => {
    const process = start();
    await until('it has begun', () => process.output.includes('The pipeline runs'));
    process.child.kill('SIGTERM');
    expect(await process.exited).toEqual({ code: 0, signal: null });
    expect(process.errors).toBe('');
  });
});
