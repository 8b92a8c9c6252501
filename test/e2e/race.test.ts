import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../lib/model/api.ts';
import { TestCluster } from '../support/e2e/cluster.ts';
import {
  assets,
  ensureNamespace,
  installCoreCrds,
  makeBinding,
  makeConnection,
  makeKubeconfigSecret,
  startF0,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';
import { at } from '../support/e2e/objects.ts';

const ROUNDS = 100;

describe('two consumers of one provider', () => {
  let f0: F0;
  let second: TestCluster;
  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    second = await TestCluster.start('second', assets().consumer);
    await ensureNamespace(second, 'kbind');
    await installCoreCrds(second);
    await makeKubeconfigSecret(second, 'demo-provider-kubeconfig', f0.providerKubeconfig);
    const user = await second.real.addUser({ name: 'kbind-product', groups: ['system:masters'] });
    await writeFile(join(f0.fleetDir, 'second.kubeconfig'), user.kubeconfig);
    await f0.restartCell();
    for (const consumer of [f0.consumer, second]) {
      await makeConnection(consumer);
      await makeBinding(consumer);
      await untilReady(consumer, resources.clusterBindings, { name: 'widgets' });
    }
  });
  afterAll(async () => {
    await f0.stop();
    await second.stop();
  });

  test(`the same name created by both at the same moment, ${ROUNDS} times: one wins, the other conflicts, no spec is overwritten`, async () => {
    const names = Array.from({ length: ROUNDS }, (_, index) => `race-${index}`);
    for (const name of names) {
      await Promise.all([
        f0.consumer.make(widgets, at(name), { spec: { from: 'first' } }),
        second.make(widgets, at(name), { spec: { from: 'second' } }),
      ]);
    }
    const settled = (object: KubeObject | undefined): 'conflict' | 'synced' | undefined =>
      object?.metadata.annotations?.['core.kbind.io/conflict'] === undefined
        ? (object?.metadata.finalizers?.length ?? 0) > 0
          ? 'synced'
          : undefined
        : 'conflict';
    for (const name of names) {
      const [copy, a, b] = await until(
        `${name} is decided`,
        async () => {
          const seen = await Promise.all([
            f0.provider.find(widgets, at(name)),
            f0.consumer.find(widgets, at(name)),
            second.find(widgets, at(name)),
          ] as const);
          return (
            seen[0] !== undefined &&
            new Set([settled(seen[1]), settled(seen[2])]).isSupersetOf(new Set(['conflict', 'synced'])) &&
            seen
          );
        },
        { timeoutMs: 120_000 },
      );
      const winner = settled(a) === 'synced' ? a : b;
      if (copy === undefined || winner === undefined) throw new Error(`${name} vanished`);
      expect((copy.spec as { from: string }).from).toBe((winner.spec as { from: string }).from);
      expect(copy.metadata.annotations?.['core.kbind.io/consumer-object-uid']).toBe(winner.metadata.uid);
      expect(copy.metadata.generation).toBe(1);
    }
  });

  test('each sees only its own: an edit of the loser changes nothing, its deletion leaves the copy', async () => {
    const copy = await f0.provider.get(widgets, at('race-0'));
    const winnerUid = copy.metadata.annotations?.['core.kbind.io/consumer-object-uid'];
    const firstWon = (await f0.consumer.get(widgets, at('race-0'))).metadata.uid === winnerUid;
    const loser = firstWon ? second : f0.consumer;
    await loser.merge(widgets, at('race-0'), { spec: { edited: true } });
    await loser.delete(widgets, at('race-0'));
    await until('the loser’s object goes', async () => (await loser.find(widgets, at('race-0'))) === undefined);
    expect((await f0.provider.get(widgets, at('race-0'))).spec).toEqual(copy.spec);
  });
});
