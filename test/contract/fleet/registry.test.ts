import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DirectoryRegistry } from '../../../lib/fleet/directory.ts';
import { FleetAdmin } from '../../../lib/fleet/dynamodb/admin.ts';
import { DynamoRegistry } from '../../../lib/fleet/dynamodb/registry.ts';
import type { IngestKeyring } from '../../../lib/fleet/ingest-keys.ts';
import { isSilent, SILENT_AFTER_MS, type FleetMember, type FleetRegistry } from '../../../lib/fleet/registry.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { startFleetTable } from '../../support/aws/table.ts';

/** The fleet's registry, as a directory and as a table: whoever asks cannot tell. */

const KEY = 'k'.repeat(40);

interface Driver {
  readonly registry: FleetRegistry & IngestKeyring;
  add(name: string, uid: string): Promise<void>;
  remove(name: string): Promise<void>;
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  giveKey(name: string): Promise<void>;
  pass(ms: number): void;
  now(): number;
  stop(): Promise<void>;
}

const START = 1_800_000_000_000;

function testClock() {
  let ms = START;
  return { clock: { now: () => ms, monotonic: () => ms }, pass: (by: number) => void (ms += by) };
}

const kubeconfig = (server: string): string =>
  JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  });

async function directory(): Promise<Driver> {
  const dir = await mkdtemp(join(tmpdir(), 'fleet-'));
  const { clock, pass } = testClock();
  const uids = new Map<string, string>();
  const connect = ({ server }: ConnectionTarget): KubeClient & { close(): Promise<void> } =>
    ({
      getPath: () => Promise.resolve({ kind: 'APIGroupList', groups: [] }),
      get: () => Promise.resolve({ metadata: { uid: uids.get(new URL(server).hostname) } }),
      close: () => Promise.resolve(),
    }) as unknown as KubeClient & { close(): Promise<void> };
  const file = (name: string, suffix: string): string => join(dir, `${name}.${suffix}`);
  return {
    registry: new DirectoryRegistry({ dir, allowLoopback: true, clock, connect }),
    async add(name, uid) {
      uids.set(name, uid);
      await writeFile(file(name, 'kubeconfig'), kubeconfig(`https://${name}`));
    },
    remove: (name) => rm(file(name, 'kubeconfig')),
    pause: (name) => writeFile(file(name, 'paused'), ''),
    resume: (name) => rm(file(name, 'paused')),
    giveKey: (name) => writeFile(file(name, 'hmac'), `${KEY}\n`),
    pass,
    now: () => clock.now(),
    stop: () => rm(dir, { recursive: true, force: true }),
  };
}

async function table(): Promise<Driver> {
  const { clock, pass } = testClock();
  const started = await startFleetTable();
  const admin = new FleetAdmin(started.table, clock);
  const reachOf = (name: string) => ({ type: 'secret', arn: `arn:aws:secretsmanager:r:1:secret:${name}` }) as const;
  const registry = new DynamoRegistry({
    table: started.table,
    resolver: {
      resolve: () => Promise.resolve({ server: 'https://somewhere' }),
      ingestKeys: () => Promise.resolve([Buffer.from(KEY)]),
      forget: () => undefined,
    },
    clock,
    cell: 'test',
  });
  return {
    registry,
    add: (name, uid) => admin.add({ name, uid, reach: reachOf(name), cell: 'test' }),
    remove: (name) => admin.remove(name),
    pause: (name) => admin.pause(name),
    resume: async (name) => void (await admin.resume(name)),
    async giveKey(name) {
      const { uid } = await admin.byName(name);
      const values = { ':arn': { S: 'arn:aws:secretsmanager:r:1:secret:key' } };
      await started.table.update(`cluster/${uid}`, 'SET ingestKeyArn = :arn', {
        condition: 'attribute_exists(id)',
        values,
      });
    },
    pass,
    now: () => clock.now(),
    stop: () => started.stop(),
  };
}

