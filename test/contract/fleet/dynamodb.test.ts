import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FleetAdmin, type NewCluster } from '../../../lib/fleet/dynamodb/admin.ts';
import { DynamoRegistry } from '../../../lib/fleet/dynamodb/registry.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { FleetTable } from '../../../lib/fleet/dynamodb/table.ts';
import { startFleetTable, type TestTable } from '../../support/aws/table.ts';

/** What only the table has: claims, cells, an operator's writes, and errors of a service. */

let started: TestTable;
let admin: FleetAdmin;
let ms = 1_800_000_000_000;
let reads = 0;
let resolved: 'works' | 'fails' = 'works';
const clock = { now: () => ms, monotonic: () => ms };
const arn = 'arn:aws:secretsmanager:eu-central-1:1:secret:kubeconfig';
let run = 0;

beforeAll(async () => {
  started = await startFleetTable();
  started.client.middlewareStack.add(
    (next, context) => (args) => {
      if (context.commandName === 'GetItemCommand') reads += 1;
      return next(args);
    },
    { step: 'initialize' },
  );
});
afterAll(() => started.stop());
beforeEach(() => {
  run += 1;
  admin = new FleetAdmin(started.table, clock);
  resolved = 'works';
});

const cluster = (change: Partial<NewCluster> = {}): NewCluster => ({
  name: `one-${run}`,
  uid: `uid-${run}`,
  reach: { type: 'secret', arn },
  cell: `cell-${run}`,
  ...change,
});
const registryOf = (cell = `cell-${run}`, table = started.table): DynamoRegistry =>
  new DynamoRegistry({
    table,
    clock,
    cell,
    resolver: {
      resolve: () =>
        resolved === 'works'
          ? Promise.resolve({ server: 'https://somewhere' })
          : Promise.reject(new KbindError('credential', 'kubeconfig: users[0].user.exec is not allowed')),
      ingestKeys: () => Promise.resolve([]),
      forget: () => undefined,
    },
  });

describe('adding a cluster', () => {
  it('claims its UID once, whatever the second calls it, and gives the second name back', async () => {
    await admin.add(cluster());
    const again = admin.add(cluster({ name: `two-${run}` }));
    await expect(again).rejects.toMatchObject({
      errorClass: 'conflict',
      message: expect.stringContaining(`one-${run}`),
    });
    await admin.add(cluster({ name: `two-${run}`, uid: `other-${run}` }));
    expect(await admin.byName(`two-${run}`)).toMatchObject({ uid: `other-${run}` });
  });

  it('claims its name once', async () => {
    await admin.add(cluster());
    const again = admin.add(cluster({ uid: `other-${run}` }));
    await expect(again).rejects.toMatchObject({
      errorClass: 'conflict',
      message: expect.stringContaining(`uid-${run}`),
    });
    expect(await registryOf().lookup(`other-${run}`)).toEqual({ found: 'unknown' });
  });

  it('of twenty at once, exactly one has the UID', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `racer-${run}-${n}`);
    const results = await Promise.allSettled(names.map((name) => admin.add(cluster({ name }))));
    const won = names.filter((_, n) => results[n]?.status === 'fulfilled');
    expect(won).toHaveLength(1);
    expect(await registryOf().lookup(`uid-${run}`)).toMatchObject({ cluster: { name: won[0] } });
  });

  it('takes over a name whose claim was left behind by somebody who died', async () => {
    await started.table.put(
      { id: { S: `name/one-${run}` }, uid: { S: 'never-added' } },
      { condition: 'attribute_not_exists(id)' },
    );
    await admin.add(cluster());
    expect(await admin.byName(`one-${run}`)).toMatchObject({ uid: `uid-${run}` });
  });

  it('keeps labels, cell and how to reach it', async () => {
    const reach = {
      type: 'eks',
      cluster: 'shop',
      region: 'eu-west-1',
      roleArn: 'arn:aws:iam::2:role/kbind-access-shop',
      externalId: 'x-1',
    } as const;
    await admin.add(cluster({ reach, labels: { team: 'shop' } }));
    expect(await admin.byName(`one-${run}`)).toMatchObject({ reach, labels: { team: 'shop' }, cell: `cell-${run}` });
  });

  it.each([
    ['a name that is none', { name: 'Not A Name' }],
    ['a role that is none', { reach: { type: 'eks', cluster: 'a', region: 'eu-west-1', roleArn: 'admin' } as const }],
    ['an ARN of something else', { reach: { type: 'secret', arn: 'arn:aws:s3:::bucket' } as const }],
  ])('refuses %s', async (_title, change) => {
    await expect(admin.add(cluster(change))).rejects.toMatchObject({ errorClass: 'misconfigured' });
  });
});

