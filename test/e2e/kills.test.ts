import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import { Load, putForeign } from '../support/e2e/load.ts';
import { makeBinding, makeConnection, PRODUCT_USER, startF0, untilReady, type F0 } from '../support/e2e/f0.ts';
import { ProcessCell } from '../support/e2e/process-cell.ts';
import { until } from '../support/e2e/until.ts';
import { seeded } from '../support/faults/random.ts';

const SEED = Number(process.env['KBIND_E2E_SEED'] ?? '13');
const COUNTS = { create: 250, edit: 350, status: 250, delete: 150 } as const;
const CHANGES = 1_000;
const ROUNDS = 5;
/** Disturbances of one round. */
const STEPS = 4;
/** Longer than any client of the queues tries by itself. */
const QUEUES_AWAY_MS = 3_000;
/** For everything that is still on its way, redeliveries after visibility timeouts included, ms. */
const SETTLE_MS = 170_000;
/** The load itself takes a minute on two busy cores. */
const TEST_MS = SETTLE_MS + 180_000;

describe('a load of 1,000 changes while processes die and the queues go away', () => {
  let f0: F0;
  let cell: ProcessCell;
  let load: Load;
  let foreignChanged: () => Promise<string[]>;

  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    const kubeconfig = join(f0.fleetDir, 'consumer.kubeconfig');
    cell = await ProcessCell.start({ fleetDir: f0.fleetDir, kubeconfig });
    cell.startForwarder();
    cell.startContainer();
    cell.startContainer();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    foreignChanged = await putForeign(f0.consumer, f0.provider);
    load = new Load({ consumer: f0.consumer, provider: f0.provider, random: seeded(SEED), counts: COUNTS });
  });
  afterAll(async () => {
    await cell.stop();
    await f0.stop();
  });

  const passes = (ms: number): Promise<boolean> => {
    const end = Date.now() + ms;
    return until('it has lasted long enough', () => Date.now() >= end);
  };

  /** Runs a disturbance beside its part of the load; `halfway` resolves when half of that part is made. */
  async function during(disturb: (halfway: () => Promise<unknown>) => Promise<void>): Promise<void> {
    const changes = CHANGES / (ROUNDS * STEPS);
    const half = load.left - changes / 2;
    const halfway = (): Promise<unknown> => until('half of the changes are made', () => load.left <= half);
    await Promise.all([load.run(changes), disturb(halfway)]);
  }

  test(
    `seed ${SEED}: forwarder, containers and queues are taken away ${ROUNDS} times each; both sides end equal`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await during(async () => {
          await cell.killContainer();
          cell.startContainer();
        });
        await during(async (halfway) => {
          await cell.killForwarder();
          await halfway();
          cell.startForwarder();
        });
        // What a forwarder has seen and could not send dies with it.
        await during(async (halfway) => {
          cell.wire.cut();
          await halfway();
          await cell.killForwarder();
          cell.startForwarder();
          cell.wire.mend();
        });
        // Nobody starts anew after this one: who could not send must not have forgotten.
        await during(async (halfway) => {
          if (round % 2 === 0) cell.wire.cut();
          else cell.wire.refuse();
          await halfway();
          await passes(QUEUES_AWAY_MS);
          cell.wire.mend();
        });
      }
      expect(load.left).toBe(0);
      expect(cell.killed).toEqual({ forwarder: 2 * ROUNDS, container: ROUNDS });
      await until('both sides are equal', async () => (await load.differences()).length === 0, {
        timeoutMs: SETTLE_MS,
        seen: async () => ({ different: await load.differences(), queues: cell.depths() }),
      });
    },
    TEST_MS,
  );

  test('nothing of it is left: no message waits, no dead letter lies, nothing of others was touched, and it stays so', async () => {
    await until('nothing is under way', () => cell.isIdle(), { timeoutMs: SETTLE_MS, seen: () => cell.depths() });
    expect([...cell.bodies('deadLetters'), ...cell.bodies('workDead')]).toEqual([]);
    expect(await foreignChanged()).toEqual([]);
    await Promise.all([f0.consumer.clearAudit(), f0.provider.clearAudit()]);
    const { uid } = (await f0.consumer.get(resources.namespaces, { name: 'kube-system' })).metadata;
    await cell.backstop(uid);
    expect(await load.differences()).toEqual([]);
    const writes = [...(await f0.consumer.requestsOf(PRODUCT_USER)), ...(await f0.provider.requestsOf(PRODUCT_USER))];
    expect(
      writes.filter(({ verb, name }) => !['get', 'list', 'watch'].includes(verb) && name.startsWith('load-')),
    ).toEqual([]);
  });
});
