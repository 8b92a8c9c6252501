import type { SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { compose } from '../../../lib/app/compose.ts';
import { readConfig } from '../../../lib/app/config.ts';
import type { Item } from '../../../lib/fleet/dynamodb/item.ts';
import { createSqsQueues } from '../../../lib/queue/sqs.ts';
import { startFleetTable, type TestTable } from '../../support/aws/table.ts';
import { atMost } from '../../support/bench/at-most.ts';
import { registerClusters, simulateFleet } from '../../support/bench/fleet.ts';
import { recordCounters, recordLog } from '../../support/queue/recorded.ts';

/** A cell of 200 clusters in a table. `npm run bench -- fleet --n 200` lets all of them live; here some of them do. */

const CLUSTERS = 200;
const HALF_MINUTE = 30;
const url = 'https://sqs.test/queue';

let table: TestTable;
let items: Item[];

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'x');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'x');
  table = await startFleetTable();
  await registerClusters(table.table, CLUSTERS);
  items = (await table.table.scan()).toSorted((a, b) => ((a['id']?.S ?? '') < (b['id']?.S ?? '') ? -1 : 1));
});
afterAll(async () => {
  await table.stop();
  vi.unstubAllEnvs();
});

interface Sent {
  readonly MessageBody: string;
  readonly DelaySeconds?: number;
}

/** Ticks of a cell on that table, batch by batch as SQS gets them. */
async function tick(minute: number): Promise<Sent[][]> {
  const batches: Sent[][] = [];
  const sqs = {
    send: ({ input }: { input: { Entries: (Sent & { Id: string })[] } }) => {
      batches.push(input.Entries);
      return Promise.resolve({ Successful: input.Entries.map(({ Id }) => ({ Id })), Failed: [] });
    },
  } as unknown as SQSClient;
  const config = readConfig({
    CONTROL_QUEUE_URL: url,
    INSTANCES_QUEUE_URL: url,
    WORK_QUEUE_URL: url,
    DEAD_LETTERS_QUEUE_URL: url,
    WORK_DEAD_QUEUE_URL: url,
    FLEET_TABLE: table.name,
    AWS_REGION: 'eu-central-1',
    INSTALLATION: 'kbind',
    STAGE: 'test',
    LOG_LEVEL: 'SILENT',
    METRICS: 'none',
  });
  const queues = createSqsQueues(sqs, config.queueUrls);
  const overrides = { queues, log: recordLog(), metrics: recordCounters() };
  const app = compose({ ...config, endpoints: { dynamodb: table.endpoint } }, overrides);
  await app.handlers.tick({ time: new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString() });
  await app.close();
  return batches;
}

const isSweep = ({ MessageBody }: Sent): boolean => MessageBody.includes('"type":"sweep"');

describe('the ticks of 200 clusters', () => {
  let minutes: Sent[][][];
  beforeAll(async () => {
    minutes = [];
    for (let minute = 0; minute < 10; minute += 1) minutes.push(await tick(minute));
  });

  it('are two refreshes a cluster and a tenth of the sweeps, in full batches', () => {
    for (const batches of minutes) {
      const sent = batches.flat();
      expect(sent.filter((one) => !isSweep(one))).toHaveLength(2 * CLUSTERS);
      expect(batches).toHaveLength(Math.ceil(sent.length / 10));
    }
  });

  it('come evenly over each half minute', () => {
    const sent = minutes[0]?.flat().filter((one) => !isSweep(one)) ?? [];
    for (const half of [0, 1]) {
      const seconds = Array.from({ length: HALF_MINUTE }, () => 0);
      for (const { DelaySeconds = 0 } of sent) {
        const second = DelaySeconds - half * HALF_MINUTE;
        if (second in seconds) seconds[second] = (seconds[second] ?? 0) + 1;
      }
      expect(seconds.reduce((sum, each) => sum + each)).toBe(CLUSTERS);
      // 6.7 on the average: hashes that are even have none above 17 in a fleet of this size (99.99 %), and no second is left out.
      expect(Math.max(...seconds)).toBeLessThanOrEqual(17);
      expect(Math.min(...seconds)).toBeGreaterThanOrEqual(1);
    }
  });

  it('ask each cluster for one sweep in ten minutes, about as many in each', () => {
    const sweeps = minutes.map((batches) => batches.flat().filter(isSweep));
    const swept = new Set(
      sweeps.flat().map(({ MessageBody }) => (JSON.parse(MessageBody) as { cluster: string }).cluster),
    );
    expect([swept.size, sweeps.flat().length]).toEqual([CLUSTERS, CLUSTERS]);
    expect(Math.max(...sweeps.map(({ length }) => length))).toBeLessThanOrEqual(CLUSTERS / 5);
  });
});

describe('a cell of the first ten of them, one with traffic', () => {
  it('costs an idle cluster no more than docs/fleet.md says', async () => {
    const own = items.slice(0, 10);
    const cost = await simulateFleet({ items: own, busy: 1, minutes: 10 });
    expect(cost.deadLetters).toBe(0);
    atMost(1_800, cost.idle.requests, cost);
    atMost(126, cost.idle.invocations, cost);
    atMost(126, cost.idle.messages, cost);
    expect(cost.idle.heartbeats).toBe(60);
    expect(cost.busy.messages).toBeGreaterThan(cost.idle.messages);
    expect(cost.refreshesBySecond.reduce((sum, each) => sum + each)).toBe(own.length);
  }, 60_000);
});