describe('the registry', () => {
  it('reads an entry once in five seconds, and an unknown one each time', async () => {
    await admin.add(cluster());
    const registry = registryOf();
    reads = 0;
    await Promise.all([1, 2, 3].map(() => registry.lookup(`uid-${run}`)));
    ms += 4_999;
    await registry.lookup(`uid-${run}`);
    expect(reads).toBe(1);
    ms += 1;
    await registry.lookup(`uid-${run}`);
    expect(reads).toBe(2);
    await registry.lookup('nobody');
    await registry.lookup('nobody');
    expect(reads).toBe(4);
  });

  it('reads it again at once when the cluster is distrusted', async () => {
    await admin.add(cluster());
    const registry = registryOf();
    await registry.lookup(`uid-${run}`);
    reads = 0;
    registry.distrust(`uid-${run}`);
    await registry.lookup(`uid-${run}`);
    expect(reads).toBe(1);
  });

  it('takes clusters of another cell for none of its own: listed nowhere, late messages dropped', async () => {
    await admin.add(cluster());
    const other = registryOf('another');
    expect((await other.list()).clusters.filter(({ uid }) => uid === `uid-${run}`)).toEqual([]);
    expect(await other.lookup(`uid-${run}`)).toEqual({ found: 'removed' });
    expect((await registryOf().list()).clusters).toHaveLength(1);
  });

  it('is unresolved while the credentials cannot be used, and takes heartbeats all the same', async () => {
    await admin.add(cluster());
    resolved = 'fails';
    const registry = registryOf();
    expect(await registry.lookup(`uid-${run}`)).toEqual({
      found: 'unresolved',
      reason: `one-${run}: kubeconfig: users[0].user.exec is not allowed`,
    });
    expect(await registry.heartbeat(`uid-${run}`, { at: 1, watches: 1 })).toBe('recorded');
  });

  it('names an entry that somebody damaged, and lists the others', async () => {
    await admin.add(cluster());
    await admin.add(cluster({ name: `bad-${run}`, uid: `bad-${run}` }));
    const values = { ':bad': { S: '{"type":"ftp"}' } };
    await started.table.update(`cluster/bad-${run}`, 'SET reach = :bad', { condition: 'attribute_exists(id)', values });
    const { clusters, unresolved } = await registryOf().list();
    expect(clusters.map(({ uid }) => uid)).toEqual([`uid-${run}`]);
    expect(unresolved).toEqual([{ name: `bad-${run}`, reason: expect.stringContaining('type') }]);
    expect(await registryOf().lookup(`bad-${run}`)).toMatchObject({ found: 'unresolved' });
  });

  it('lists hundreds over several pages', async () => {
    const labels = { padding: 'x'.repeat(4_000) };
    const many = Array.from({ length: 300 }, (_, n) =>
      cluster({ name: `m-${run}-${n}`, uid: `m-${run}-${n}`, labels }),
    );
    for (const one of many) await admin.add(one);
    expect((await registryOf().list()).clusters).toHaveLength(300);
  });

  it('says which table does not answer, and never the service’s text', async () => {
    const missing = registryOf('cell', new FleetTable(started.client, 'no-such-table'));
    await expect(missing.lookup('uid')).rejects.toMatchObject({
      errorClass: 'misconfigured',
      message: 'fleet table no-such-table: ResourceNotFoundException',
    });
  });
});

describe('pausing', () => {
  it('a cluster that is not paused owes nothing when it is resumed', async () => {
    await admin.add(cluster());
    expect(await admin.resume(`one-${run}`)).toBeUndefined();
  });

  it('an unknown name is absent', async () => {
    await expect(admin.pause('nobody')).rejects.toMatchObject({ errorClass: 'absent' });
  });
});
