import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import { DirectoryRegistry } from '../../../lib/fleet/directory.ts';
import { checkFleetDirectory } from '../../../lib/fleet/directory-files.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';

const kubeconfig = (server: string, user: object = { token: 't' }): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  });

let dir: string;
const put = (name: string, text: string): Promise<void> => writeFile(join(dir, name), text);

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'fleet-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

interface Stage {
  readonly registry: DirectoryRegistry;
  /** UID by server; a server that is not here does not answer. */
  readonly answers: Map<string, string>;
  readonly asked: string[];
  readonly pass: (seconds: number) => void;
}

/** Clusters that only tell who they are. */
function stage(): Stage {
  let ms = 0;
  const answers = new Map<string, string>();
  const asked: string[] = [];
  const connect = ({ server }: ConnectionTarget): KubeClient & { close(): Promise<void> } =>
    ({
      getPath: () => {
        asked.push(server);
        const known = answers.has(server);
        if (!known) return Promise.reject(new KbindError('unavailable', 'connection refused'));
        return Promise.resolve({ kind: 'APIGroupList', groups: [] });
      },
      get: () => Promise.resolve({ metadata: { uid: answers.get(server) } }),
      close: () => Promise.resolve(),
    }) as unknown as KubeClient & { close(): Promise<void> };
  const clock = { now: () => ms, monotonic: () => ms };
  const registry = new DirectoryRegistry({ dir, allowLoopback: true, clock, connect });
  return {
    registry,
    answers,
    asked,
    pass: (seconds) => {
      ms += seconds * 1000;
    },
  };
}

