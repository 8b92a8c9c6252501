import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { compose, type App } from '../../../lib/app/compose.ts';
import type { Config } from '../../../lib/app/config.ts';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { FleetAdmin } from '../../../lib/fleet/dynamodb/admin.ts';
import { FLEET_LEASE } from '../../../lib/fleet/lease.ts';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { installProductCrds } from '../../../lib/local/demo/clusters.ts';
import { resources } from '../../../lib/model/api.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { OWN, startAwsStub, type AwsStub } from '../../support/aws/stub.ts';
import { startFleetTable, type TestTable } from '../../support/aws/table.ts';
import { requestRecord, sqsEvent, withTime } from '../../support/queue/events.ts';
import { recordCounters, recordLog, recordQueues } from '../../support/queue/recorded.ts';

/** The application with its fleet in a table and its kubeconfig in Secrets Manager, on an API server. */

const SECRET = 'arn:aws:secretsmanager:eu-central-1:1:secret:kbind/test/kubeconfig/shop-a1b2c3';
const egress = { allowLoopback: true };
let ms = Date.now();
const clock = { now: () => ms, monotonic: () => ms };
let aws: AwsStub;
let table: TestTable;
let cluster: EmbeddedCluster;
let client: OpenKubeClient;
let uid: string;
let app: App;
let admin: FleetAdmin;
let parts: ReturnType<typeof recorded>;

const recorded = () => ({ queues: recordQueues(), log: recordLog(), metrics: recordCounters() });

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', OWN.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', OWN.secretAccessKey);
  vi.stubEnv('AWS_SESSION_TOKEN', undefined);
  [aws, table, cluster] = await Promise.all([startAwsStub(clock.now), startFleetTable(), startEmbeddedCluster()]);
  client = createKubeClient(parseForeignKubeconfig(cluster.kubeconfig, egress), { clock, egress });
  await installProductCrds(client);
  uid = await readClusterIdentity(client);
  admin = new FleetAdmin(table.table, clock);
  const first = await userOf('first');
  aws.secrets.set(SECRET, first);
  await admin.add({ name: 'shop', uid, reach: { type: 'secret', arn: SECRET }, cell: 'test' });
});
afterAll(async () => {
  await client.close();
  await Promise.all([aws.stop(), table.stop(), cluster.stop()]);
  vi.unstubAllEnvs();
});
beforeEach(() => {
  parts = recorded();
  app = compose(config, { ...parts, clock });
});
afterEach(() => app.close());

const userOf = async (name: string): Promise<string> =>
  (await cluster.addUser({ name, auth: 'token', groups: ['system:masters'] })).kubeconfig;

const config: Config = {
  queueUrls: { control: 'c', instances: 'i', work: 'w', deadLetters: 'd', workDead: 'x' },
  get fleet() {
    return { table: table.name };
  },
  allowLoopback: true,
  region: 'eu-central-1',
  sqsEndpoint: undefined,
  get endpoints() {
    return { dynamodb: table.endpoint, secretsManager: aws.endpoint, sts: aws.endpoint, eks: aws.endpoint };
  },
  installation: 'kbind',
  stage: 'test',
  logLevel: 'SILENT',
  metrics: 'none',
  perCluster: 10,
};

async function reconcile(name: string): Promise<void> {
  const event = sqsEvent(requestRecord(reconcileRequest(uid, 'connection', { name }), { sentAt: ms }));
  expect(await app.handlers.control(event, withTime(30_000))).toEqual({ batchItemFailures: [] });
}

describe('a cell whose fleet is a table', () => {
  it('finds the cluster, reads its kubeconfig, takes its Lease, and works', async () => {
    await reconcile('a');
    expect(parts.metrics.of('Done')).toBe(1);
    expect(await client.get(resources.leases, FLEET_LEASE)).toMatchObject({ spec: { holderIdentity: 'kbind/test' } });
  });

  it('uses a new credential as soon as the old one is refused', async () => {
    await reconcile('a');
    aws.secrets.set(SECRET, await userOf('second'));
    cluster.removeUser('first');
    ms += 6_000;
    await reconcile('b');
    expect(parts.queues.bodies('work')).toMatchObject([{ type: 'due', request: { name: 'b', attempt: 1 } }]);
    await reconcile('b');
    expect(parts.metrics.of('Done')).toBe(2);
  });

  it('drops and counts what comes for a paused cluster, ticks past it, and sweeps it after it is resumed', async () => {
    await admin.pause('shop');
    await reconcile('a');
    expect(parts.metrics.of('Dropped')).toBe(1);
    await app.handlers.tick({});
    expect(parts.queues.sent).toEqual([]);
    await admin.resume('shop');
    await app.handlers.tick({});
    const sweeps = parts.queues.sent.filter(({ message }) => message.body.includes('"resume/'));
    expect(sweeps.map(({ message }) => message.delaySeconds)).toEqual([8]);
    parts.queues.sent.length = 0;
    await app.handlers.tick({});
    expect(parts.queues.sent.filter(({ message }) => message.body.includes('"resume/'))).toEqual([]);
  });

  it('shows the last heartbeat and the last sweep of a cluster, and tells of one that went silent', async () => {
    ms += 6_000;
    const beat = { v: 1, type: 'heartbeat', cluster: uid, at: ms, watches: 4 } as const;
    await app.handlers.control(sqsEvent(requestRecord(beat)), withTime(30_000));
    const sweep = { v: 1, type: 'sweep', cluster: uid, id: 's', retry: false } as const;
    await app.handlers.work(sqsEvent(requestRecord(sweep, { sentAt: ms })), withTime(60_000));
    const { activity } = await admin.byName('shop');
    expect(activity).toMatchObject({ heardAt: ms, heartbeat: { watches: 4 }, sweptAt: ms });
    await app.handlers.tick({});
    expect(parts.metrics.of('ForwarderSilent')).toBe(0);
    ms += 180_001;
    await app.handlers.tick({});
    expect(parts.metrics.of('ForwarderSilent')).toBe(1);
  });

  it('dead-letters the messages of an unknown cluster, and counts those of a removed one', async () => {
    const unknown = sqsEvent(requestRecord(reconcileRequest('nobody', 'connection', { name: 'a' })));
    await app.handlers.control(unknown, withTime(30_000));
    expect(parts.queues.bodies('deadLetters')).toMatchObject([{ error: { message: 'unknown cluster nobody' } }]);
    await admin.remove('shop');
    ms += 6_000;
    await reconcile('a');
    expect(parts.metrics.of('Dropped')).toBe(1);
    expect(parts.queues.bodies('deadLetters')).toHaveLength(1);
  });
});
