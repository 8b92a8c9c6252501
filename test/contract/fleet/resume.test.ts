import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openFleetAdmin, resumeCluster } from '../../../lib/app/fleet-admin.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { FleetAdmin } from '../../../lib/fleet/dynamodb/admin.ts';
import { recordQueues } from '../../support/queue/recorded.ts';
import { startFleetTable, type TestTable } from '../../support/aws/table.ts';

let started: TestTable;
beforeAll(async () => {
  started = await startFleetTable();
});
afterAll(() => started.stop());

const NOW = 1_800_000_000_000;
const clock = { now: () => NOW, monotonic: () => NOW };
const reach = { type: 'secret', arn: 'arn:aws:secretsmanager:r:1:secret:s' } as const;

it('resuming a cluster sweeps it eight seconds later, and leaves it owed in case that is lost', async () => {
  const admin = new FleetAdmin(started.table, clock);
  await admin.add({ name: 'shop', uid: 'uid-1', reach });
  await admin.pause('shop');
  const queues = recordQueues();
  expect(await resumeCluster('shop', { admin, queues, clock })).toBe(true);
  expect(queues.sent.map(({ queue, message }) => [queue, message.delaySeconds])).toEqual([['work', 8]]);
  expect(queues.bodies('work')).toMatchObject([{ type: 'sweep', cluster: 'uid-1', retry: true, id: `resume/${NOW}` }]);
  expect(await admin.byName('shop')).toMatchObject({ paused: false, activity: { sweepOwedSince: NOW } });
  expect(await resumeCluster('shop', { admin, queues, clock })).toBe(false);
  expect(queues.sent).toHaveLength(1);
});

it('an operator opens the table by its name', async () => {
  const config = { region: 'eu-central-1', endpoints: { dynamodb: started.endpoint } };
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  const opened = openFleetAdmin(config, started.name, systemClock);
  expect((await opened.admin.list()).map(({ name }) => name)).toEqual(['shop']);
  opened.close();
  vi.unstubAllEnvs();
});
