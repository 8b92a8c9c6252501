import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type ResourceRef } from '../../lib/model/api.ts';
import { makeBinding, makeConnection, startF0, untilObject, untilReady, widgets, type F0 } from '../support/e2e/f0.ts';
import { ProcessCell } from '../support/e2e/process-cell.ts';
import { CuttableProxy } from '../support/e2e/proxy.ts';
import { until } from '../support/e2e/until.ts';

const at = (name: string, namespace = 'default'): { namespace: string; name: string } => ({ namespace, name });
const rbac: ResourceRef = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  namespaced: false,
};
const accounts: ResourceRef = {
  group: '',
  version: 'v1',
  resource: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};

/** client-node reads a token's file again when its last look is a minute old; watches that were refused rest up to half a minute. */
const LATEST_MS = 120_000;

/** The installation's own credentials for a consumer are tokens that live for ten minutes, and are replaced while it works. */
describe('case 39: tokens for the consumer itself', () => {
  let f0: F0;
  let cell: ProcessCell;
  let proxy: CuttableProxy;
  let folder: string;
  let tokenFile: string;
  let first: readonly string[];

  /** A token of an account of its own that may do everything. */
  async function issue(name: string): Promise<string> {
    await f0.consumer.make(accounts, at(name, 'kbind'), {});
    const roleRef = { apiGroup: rbac.group, kind: 'ClusterRole', name: 'cluster-admin' };
    const subjects = [{ kind: 'ServiceAccount', namespace: 'kbind', name }];
    await f0.consumer.make(rbac, { name }, { roleRef, subjects });
    const printed = await f0.consumer.kubectl('create', 'token', name, '-n', 'kbind', '--duration', '10m');
    return printed.trim();
  }

  const authority = (): string => /certificate-authority-data: (\S+)/.exec(f0.consumer.real.kubeconfig)?.[1] ?? '';

  function kubeconfigWith(user: string): string {
    return [
      'apiVersion: v1',
      'kind: Config',
      'current-context: c',
      'contexts: [{name: c, context: {cluster: k, user: u}}]',
      `clusters: [{name: k, cluster: {server: "${proxy.address('https')}", certificate-authority-data: ${authority()}}}]`,
      `users: [{name: u, user: ${user}}]`,
    ].join('\n');
  }

  /** Functions read the fleet's file; the forwarder, like one in a pod, a token in a file that is replaced. */
  async function hand(functions: string, forwarder: string): Promise<readonly string[]> {
    const tokens = [await issue(functions), await issue(forwarder)] as const;
    await writeFile(join(f0.fleetDir, 'consumer.kubeconfig'), kubeconfigWith(`{token: ${tokens[0]}}`));
    await writeFile(tokenFile, tokens[1]);
    return tokens;
  }

  /** API servers believe a token that was good for some seconds more. */
  async function isRefused(token: string): Promise<boolean> {
    const agent = new Agent({ allowH2: false, connect: { ca: Buffer.from(authority(), 'base64') } });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await request(`${f0.consumer.real.server}/api`, { headers, dispatcher: agent });
    await answer.body.dump();
    await agent.close();
    return answer.statusCode === 401;
  }

  const askedBy = async (...names: readonly string[]): Promise<number> => {
    const asked = await Promise.all(names.map((name) => f0.consumer.requestsOf(`system:serviceaccount:kbind:${name}`)));
    return asked.flat().length;
  };

  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    proxy = await CuttableProxy.start(f0.consumer.real.server);
    folder = await mkdtemp(join(tmpdir(), 'kbind-token-'));
    tokenFile = join(folder, 'token');
    first = await hand('functions-1', 'forwarder-1');
    const kubeconfig = join(folder, 'forwarder.kubeconfig');
    await writeFile(
      kubeconfig,
      kubeconfigWith(`{auth-provider: {name: tokenFile, config: {tokenFile: "${tokenFile}"}}}`),
    );
    cell = await ProcessCell.start({ fleetDir: f0.fleetDir, kubeconfig });
    cell.startForwarder();
    cell.startContainer();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
  });
  afterAll(async () => {
    await cell.stop();
    await proxy.stop();
    await f0.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('are replaced and revoked while the installation works: sync goes on both ways, the old ones are not used any more', async () => {
    await f0.consumer.make(widgets, at('before'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('before'));
    await hand('functions-2', 'forwarder-2');
    for (const name of ['functions-1', 'forwarder-1']) await f0.consumer.delete(accounts, at(name, 'kbind'));
    for (const token of first) await until('the old token is refused', () => isRefused(token));
    // A watch that stands outlives its token: a connection that has to be made anew does not.
    proxy.cut();
    proxy.mend();
    const used = async (): Promise<number[]> => [await askedBy('functions-2'), await askedBy('forwarder-2')];
    await until('both new ones are in use', async () => (await used()).every((requests) => requests > 0), {
      timeoutMs: LATEST_MS,
      seen: used,
    });
    await f0.consumer.make(widgets, at('after'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('after'));
    await f0.provider.setStatus(widgets, at('after'), { phase: 'Up' });
    await untilObject(
      f0.consumer,
      widgets,
      at('after'),
      ({ status }) => (status as { phase?: string } | undefined)?.phase === 'Up',
    );
    await f0.consumer.clearAudit();
    await f0.consumer.merge(widgets, at('before'), { spec: { size: 'l' } });
    await untilObject(f0.provider, widgets, at('before'), ({ spec }) => (spec as { size: string }).size === 'l');
    expect(await askedBy('functions-1', 'forwarder-1')).toBe(0);
    await until('nothing is under way', () => cell.isIdle(), { seen: () => cell.depths() });
    expect([...cell.bodies('deadLetters'), ...cell.bodies('workDead')]).toEqual([]);
  });
});
