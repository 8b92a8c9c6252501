import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { compose, type App, type Overrides } from '../../../lib/app/compose.ts';
import type { Config } from '../../../lib/app/config.ts';
import { FLEET_LEASE } from '../../../lib/fleet/lease.ts';
import { createKubeClient } from '../../../lib/kube/client.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { interceptClient, type Call } from '../../../lib/reconcile/intercept-client.ts';
import { parse, parseAllDocuments } from 'yaml';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { startServer, until, type TestServer } from '../../support/apiserver/servers.ts';
import { requestRecord, sqsEvent, withTime } from '../../support/queue/events.ts';
import { recordCounters, recordLog, recordQueues } from '../../support/queue/recorded.ts';

/** The composed application on a consumer and a provider: embedded ones, and real ones where the machine has them. */

describe.each(clusterKinds())('a cell on $name', (kind) => {
  let consumer: TestServer;
  let provider: TestServer;
  let client: KubeClient & { close(): Promise<void> };
  let uid: string;
  let dir: string;

  const egress = { allowLoopback: true };
  const clientOf = (kubeconfig: string): KubeClient & { close(): Promise<void> } =>
    createKubeClient(parseForeignKubeconfig(kubeconfig, egress), { clock: systemClock, egress });

  beforeAll(async () => {
    [consumer, provider] = await Promise.all([startServer(kind), startServer(kind)]);
    client = clientOf(consumer.kubeconfig);
    for (const name of ['default', 'kube-system']) {
      await until(async () => (await client.find(resources.namespaces, { name })) !== undefined);
    }
    uid = await readClusterIdentity(client);
    for (const kind of ['connections', 'clusterbindings', 'bindings']) {
      const text = await readFile(join('infra/crds', `core.kbind.io_${kind}.yaml`), 'utf8').catch(() => '');
      for (const document of parseAllDocuments(text)) await client.create(resources.crds, parse(document.toString()));
    }
    await until(async () => (await client.list(resources.connections).catch(() => undefined)) !== undefined);
    dir = await mkdtemp(join(tmpdir(), 'fleet-'));
    await writeFile(join(dir, 'demo.kubeconfig'), consumer.kubeconfig);
  });

  afterAll(async () => {
    await client.close();
    await Promise.all([consumer.stop(), provider.stop()]);
    await rm(dir, { recursive: true, force: true });
  });

  const config = (installation: string): Config => ({
    queueUrls: { control: 'c', instances: 'i', work: 'w', deadLetters: 'd', workDead: 'x' },
    fleet: { dir },
    allowLoopback: true,
    region: 'eu-central-1',
    sqsEndpoint: undefined,
    endpoints: {},
    installation,
    stage: 'test',
    logLevel: 'SILENT',
    metrics: 'none',
    perCluster: 10,
  });

  let apps: App[] = [];
  beforeEach(() => {
    apps = [];
  });
  afterEach(async () => {
    await Promise.all(apps.map((app) => app.close()));
  });

  function start(installation = 'kbind', overrides: Overrides = {}) {
    const queues = recordQueues();
    const log = recordLog();
    const app = compose(config(installation), { queues, log, metrics: recordCounters(), ...overrides });
    apps.push(app);
    return { app, queues, log };
  }

  const connectionEvent = (name: string) => sqsEvent(requestRecord(reconcileRequest(uid, 'connection', { name })));
  const secret = () => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'provider', namespace: 'default' },
    data: { kubeconfig: Buffer.from(provider.kubeconfig).toString('base64') },
  });
  const connection = (name: string) => ({
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'Connection',
    metadata: { name },
    spec: { kubeconfigSecretRef: { namespace: 'default', name: 'provider' } },
  });

  describe('an event that comes in through the queue', () => {
    it('is reconciled in the cluster that it names', async () => {
      const { app, log } = start();
      await client.create(resources.secrets, secret());
      await client.create(resources.connections, connection('demo'));
      for (let n = 0; n < 2; n += 1) {
        expect(await app.handlers.control(connectionEvent('demo'), withTime(30_000))).toEqual({
          batchItemFailures: [],
        });
      }
      const { status } = await client.get(resources.connections, { name: 'demo' });
      expect(status).toMatchObject({ localClusterUID: uid });
      expect(log.lines.filter(({ message }) => message === 'work settled').length).toBe(2);
    });

    it('of a key that is gone is settled without a write', async () => {
      const calls: Call[] = [];
      const wrapClient: Overrides['wrapClient'] = (inner) =>
        interceptClient(inner, (call, send) => {
          calls.push(call);
          return send();
        });
      const { app } = start('kbind', { wrapClient });
      await app.handlers.control(connectionEvent('none'), withTime(30_000));
      expect(calls.some(({ kind }) => kind === 'read')).toBe(true);
      expect(calls.filter(({ kind }) => kind === 'write')).toEqual([]);
    });

    it('of an unknown cluster is a dead letter', async () => {
      const { app, queues } = start();
      const event = sqsEvent(requestRecord(reconcileRequest('another-cluster', 'connection', { name: 'demo' })));
      expect(await app.handlers.control(event, withTime(30_000))).toEqual({ batchItemFailures: [] });
      expect(queues.bodies('deadLetters')).toMatchObject([{ error: { message: 'unknown cluster another-cluster' } }]);
    });
  });

  describe('the installation’s Lease', () => {
    it('names who holds the cluster, and keeps another installation out', async () => {
      const { app } = start('kbind');
      await app.handlers.control(connectionEvent('none'), withTime(30_000));
      const lease = await client.get(resources.leases, FLEET_LEASE);
      expect(lease).toMatchObject({ spec: { holderIdentity: 'kbind/test' } });

      const other = start('other');
      await other.app.handlers.control(connectionEvent('demo'), withTime(30_000));
      expect(other.log.lines.at(-1)?.fields).toMatchObject({
        errorClass: 'held',
        errorMessage: expect.stringContaining('belongs to installation kbind/test, not to other/test'),
      });
      expect(await client.get(resources.leases, FLEET_LEASE)).toEqual(lease);
      // A wait, not an attempt: and the registry is what says who holds the cluster.
      expect(other.queues.bodies('work')).toMatchObject([{ type: 'due', request: { attempt: 0, waited: 60 } }]);
      expect((await other.app.registry.list()).clusters[0]?.activity?.heldBy).toBe('kbind/test');
    });

    it('is taken when nobody holds it', async () => {
      const lease = await client.get(resources.leases, FLEET_LEASE);
      const { uid: leaseUid, resourceVersion } = lease.metadata;
      await client.delete(resources.leases, FLEET_LEASE, { uid: leaseUid, resourceVersion });
      const { app } = start('other');
      await app.handlers.control(connectionEvent('none'), withTime(30_000));
      expect(await client.get(resources.leases, FLEET_LEASE)).toMatchObject({ spec: { holderIdentity: 'other/test' } });
      const taken = await client.get(resources.leases, FLEET_LEASE);
      await client.delete(resources.leases, FLEET_LEASE, taken.metadata);
    });
  });

  describe('the tick', () => {
    it('asks for the cluster of the directory, and work runs what it asked for', async () => {
      const { app, queues } = start();
      await app.handlers.tick({});
      const requests = queues.bodies('work');
      expect(requests.length).toBeGreaterThanOrEqual(2);
      expect(requests[0]).toMatchObject({ type: 'refresh', cluster: uid });
      const event = sqsEvent(...queues.sent.map(({ message }) => requestRecord(JSON.parse(message.body))));
      expect(await app.handlers.work(event, withTime(60_000))).toEqual({ batchItemFailures: [] });
    });
  });
});
