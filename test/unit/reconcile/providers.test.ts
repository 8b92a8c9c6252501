import { beforeEach, describe, expect, test } from 'vitest';
import type { OpenKubeClient } from '../../../lib/kube/client.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import type { Clock } from '../../../lib/model/clock.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { ClusterIdentity } from '../../../lib/reconcile/cluster-identity.ts';
import { readCredential } from '../../../lib/reconcile/credential.ts';
import { ProviderPool } from '../../../lib/reconcile/provider-pool.ts';
import { createProviders } from '../../../lib/reconcile/providers.ts';
import { usedSecretRef } from '../../../lib/model/secret-ref.ts';
import { aConnection, NOW } from '../connection/samples.ts';

const ref = { namespace: 'kbind', name: 'demo', key: 'kubeconfig' };
const kubeconfig = (token: string) =>
  `{current-context: a, clusters: [{name: a, cluster: {server: "https://provider.example"}}],
    contexts: [{name: a, context: {cluster: a, user: a, namespace: tenant}}], users: [{name: a, user: {token: ${token}}}]}`;
const secret = (text: string | undefined, uid = 'secret-uid') =>
  ({
    metadata: { name: 'demo', namespace: 'kbind', uid },
    ...(text === undefined ? {} : { data: { kubeconfig: Buffer.from(text).toString('base64') } }),
  }) as unknown as KubeObject;

let nowMs: number;
let stored: KubeObject | undefined;
let uid: string;
let failure: KbindError | undefined;
let opened: (string | undefined)[];
let closed: (string | undefined)[];
let pool: ProviderPool;
const clock: Clock = { now: () => nowMs, monotonic: () => nowMs };
const providers = () =>
  createProviders(pool, { secret: () => Promise.resolve({ value: stored, sentAt: { wall: nowMs, mono: nowMs } }) });

beforeEach(() => {
  nowMs = NOW;
  stored = secret(kubeconfig('one'));
  uid = 'provider-uid';
  failure = undefined;
  opened = [];
  closed = [];
  const connect = (target: ConnectionTarget): OpenKubeClient => {
    opened.push(target.token);
    const answer = <T>(value: T): Promise<T> =>
      failure === undefined ? Promise.resolve(value) : Promise.reject(failure);
    return {
      host: 'provider.example',
      serverDate: () => undefined,
      getPath: () => answer({ groups: [] }),
      get: () => answer({ metadata: { name: 'kube-system', uid } } as KubeObject),
      list: () => answer({ items: [] }),
      close: () => {
        closed.push(target.token);
        return Promise.resolve();
      },
    } as unknown as OpenKubeClient;
  };
  pool = new ProviderPool({ clock, allowLoopback: false, connect });
});

const pinned = (to = 'provider-uid') => aConnection('demo', { status: { remoteClusterUID: to } });

describe('a credential', () => {
  test.each([
    ['no Secret', undefined, 'Secret kbind/demo does not exist'],
    ['no such key', secret(undefined), 'Secret kbind/demo has no key "kubeconfig"'],
    ['an empty value', secret(' \n'), 'Secret kbind/demo has an empty value'],
    ['no kubeconfig', secret('junk'), 'kubeconfig under key "kubeconfig" of Secret kbind/demo cannot be used'],
    ['a loopback server', secret(kubeconfig('t').replace('provider.example', '127.0.0.1')), 'loopback'],
  ])('%s is refused with what is wrong', (_name, object, message) => {
    const read = () => readCredential(object, ref, { allowLoopback: false });
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ errorClass: 'credential' }));
  });

  test('has the version of its Secret’s uid and bytes, and shows neither', () => {
    const version = (text: string, secretUid?: string) =>
      readCredential(secret(text, secretUid), ref, { allowLoopback: false }).secretVersion;
    const one = version(kubeconfig('one'));
    expect(one).toMatch(/^sha256:[0-9a-f]{16}$/);
    expect(version(kubeconfig('one'))).toBe(one);
    expect(version(kubeconfig('two'))).not.toBe(one);
    expect(version(kubeconfig('one'), 'recreated')).not.toBe(one);
  });

  test('comes from the Secret that was recorded, whatever the spec says now', () => {
    const annotations = { 'core.kbind.io/kubeconfig-secret-ref': 'kbind/first/config' };
    const connection = aConnection('demo', { secret: 'second', metadata: { annotations } });
    expect(usedSecretRef(connection)).toEqual({ namespace: 'kbind', name: 'first', key: 'config' });
    const odd = { 'core.kbind.io/kubeconfig-secret-ref': 'a/b' };
    expect(usedSecretRef(aConnection('demo', { secret: 'second', metadata: { annotations: odd } })).name).toBe(
      'second',
    );
  });
});

describe('the pool', () => {
  test('keeps one client for the same bytes, whoever asks', async () => {
    await providers().open(pinned());
    await providers().probe(pinned());
    await providers().open(pinned());
    expect(opened).toEqual(['one']);
  });

  test('makes a new client for new bytes and closes the old one when it is idle', async () => {
    await providers().open(pinned());
    stored = secret(kubeconfig('two'));
    await providers().open(pinned());
    expect(opened).toEqual(['one', 'two']);
    expect(closed).toEqual([]);
    nowMs += 30_001;
    await providers().open(pinned());
    expect(closed).toEqual(['one']);
  });

  test('does not close what another Connection still uses', async () => {
    const other = aConnection('other', { status: { remoteClusterUID: 'provider-uid' } });
    await providers().open(other);
    await providers().open(pinned());
    stored = secret(kubeconfig('two'));
    await providers().open(pinned());
    nowMs += 30_001;
    await providers().open(pinned());
    expect(closed).toEqual([]);
  });

  test('drops a credential that is refused, so that the next use makes a new client', async () => {
    const side = await providers().open(pinned());
    failure = new KbindError('unauthorized', '401');
    await expect(side.client.list({} as never)).rejects.toThrow('401');
    failure = undefined;
    await providers().open(pinned());
    expect(opened).toEqual(['one', 'one']);
  });

  test('refuses another cluster and a Connection that has pinned none, as unavailable and never as absent', async () => {
    await expect(providers().open(pinned('another'))).rejects.toMatchObject({
      errorClass: 'identity',
      details: { side: 'provider' },
    });
    await expect(providers().open(aConnection('new'))).rejects.toMatchObject({ errorClass: 'identity' });
  });

  test('answers a probe with whoever is there, and where the Lease lives', async () => {
    uid = 'somebody';
    await expect(providers().probe(pinned())).resolves.toMatchObject({
      side: { uid: 'somebody' },
      contextNamespace: 'tenant',
    });
  });
});

describe('an identity', () => {
  test('is asked again when the last answer is older than that, counted from when it was asked', async () => {
    let asked = 0;
    const identity = new ClusterIdentity(() => {
      asked += 1;
      nowMs += 500;
      return Promise.resolve('uid');
    }, clock);
    await identity.read(10_000);
    nowMs = NOW + 10_000;
    await identity.read(10_000);
    expect(asked).toBe(1);
    nowMs = NOW + 10_001;
    await identity.read(10_000);
    expect(asked).toBe(2);
    await identity.read(0);
    expect(asked).toBe(3);
  });

  test('that could not be read is no answer', async () => {
    let fails = true;
    const identity = new ClusterIdentity(
      () => (fails ? Promise.reject(new KbindError('unavailable', 'away')) : Promise.resolve('uid')),
      clock,
    );
    await expect(identity.read(10_000)).rejects.toThrow('away');
    fails = false;
    await expect(identity.read(10_000)).resolves.toBe('uid');
  });
});
