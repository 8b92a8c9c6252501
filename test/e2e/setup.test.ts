import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../lib/model/api.ts';
import {
  base64,
  conditionOf,
  crdFor,
  installCrd,
  isTrue,
  makeBinding,
  makeConnection,
  makeKubeconfigSecret,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { staysTrue, until } from '../support/e2e/until.ts';
import { specOf } from '../support/e2e/objects.ts';

/** What a kubeconfig's command would leave, were it run. */
const TOUCHED = join(tmpdir(), `kbind-exec-was-run-${process.pid}`);

describe('setting up, in any order, and bad input', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0();
  });
  afterAll(() => f0.stop());

  const connection = (name: string): Promise<KubeObject> => f0.consumer.get(resources.connections, { name });

  test('binding before Connection before Secret converges to Ready (S12)', async () => {
    await makeBinding(f0.consumer, { connection: 'late-provider' });
    await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'widgets' },
      (binding) => conditionOf(binding, 'Ready')?.reason === 'Pending',
    );
    await makeConnection(f0.consumer, { name: 'late-provider', secret: 'late-secret' });
    await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'late-provider' },
      (object) => conditionOf(object, 'SecretValid')?.reason === 'SecretNotFound',
    );
    await staysTrue(
      'the Connection is not Ready',
      2_000,
      async () => !isTrue(await connection('late-provider'), 'Ready'),
    );
    await makeKubeconfigSecret(f0.consumer, 'late-secret', f0.providerKubeconfig);
    await untilReady(f0.consumer, resources.connections, { name: 'late-provider' });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  });

  test('S13 the Secret outlives its deletion while a Connection uses it', async () => {
    await makeKubeconfigSecret(f0.consumer, 'kept-secret', f0.providerKubeconfig);
    await makeConnection(f0.consumer, { name: 'kept', secret: 'kept-secret' });
    await untilReady(f0.consumer, resources.connections, { name: 'kept' });
    const secret = { namespace: 'kbind', name: 'kept-secret' };
    expect((await f0.consumer.get(resources.secrets, secret)).metadata.finalizers).toContain('core.kbind.io/cleanup');
    await f0.consumer.delete(resources.secrets, secret);
    await staysTrue(
      'the Secret stays',
      2_000,
      async () => (await f0.consumer.find(resources.secrets, secret)) !== undefined,
    );
    await f0.consumer.delete(resources.connections, { name: 'kept' });
    await untilGone(f0.consumer, resources.connections, { name: 'kept' });
    await untilGone(f0.consumer, resources.secrets, secret);
  });

  test('S14 a Secret shared by two Connections goes with the last', async () => {
    await makeKubeconfigSecret(f0.consumer, 'shared-secret', f0.providerKubeconfig);
    for (const name of ['shared-a', 'shared-b']) {
      await makeConnection(f0.consumer, { name, secret: 'shared-secret' });
      await untilReady(f0.consumer, resources.connections, { name });
    }
    const secret = { namespace: 'kbind', name: 'shared-secret' };
    await f0.consumer.delete(resources.secrets, secret);
    await f0.consumer.delete(resources.connections, { name: 'shared-a' });
    await untilGone(f0.consumer, resources.connections, { name: 'shared-a' });
    await staysTrue(
      'the Secret stays',
      2_000,
      async () => (await f0.consumer.find(resources.secrets, secret)) !== undefined,
    );
    await f0.consumer.delete(resources.connections, { name: 'shared-b' });
    await untilGone(f0.consumer, resources.secrets, secret);
  });

  test.each([
    [
      'exec',
      `users: [{name: u, user: {exec: {command: touch, args: ["${TOUCHED}"], apiVersion: client.authentication.k8s.io/v1}}}]`,
      'exec',
    ],
    ['a file path', 'users: [{name: u, user: {tokenFile: /var/run/secrets/token}}]', 'tokenFile'],
    ['an auth provider', 'users: [{name: u, user: {auth-provider: {name: gcp}}}]', 'auth-provider'],
  ])(
    'case 39: a kubeconfig with %s is refused with the name of the field, and runs nothing',
    async (_what, users, field) => {
      const name = `bad-${field.toLowerCase()}`;
      const kubeconfig = [
        'apiVersion: v1',
        'kind: Config',
        'current-context: c',
        'contexts: [{name: c, context: {cluster: k, user: u}}]',
        `clusters: [{name: k, cluster: {server: "${f0.provider.real.server}"}}]`,
        users,
      ].join('\n');
      await makeKubeconfigSecret(f0.consumer, name, kubeconfig);
      await makeConnection(f0.consumer, { name, secret: name });
      const refused = await untilObject(
        f0.consumer,
        resources.connections,
        { name },
        (object) => conditionOf(object, 'SecretValid')?.status === 'False',
      );
      expect(conditionOf(refused, 'SecretValid')).toMatchObject({
        reason: 'SecretNotFound',
        message: expect.stringContaining(field) as string,
      });
      expect(isTrue(refused, 'Ready')).toBe(false);
      expect(existsSync(TOUCHED)).toBe(false);
    },
  );

  test('bad objects get the API server’s own error', async () => {
    await expect(makeConnection(f0.consumer, { name: 'x', schema: { source: 'Guess' } })).rejects.toThrow(
      /422.*Unsupported value/s,
    );
    await expect(makeBinding(f0.consumer, { name: 'x', apis: [] })).rejects.toThrow(/422.*apis/s);
    await expect(f0.consumer.make(resources.connections, { name: 'x' }, { spec: {} })).rejects.toThrow(
      /422.*kubeconfigSecretRef/s,
    );
    await expect(
      makeBinding(f0.consumer, {
        name: 'x',
        relatedResources: [{ group: '', resource: 'pods', direction: 'FromProvider' }],
      }),
    ).rejects.toThrow(/422.*Unsupported value/s);
  });

  test('S16 S17 a broken Secret costs readiness, nothing is deleted; an instance deleted meanwhile waits, Orphan does not; the mended one catches up', async () => {
    const at = (name: string): { namespace: string; name: string } => ({ namespace: 'default', name });
    for (const name of ['w1', 'gone', 'orphan']) {
      await f0.consumer.make(widgets, at(name), {
        metadata: name === 'orphan' ? { annotations: { 'core.kbind.io/deletion-policy': 'Orphan' } } : {},
        spec: { size: 'one' },
      });
      await untilObject(f0.provider, widgets, at(name));
    }
    const secret = { namespace: 'kbind', name: 'late-secret' };
    await f0.consumer.merge(resources.secrets, secret, { data: { kubeconfig: base64('junk') } });
    await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'late-provider' },
      (object) => conditionOf(object, 'Ready')?.reason === 'SecretNotFound',
    );
    await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'widgets' },
      (object) => conditionOf(object, 'Ready')?.reason === 'Pending',
    );
    await untilObject(
      f0.consumer,
      resources.crds,
      { name: 'widgets.example.org' },
      (crd) => crd.metadata.annotations?.['core.kbind.io/watch-plan']?.includes('"provider":false') === true,
    );
    await f0.consumer.delete(widgets, at('gone'));
    await f0.consumer.delete(widgets, at('orphan'));
    await f0.consumer.merge(widgets, at('w1'), { spec: { size: 'two' } });
    await untilGone(f0.consumer, widgets, at('orphan'));
    await staysTrue(
      'the deleted one waits and the copies stay',
      3_000,
      async () =>
        (await f0.consumer.find(widgets, at('gone'))) !== undefined &&
        (await f0.provider.find(widgets, at('gone'))) !== undefined &&
        (await f0.provider.find(widgets, at('orphan'))) !== undefined,
    );
    await f0.consumer.merge(resources.secrets, secret, { data: { kubeconfig: base64(f0.providerKubeconfig) } });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    await untilObject(f0.provider, widgets, at('w1'), (copy) => specOf(copy)['size'] === 'two');
    await untilGone(f0.provider, widgets, at('gone'));
    await untilGone(f0.consumer, widgets, at('gone'));
    await f0.consumer.make(widgets, at('w2'), { spec: { size: 'new' } });
    await untilObject(f0.provider, widgets, at('w2'));
  });

  test('new credentials under the same Secret are used by the next reconcile, nothing is restarted', async () => {
    const fresh = await f0.provider.real.addUser({ name: 'kbind-rotated', groups: ['system:masters'] });
    await f0.provider.clearAudit();
    await f0.consumer.merge(
      resources.secrets,
      { namespace: 'kbind', name: 'late-secret' },
      { data: { kubeconfig: base64(fresh.kubeconfig) } },
    );
    await until('the new user is seen', async () => (await f0.provider.requestsOf('kbind-rotated')).length > 0);
    await f0.consumer.make(widgets, { namespace: 'default', name: 'after-rotation' }, { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, { namespace: 'default', name: 'after-rotation' });
    const writes = (await f0.provider.requestsOf('kbind-rotated')).filter(
      ({ verb, resource }) => verb === 'create' && resource === 'widgets',
    );
    expect(writes.length).toBeGreaterThan(0);
    expect(isTrue(await connection('late-provider'), 'Ready')).toBe(true);
  });

  test('S25 a provider user without any RBAC: PermissionDenied', async () => {
    const nobody = await f0.provider.real.addUser({ name: 'nobody' });
    await makeKubeconfigSecret(f0.consumer, 'restricted-secret', nobody.kubeconfig);
    await makeConnection(f0.consumer, { name: 'restricted-provider', secret: 'restricted-secret' });
    const denied = await untilObject(f0.consumer, resources.connections, { name: 'restricted-provider' }, (object) =>
      isTrue(object, 'PermissionDenied'),
    );
    expect(conditionOf(denied, 'PermissionDenied')?.reason).toBe('Forbidden');
    expect(conditionOf(denied, 'Ready')?.status).toBe('False');
  });

  test('an API that is not exported: APINotExported names it, exporting it heals, and unlabelling it deletes nothing', async () => {
    await makeBinding(f0.consumer, {
      name: 'nothing',
      connection: 'late-provider',
      apis: ['nothing.example.org', 'widgets.example.org'],
    });
    const binding = await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'nothing' },
      (object) => conditionOf(object, 'Ready')?.reason === 'APINotExported',
    );
    expect(conditionOf(binding, 'Ready')?.message).toContain('nothing.example.org');
    await installCrd(f0.provider, crdFor({ ...widgets, resource: 'nothing', kind: 'Nothing' }));
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'nothing' });
    // Unlabelling is no cleanup (L43): the condition says so, nothing is deleted.
    const crd = { name: 'nothing.example.org' };
    await f0.provider.merge(resources.crds, crd, { metadata: { labels: { 'core.kbind.io/exported': null } } });
    await untilObject(
      f0.consumer,
      resources.clusterBindings,
      { name: 'nothing' },
      (object) => conditionOf(object, 'Ready')?.reason === 'APINotExported',
    );
    expect(await f0.consumer.find(resources.crds, crd)).toBeDefined();
  });
});
