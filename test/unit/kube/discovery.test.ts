import { describe, expect, test } from 'vitest';
import { discoverApis, servedVersions } from '../../../lib/kube/discovery.ts';
import { createIdentityReader, readClusterIdentity } from '../../../lib/kube/identity.ts';
import type { KubeReads } from '../../../lib/kube/types.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { KbindError, type ErrorClass } from '../../../lib/model/errors.ts';

type Answers = Readonly<Record<string, unknown>>;

function client(paths: Answers, objects: Readonly<Record<string, string | undefined>> = {}) {
  const asked: string[] = [];
  const reads: Pick<KubeReads, 'get' | 'getPath'> = {
    getPath: (path) => {
      asked.push(path);
      const answer = paths[path];
      if (answer instanceof Error) return Promise.reject(answer);
      if (answer === undefined) return Promise.reject(new KbindError('unserved', 'no', { status: 404 }));
      return Promise.resolve(answer);
    },
    get: (ref, { name }) => {
      asked.push(`${ref.resource}/${name}`);
      const answer = objects[`${ref.resource}/${name}`];
      if (answer === undefined || !answer.startsWith('uid-')) {
        return Promise.reject(new KbindError((answer ?? 'absent') as ErrorClass, 'no'));
      }
      return Promise.resolve({ metadata: { name, uid: answer.slice(4) } } as unknown as KubeObject);
    },
  };
  return { ...reads, asked };
}

const group = (name: string, ...versions: string[]) => ({
  name,
  versions: versions.map((version) => ({ version, groupVersion: `${name}/${version}` })),
  preferredVersion: { version: versions[0] },
});
const kcp = { groups: [group('apps', 'v1'), group('core.kcp.io', 'v1alpha1')] };
const plain = { groups: [group('apps', 'v1')] };

describe('identity', () => {
  test.each<[string, Answers, Readonly<Record<string, string | undefined>>, string]>([
    ['plain Kubernetes: kube-system', { '/apis': plain }, { 'namespaces/kube-system': 'uid-ks' }, 'ks'],
    [
      'plain Kubernetes is not asked for a LogicalCluster',
      { '/apis': plain },
      { 'logicalclusters/cluster': 'uid-lc', 'namespaces/kube-system': 'uid-ks' },
      'ks',
    ],
    [
      'kcp: the LogicalCluster',
      { '/apis': kcp },
      { 'logicalclusters/cluster': 'uid-lc', 'namespaces/kube-system': 'uid-ks' },
      'lc',
    ],
    ['kcp without the object: kube-system', { '/apis': kcp }, { 'namespaces/kube-system': 'uid-ks' }, 'ks'],
    [
      'kcp that does not serve it after all: kube-system',
      { '/apis': kcp },
      { 'logicalclusters/cluster': 'unserved', 'namespaces/kube-system': 'uid-ks' },
      'ks',
    ],
    [
      'another version of the group: kube-system',
      { '/apis': { groups: [group('core.kcp.io', 'v2')] } },
      { 'logicalclusters/cluster': 'uid-lc', 'namespaces/kube-system': 'uid-ks' },
      'ks',
    ],
  ])('%s', async (_name, paths, objects, uid) => {
    expect(await readClusterIdentity(client(paths, objects))).toBe(uid);
  });

  test.each<[string, Answers, Readonly<Record<string, ErrorClass | undefined>>, ErrorClass]>([
    ['a forbidden LogicalCluster', { '/apis': kcp }, { 'logicalclusters/cluster': 'forbidden' }, 'forbidden'],
    [
      'a LogicalCluster that cannot be read',
      { '/apis': kcp },
      { 'logicalclusters/cluster': 'unavailable' },
      'unavailable',
    ],
    ['a forbidden kube-system', { '/apis': plain }, { 'namespaces/kube-system': 'forbidden' }, 'forbidden'],
    ['an absent kube-system', { '/apis': plain }, {}, 'unavailable'],
    ['an unserved kube-system', { '/apis': plain }, { 'namespaces/kube-system': 'unserved' }, 'unavailable'],
    ['discovery that is refused', { '/apis': new KbindError('forbidden', 'no') }, {}, 'forbidden'],
    ['discovery that is none', { '/apis': { hello: 'world' } }, {}, 'unavailable'],
  ])('%s is thrown: %s', async (_name, paths, objects, expected) => {
    await expect(readClusterIdentity(client(paths, objects))).rejects.toMatchObject({ errorClass: expected });
  });

  test.each(['logicalclusters/cluster', 'namespaces/kube-system'])('%s without a UID tells nothing', async (empty) => {
    const objects = { 'logicalclusters/cluster': 'uid-lc', 'namespaces/kube-system': 'uid-ks', [empty]: 'uid-' };
    const paths = { '/apis': empty.startsWith('logical') ? kcp : plain };
    await expect(readClusterIdentity(client(paths, objects))).rejects.toMatchObject({ errorClass: 'unavailable' });
  });

  test('a reader asks for the UID every time, for discovery once a minute', async () => {
    let nowMs = 0;
    const reads = client({ '/apis': plain }, { 'namespaces/kube-system': 'uid-ks' });
    const reader = createIdentityReader(reads, { now: () => nowMs, monotonic: () => nowMs });
    await reader();
    await reader();
    expect(reads.asked).toStrictEqual(['/apis', 'namespaces/kube-system', 'namespaces/kube-system']);
    nowMs += 61_000;
    await reader();
    expect(reads.asked.filter((path) => path === '/apis')).toHaveLength(2);
  });
});

