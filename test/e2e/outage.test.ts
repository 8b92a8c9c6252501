import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import { base64, makeBinding, makeConnection, startF0, untilReady, type F0 } from '../support/e2e/f0.ts';
import { Load } from '../support/e2e/load.ts';
import { CuttableProxy } from '../support/e2e/proxy.ts';
import { until } from '../support/e2e/until.ts';
import { seeded } from '../support/faults/random.ts';

/** Five minutes by hand (KBIND_E2E_OUTAGE_SECONDS=300); on a virtual clock always, in test/invariants/outage.test.ts. */
const OUTAGE_SECONDS = Number(process.env['KBIND_E2E_OUTAGE_SECONDS'] ?? '60');
const WINDOW_SECONDS = 30;
const INSTANCES = 250;
const CHANGES_A_SECOND = 4;
/** Connections that are tried in one window, whatever waits, until the Connection has found out and asks every 30 s only. */
const ATTEMPTS_AT_FIRST = 100;
/** From then on: two looks a minute each of the Connection, the refresh and the forwarder, all tried three times. */
const ATTEMPTS_LATER = 20;
/** Windows until then. */
const FIRST = 4;
/** The issue's own: two minutes. */
const RETURN_MS = 120_000;

describe(`a provider that is away for ${OUTAGE_SECONDS} s under load`, () => {
  let f0: F0;
  let proxy: CuttableProxy;
  let load: Load;

  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    proxy = await CuttableProxy.start(f0.provider.real.server);
    await f0.consumer.merge(
      resources.secrets,
      { namespace: 'kbind', name: 'demo-provider-kubeconfig' },
      { data: { kubeconfig: base64(proxy.throughProxy(f0.providerKubeconfig)) } },
    );
    await f0.restartCell();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    load = new Load({ consumer: f0.consumer, provider: f0.provider, random: seeded(5), counts: { create: INSTANCES } });
    await load.run(INSTANCES);
    await untilEqual(90_000);
  });
  afterAll(async () => {
    await f0.stop();
    await proxy.stop();
  });

  const untilEqual = (timeoutMs: number): Promise<boolean> =>
    until('both sides are equal', async () => (await load.differences()).length === 0, {
      timeoutMs,
      seen: () => load.differences(),
    });

  /** Load for that long; answers with the attempts to reach the provider meanwhile. */
  async function attemptsIn(seconds: number): Promise<number> {
    const before = proxy.accepted;
    const end = Date.now() + seconds * 1000;
    for (let second = 1; second <= seconds; second += 1) {
      load.more({ edit: CHANGES_A_SECOND - 1, [second % 2 === 0 ? 'create' : 'delete']: 1 });
      await load.run(CHANGES_A_SECOND);
      await until('the next second begins', () => Date.now() >= end - (seconds - second) * 1000);
    }
    return proxy.accepted - before;
  }

  test(
    'is asked a handful of times however many instances wait, leaves no dead letter, and all is in step within two minutes of its return',
    async ({ annotate }) => {
      const attempts: number[] = [];
      proxy.cut();
      load.more({ edit: INSTANCES });
      await load.run(INSTANCES);
      for (let passed = 0; passed < OUTAGE_SECONDS; passed += WINDOW_SECONDS)
        attempts.push(await attemptsIn(WINDOW_SECONDS));
      expect((await load.differences()).length).toBeGreaterThan(200);
      proxy.mend();
      const mendedAt = Date.now();
      await untilEqual(RETURN_MS);
      const returned = `in step ${Date.now() - mendedAt} ms after its return`;
      await annotate(`attempts in each ${WINDOW_SECONDS} s: ${attempts.join(', ')}; ${returned}`);
      expect(Math.max(...attempts.slice(0, FIRST))).toBeLessThanOrEqual(ATTEMPTS_AT_FIRST);
      expect(Math.max(...attempts.slice(FIRST))).toBeLessThanOrEqual(ATTEMPTS_LATER);
      expect(attempts.reduce((sum, each) => sum + each, 0)).toBeLessThan(INSTANCES);
      await f0.cell.waitIdle();
      expect([...f0.cell.bodies('deadLetters'), ...f0.cell.bodies('workDead')]).toEqual([]);
    },
    OUTAGE_SECONDS * 1000 + RETURN_MS + 60_000,
  );
});