describe('a fleet directory', () => {
  it('names its clusters by file, and asks each once who it is', async () => {
    const { registry, answers, asked } = stage();
    await put('one.kubeconfig', kubeconfig('https://one'));
    await put('two.kubeconfig', kubeconfig('https://two'));
    await put('notes.txt', 'x');
    answers.set('https://one', 'uid-1').set('https://two', 'uid-2');
    const { clusters } = await registry.list();
    expect(clusters.map(({ name, uid }) => [name, uid])).toEqual([
      ['one', 'uid-1'],
      ['two', 'uid-2'],
    ]);
    await registry.list();
    expect(await registry.lookup('uid-2')).toMatchObject({ found: 'cluster', cluster: { name: 'two' } });
    expect(asked).toEqual(['https://one', 'https://two']);
  });

  it('does not call a UID unknown while a cluster has not said who it is', async () => {
    const { registry, answers, pass } = stage();
    await put('one.kubeconfig', kubeconfig('https://one'));
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'unresolved', reason: 'one: connection refused' });
    answers.set('https://one', 'uid-1');
    pass(2);
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'cluster' });
    expect(await registry.lookup('uid-9')).toEqual({ found: 'unknown' });
  });

  it('asks a silent cluster with growing pauses', async () => {
    const { registry, asked, pass } = stage();
    await put('one.kubeconfig', kubeconfig('https://one'));
    for (let second = 0; second < 60; second += 1) {
      await registry.lookup('uid-1');
      pass(1);
    }
    expect(asked.length).toBeGreaterThan(3);
    expect(asked.length).toBeLessThan(10);
  });

  it('takes up a file that came later at once, and one that changed', async () => {
    const { registry, answers, pass } = stage();
    answers.set('https://one', 'uid-1').set('https://two', 'uid-2');
    await put('one.kubeconfig', kubeconfig('https://one'));
    expect(await registry.lookup('uid-2')).toEqual({ found: 'unknown' });
    await put('two.kubeconfig', kubeconfig('https://two'));
    expect(await registry.lookup('uid-2')).toMatchObject({ found: 'cluster' });
    await put('one.kubeconfig', kubeconfig('https://two'));
    pass(6);
    expect((await registry.list()).clusters.map(({ uid }) => uid)).toEqual(['uid-2', 'uid-2']);
  });

  it('leaves a tombstone for a cluster whose file went, until it is back', async () => {
    const { registry, answers, pass } = stage();
    answers.set('https://one', 'uid-1');
    await put('one.kubeconfig', kubeconfig('https://one'));
    await registry.list();
    await rm(join(dir, 'one.kubeconfig'));
    pass(6);
    expect(await registry.lookup('uid-1')).toEqual({ found: 'removed' });
    await put('back.kubeconfig', kubeconfig('https://one'));
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'cluster', cluster: { name: 'back' } });
  });

  it('does not call a renamed cluster removed before it was asked', async () => {
    const { registry, answers, pass } = stage();
    answers.set('https://one', 'uid-1');
    await put('one.kubeconfig', kubeconfig('https://one'));
    await registry.list();
    await rename(join(dir, 'one.kubeconfig'), join(dir, 'renamed.kubeconfig'));
    answers.delete('https://one');
    pass(6);
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'unresolved' });
  });

  it('asks again who is behind a file when another cluster answered there: one goes, the other came', async () => {
    const { registry, answers, asked, pass } = stage();
    answers.set('https://one', 'uid-1');
    await put('one.kubeconfig', kubeconfig('https://one'));
    await registry.list();
    answers.set('https://one', 'uid-2');
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'cluster' });
    registry.distrust('uid-1');
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'unresolved' });
    pass(6);
    expect(await registry.lookup('uid-2')).toMatchObject({ found: 'cluster', cluster: { name: 'one' } });
    expect(await registry.lookup('uid-1')).toEqual({ found: 'removed' });
    expect((await registry.list()).clusters[0]?.activity?.sweepOwedSince).toBeDefined();
    expect(asked).toHaveLength(2);
    // The address leads back: nobody is lost for good.
    answers.set('https://one', 'uid-1');
    registry.distrust('uid-2');
    pass(6);
    expect(await registry.lookup('uid-1')).toMatchObject({ found: 'cluster' });
  });

  it('that is doubted all the time is asked once in five seconds', async () => {
    const { registry, answers, asked, pass } = stage();
    answers.set('https://one', 'uid-1');
    await put('one.kubeconfig', kubeconfig('https://one'));
    for (let second = 0; second < 20; second += 1) {
      await registry.lookup('uid-1');
      registry.distrust('uid-1');
      pass(1);
    }
    expect(asked.length).toBeGreaterThan(2);
    expect(asked.length).toBeLessThanOrEqual(5);
  });

  it('keeps the last heartbeat', async () => {
    const { registry, answers } = stage();
    await put('one.kubeconfig', kubeconfig('https://one'));
    answers.set('https://one', 'uid-1');
    expect(await registry.heartbeat('uid-1', { at: 5, watches: 2 })).toBe('recorded');
    expect((await registry.list()).clusters[0]?.activity?.heartbeat).toEqual({ at: 5, watches: 2 });
  });
});

describe('a directory that cannot be a fleet gets one line', () => {
  const line = async (path: string): Promise<string> => {
    const error: unknown = await checkFleetDirectory(path, true).catch((thrown: unknown) => thrown);
    if (!(error instanceof KbindError)) throw new Error('was taken');
    expect(error.errorClass).toBe('misconfigured');
    expect(error.message).not.toContain('\n');
    return error.message;
  };

  it('missing', async () => {
    expect(await line(join(dir, 'none'))).toBe(`fleet directory ${join(dir, 'none')} does not exist`);
  });

  it('a file', async () => {
    await put('file', '');
    expect(await line(join(dir, 'file'))).toBe(`fleet directory ${join(dir, 'file')} is no directory`);
  });

  it('empty', async () => {
    expect(await line(dir)).toBe(`fleet directory ${dir} holds no NAME.kubeconfig file`);
  });

  it('with a kubeconfig that would run a command: named, and never run', async () => {
    const marker = join(dir, 'ran');
    const exec = { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [marker] } };
    await put('bad.kubeconfig', kubeconfig('https://one', exec));
    expect(await line(dir)).toMatch(/bad\.kubeconfig cannot be used: .*exec/);
  });

  it('with text that is none', async () => {
    await put('bad.kubeconfig', 'hello: [');
    expect(await line(dir)).toMatch(/bad\.kubeconfig cannot be used: /);
  });
});