describe('discovery', () => {
  const list = (...resources: unknown[]) => ({ resources });
  const widgets = { name: 'widgets', kind: 'Widget', singularName: 'widget', namespaced: true, verbs: ['get'] };
  const paths = {
    '/apis': { groups: [group('example.org', 'v2', 'v1'), group('broken.io', 'v1'), group('gone.io', 'v1')] },
    '/apis/example.org': group('example.org', 'v1', 'v2'),
    '/apis/example.org/v1': list(widgets, { ...widgets, name: 'widgets/status' }, { name: '' }),
    '/apis/example.org/v2': list({ ...widgets, namespaced: false }),
    '/apis/broken.io/v1': new KbindError('unavailable', 'no backend', { status: 503 }),
    '/api/v1': list({ name: 'secrets', kind: 'Secret', namespaced: true, verbs: ['get'] }),
  };

  test('resources of all versions, with what failed beside them', async () => {
    const { groups, resources, failures } = await discoverApis(client(paths));
    expect(groups.map(({ group: name }) => name)).toStrictEqual(['example.org', 'broken.io', 'gone.io']);
    expect(resources).toMatchObject([
      { group: 'example.org', version: 'v2', resource: 'widgets', namespaced: false, status: false },
      { group: 'example.org', version: 'v1', resource: 'widgets', kind: 'Widget', namespaced: true, status: true },
    ]);
    expect(failures).toMatchObject([{ group: 'broken.io', version: 'v1', error: { errorClass: 'unavailable' } }]);
  });

  test('groups that nobody wants are not asked for', async () => {
    const reads = client(paths);
    await discoverApis(reads, { wants: (name) => name === 'example.org' });
    expect(reads.asked).toStrictEqual(['/apis', '/apis/example.org/v2', '/apis/example.org/v1']);
  });

  test.each<[string, KbindError]>([
    ['an outage', new KbindError('unavailable', 'no answer')],
    ['a refusal', new KbindError('forbidden', 'no', { status: 403 })],
    ['an abort', new KbindError('aborted', 'time is up')],
  ])('%s is no partial failure', async (_name, error) => {
    const broken = client({ ...paths, '/apis/broken.io/v1': error });
    await expect(discoverApis(broken)).rejects.toBe(error);
  });

  test('served versions come with the preferred one first', async () => {
    const versions = await servedVersions(client(paths), { group: 'example.org', resource: 'widgets' });
    expect(versions.map(({ version }) => version)).toStrictEqual(['v1', 'v2']);
    expect(await servedVersions(client(paths), { group: 'example.org', resource: 'gadgets' })).toStrictEqual([]);
    expect(await servedVersions(client(paths), { group: 'nowhere.io', resource: 'x' })).toStrictEqual([]);
    expect(await servedVersions(client(paths), { group: '', resource: 'secrets' })).toMatchObject([
      { kind: 'Secret', version: 'v1' },
    ]);
  });
});