describe.each([
  ['a directory', directory],
  ['a DynamoDB table', table],
])('%s as the fleet registry', (_title, start) => {
  let fleet: Driver;
  beforeEach(async () => {
    fleet = await start();
  });
  afterEach(() => fleet.stop());

  const member = async (name: string): Promise<FleetMember | undefined> =>
    (await fleet.registry.list()).clusters.find((one) => one.name === name);
  /** Longer than anything is believed. */
  const forget = (): void => fleet.pass(5_001);

  it('lists its clusters by name, and finds each by its UID', async () => {
    await fleet.add('two', 'uid-2');
    await fleet.add('one', 'uid-1');
    const { clusters, unresolved } = await fleet.registry.list();
    expect(clusters.map(({ name, uid, paused }) => [name, uid, paused])).toEqual([
      ['one', 'uid-1', false],
      ['two', 'uid-2', false],
    ]);
    expect(unresolved).toEqual([]);
    expect(await fleet.registry.lookup('uid-2')).toMatchObject({ found: 'cluster', cluster: { name: 'two' } });
  });

  it('calls a UID unknown, and knows it the moment it is added', async () => {
    expect(await fleet.registry.lookup('uid-1')).toEqual({ found: 'unknown' });
    await fleet.add('one', 'uid-1');
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ found: 'cluster' });
  });

  it('keeps a tombstone of a removed cluster, which can come back', async () => {
    await fleet.add('one', 'uid-1');
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ found: 'cluster' });
    await fleet.remove('one');
    forget();
    expect(await fleet.registry.lookup('uid-1')).toEqual({ found: 'removed' });
    expect(await fleet.registry.heartbeat('uid-1', { at: 1, watches: 1 })).toBe('removed');
    expect(await fleet.registry.keysOf('uid-1')).toEqual({ found: 'removed' });
    expect((await fleet.registry.list()).clusters).toEqual([]);
    await fleet.add('back', 'uid-1');
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ found: 'cluster', cluster: { name: 'back' } });
  });

  it('says within five seconds that a cluster is paused', async () => {
    await fleet.add('one', 'uid-1');
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ cluster: { paused: false } });
    await fleet.pause('one');
    fleet.pass(5_000);
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ found: 'cluster', cluster: { paused: true } });
  });

  it('owes a resumed cluster a sweep, until one was asked for; a later resume owes another', async () => {
    await fleet.add('one', 'uid-1');
    await fleet.pause('one');
    expect(await member('one')).toMatchObject({ paused: true });
    await fleet.resume('one');
    forget();
    const owed = (await member('one'))?.activity?.sweepOwedSince ?? 0;
    expect(owed).toBeGreaterThanOrEqual(START);
    expect(owed).toBeLessThanOrEqual(fleet.now());
    await fleet.registry.sweepAsked('uid-1', owed - 1);
    expect((await member('one'))?.activity?.sweepOwedSince).toBe(owed);
    await fleet.registry.sweepAsked('uid-1', owed);
    expect((await member('one'))?.activity?.sweepOwedSince).toBeUndefined();
  });

  it('keeps the last heartbeat, also of a paused cluster, and none of an unknown one', async () => {
    await fleet.add('one', 'uid-1');
    expect(await fleet.registry.heartbeat('uid-1', { at: 5, watches: 2 })).toBe('recorded');
    expect((await member('one'))?.activity).toMatchObject({ heartbeat: { at: 5, watches: 2 }, heardAt: fleet.now() });
    await fleet.pause('one');
    forget();
    expect(await fleet.registry.heartbeat('uid-1', { at: 6, watches: 3 })).toBe('recorded');
    expect(await fleet.registry.heartbeat('uid-9', { at: 5, watches: 2 })).toBe('unknown');
  });

  it('shows a forwarder that was silent for three minutes, by our clock and not by its own', async () => {
    await fleet.add('one', 'uid-1');
    await fleet.registry.lookup('uid-1');
    const silent = async (): Promise<boolean> => {
      const found = await member('one');
      return found !== undefined && isSilent(found, fleet.now());
    };
    fleet.pass(SILENT_AFTER_MS + 1);
    expect(await silent()).toBe(true);
    await fleet.registry.heartbeat('uid-1', { at: 0, watches: 2 });
    expect(await silent()).toBe(false);
    fleet.pass(SILENT_AFTER_MS + 1);
    expect(await silent()).toBe(true);
    await fleet.pause('one');
    forget();
    expect(await silent()).toBe(false);
  });

  it('remembers the last sweep, and who else holds a cluster', async () => {
    await fleet.add('one', 'uid-1');
    await fleet.registry.lookup('uid-1');
    await fleet.registry.swept('uid-1', 77);
    await fleet.registry.held('uid-1', 'other/prod');
    expect((await member('one'))?.activity).toMatchObject({ sweptAt: 77, heldBy: 'other/prod' });
    expect(await fleet.registry.lookup('uid-1')).toMatchObject({ cluster: { activity: { heldBy: 'other/prod' } } });
    await fleet.registry.held('uid-1', undefined);
    expect((await member('one'))?.activity?.heldBy).toBeUndefined();
  });

  it('has the key of a cluster that signs what it sends', async () => {
    await fleet.add('one', 'uid-1');
    expect(await fleet.registry.keysOf('uid-1')).toEqual({ found: 'none' });
    await fleet.giveKey('one');
    forget();
    expect(await fleet.registry.keysOf('uid-1')).toMatchObject({ found: 'keys', keys: [Buffer.from(KEY)] });
    expect(await fleet.registry.keysOf('uid-9')).toEqual({ found: 'unknown' });
  });
});
