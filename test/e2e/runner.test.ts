import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import {
  makeBinding,
  makeConnection,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { at } from '../support/e2e/objects.ts';

interface Run {
  readonly child: ChildProcess;
  output(): string;
}

/** `npm start -- ARGS`, without npm between us and the process that gets the signals. */
function start(...args: readonly string[]): Run {
  const child = spawn(process.execPath, ['lib/local/main.ts', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output };
}

const ended = async ({ child }: Run): Promise<number | null> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
};

describe('the local runner as a process', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0({ cell: false });
  });
  afterAll(() => f0.stop());

  test('binds, is killed with -9, starts again with empty queues and converges; SIGTERM ends it cleanly', async () => {
    const first = start('--fleet', f0.fleetDir);
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    await f0.consumer.make(widgets, at('before'), { spec: { size: 's' } });
    await f0.consumer.make(widgets, at('goes'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('before'));
    await untilObject(f0.provider, widgets, at('goes'));
    first.child.kill('SIGKILL');
    await ended(first);
    await f0.consumer.merge(widgets, at('before'), { spec: { size: 'l' } });
    await f0.consumer.delete(widgets, at('goes'));
    await f0.consumer.make(widgets, at('meanwhile'), { spec: { size: 's' } });
    await f0.provider.setStatus(widgets, at('before'), { phase: 'Up' });
    const second = start('--fleet', f0.fleetDir);
    await untilObject(f0.provider, widgets, at('before'), (copy) => (copy.spec as { size: string }).size === 'l');
    await untilObject(f0.provider, widgets, at('meanwhile'));
    await untilGone(f0.consumer, widgets, at('goes'));
    await untilObject(
      f0.consumer,
      widgets,
      at('before'),
      (source) => (source.status as { phase?: string } | undefined)?.phase === 'Up',
    );
    second.child.kill('SIGTERM');
    expect(await ended(second)).toBe(0);
    expect(second.output()).not.toContain('at file://');
  });

  test.each([
    ['a missing directory', () => Promise.resolve('/nowhere/at/all'), /\/nowhere\/at\/all/],
    ['an empty directory', () => mkdtemp(join(tmpdir(), 'kbind-empty-')), /kubeconfig/],
    [
      'an invalid kubeconfig',
      async () => {
        const directory = await mkdtemp(join(tmpdir(), 'kbind-bad-'));
        await writeFile(join(directory, 'broken.kubeconfig'), 'users: [{name: u, user: {exec: {command: id}}}]');
        return directory;
      },
      /broken/,
    ],
  ])('--fleet with %s: one clear line and a non-zero exit', async (_what, directory, says) => {
    const path = await directory();
    const run = start('--fleet', path);
    expect(await ended(run)).not.toBe(0);
    const lines = run.output().trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(says);
    if (path.startsWith(tmpdir())) await rm(path, { recursive: true, force: true });
  });
});
