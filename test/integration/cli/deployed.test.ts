import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { FLEET_LEASE } from '../../../lib/fleet/lease.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import type { SentObject } from '../../../lib/kube/types.ts';
import { installCrd, makeNamespace, startDemoCluster, type DemoCluster } from '../../../lib/local/demo/clusters.ts';
import { startForwarder, type LocalForwarder } from '../../../lib/local/forwarders.ts';
import { startLocalStack, type LocalStack } from '../../../lib/local/local-stack.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { silentLogger } from '../../../lib/model/log.ts';
import { until } from '../../support/apiserver/servers.ts';
import { OWN, startAwsStub, type AwsStub } from '../../support/aws/stub.ts';
import { startFleetTable, type TestTable } from '../../support/aws/table.ts';
import { widgets } from '../../support/cli/fleet.ts';
import { buildCli, kbindFleet, type Ran } from '../../support/cli/run.ts';
import { crdFor } from '../../support/e2e/f0.ts';

/**
 * `kbind-fleet --stage` as an operator of a deployed cell runs it: the fleet in DynamoDB, kubeconfigs in Secrets Manager, the
 * stack's own queue names, its functions and schedules; each of them emulated, none replaced.
 */

const STAGE = 'prod';
const REGION = 'eu-central-1';
const SECRET = `arn:aws:secretsmanager:${REGION}:1:secret:kbind/${STAGE}/kubeconfig/shop-a1b2c3`;
const blue = { namespace: 'default', name: 'blue' };

let aws: AwsStub;
let table: TestTable;
let stack: LocalStack;
let shop: DemoCluster;
let provider: DemoCluster;
let folder: string;
let uid: string;
let forwarder: LocalForwarder | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kbind-deployed-'));
  [aws, table, shop, provider] = await Promise.all([
    startAwsStub(),
    startFleetTable(`kbind-serverless-${STAGE}-fleet`),
    startDemoCluster('shop', folder),
    startDemoCluster('provider', folder),
    buildCli(),
  ]);
  uid = await readClusterIdentity(shop.client);
  aws.secrets.set(SECRET, shop.embedded.kubeconfig);
  stack = await startLocalStack({
    serverlessFile: 'serverless.yml',
    stage: STAGE,
    log: silentLogger,
    env: { ...emulators(), LOG_LEVEL: 'SILENT', METRICS: 'none' },
  });
  await installCrd(provider.client, crdFor(widgets) as unknown as SentObject);
}, 120_000);

afterAll(async () => {
  await forwarder?.stop();
  await stack.stop();
  await Promise.all([aws.stop(), table.stop(), shop.stop(), provider.stop()]);
  await rm(folder, { recursive: true, force: true });
});

const emulators = (): Record<string, string> => ({
  ALLOW_LOOPBACK: 'true',
  AWS_ACCESS_KEY_ID: OWN.accessKeyId,
  AWS_SECRET_ACCESS_KEY: OWN.secretAccessKey,
  AWS_ENDPOINT_URL_DYNAMODB: table.endpoint,
  AWS_ENDPOINT_URL_SECRETS_MANAGER: aws.endpoint,
  AWS_ENDPOINT_URL_STS: aws.endpoint,
  AWS_ENDPOINT_URL_EKS: aws.endpoint,
});

const cli = (...args: string[]): Promise<Ran> =>
  kbindFleet(['--stage', STAGE, '--region', REGION, ...args], {
    env: { ...emulators(), AWS_ENDPOINT_URL_SQS: stack.queues.endpoint },
  });
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { out, err } = await cli(...args, '-o', 'json');
  if (out === '') throw new Error(err);
  return JSON.parse(out) as Record<string, unknown>;
}
const add = ['clusters', 'add', 'shop', '--secret-arn', SECRET];

describe('kbind-fleet --stage', () => {
  it('refuses a cluster that lacks our CRDs, and says what installs them', async () => {
    const ran = await cli(...add);
    expect(ran).toMatchObject({ code: 4, out: '' });
    expect(ran.err).toContain('--install-crds installs them');
    expect((await json('clusters', 'list'))['clusters']).toEqual([]);
  });

  it('installs nothing where another installation works', async () => {
    const spec = { holderIdentity: 'other/prod' };
    const made = await shop.client.create(resources.leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: FLEET_LEASE,
      spec,
    });
    const ran = await cli(...add, '--install-crds');
    expect(ran.err).toContain('belongs to installation other');
    expect(ran.code).not.toBe(0);
    const crds = await shop.client.list(resources.crds);
    expect(crds.items).toEqual([]);
    await shop.client.delete(resources.leases, FLEET_LEASE, made.metadata);
  });

  it('adds a cluster of which the table keeps whereabouts and no credentials, and prints what installs its forwarder', async () => {
    const ran = await cli(...add, '--install-crds', '--label', 'team=shop', '--label', 'region=eu');
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.out).toContain(`--set stage=${STAGE} --set clusterUid=${uid} --set send.queues.region=${REGION}`);
    expect(ran.out).toContain(`kbind-serverless-${STAGE}-instances.fifo`);
    expect((await json('clusters', 'list'))['clusters']).toEqual([
      expect.objectContaining({ name: 'shop', uid, paused: false, labels: { team: 'shop', region: 'eu' } }),
    ]);
    const kept = JSON.stringify(await table.table.scan());
    expect(kept).toContain(SECRET);
    expect(kept).not.toMatch(/certificate|token|BEGIN/i);
    expect(aws.calls.every((call) => call === `GetSecretValue ${SECRET}`)).toBe(true);
  });

  it('refuses a name and a cluster that are taken, a kubeconfig, and an EKS cluster that is not there', async () => {
    expect(await cli(...add)).toMatchObject({ code: 4 });
    const kubeconfig = await cli('clusters', 'add', 'blog', '--kubeconfig', shop.kubeconfig);
    expect(kubeconfig).toMatchObject({ code: 2 });
    expect(kubeconfig.err).toContain('--secret-arn');
    const role = 'arn:aws:iam::123456789012:role/kbind-access-blog';
    aws.roles.set(role, { arn: role, externalId: 'kbind' });
    const eks = ['clusters', 'add', 'blog', '--eks', 'blog', '--eks-region', REGION, '--role-arn', role];
    expect((await cli(...eks)).err).toContain(`role ${role}`);
    expect((await cli(...eks, '--external-id', 'kbind')).err).toContain('EKS cluster blog');
    expect((await cli(...add, '--external-id', 'kbind')).err).toContain('go with --eks');
    expect((await json('clusters', 'list'))['clusters']).toHaveLength(1);
  });

  it('binds an API through the deployed functions, sees the fleet in sync, and its forwarder heard', async () => {
    forwarder = startForwarder(
      { name: 'shop', target: parseForeignKubeconfig(shop.embedded.kubeconfig, { allowLoopback: true }) },
      {
        sqs: stack.sqs,
        urls: {
          control: urlOf('ControlQueue'),
          instances: urlOf('InstancesQueue'),
          work: urlOf('WorkQueue'),
        },
        ingest: { url: undefined, fleetDir: folder },
        allowLoopback: true,
        clock: systemClock,
        log: silentLogger,
      },
    );
    await makeNamespace(shop.client, 'kbind');
    const from = ['--provider', provider.kubeconfig, '--api', 'widgets.example.org'];
    expect(await cli('bind', 'shop', ...from, '--yes')).toMatchObject({ code: 0 });
    await until(() => shop.client.find(resources.crds, { name: 'widgets.example.org' }));
    await until(() =>
      shop.client
        .create(widgets, {
          apiVersion: 'example.org/v1',
          kind: 'Widget',
          metadata: blue,
          spec: { size: 1 },
        })
        .catch(() => undefined),
    );
    await until(() => provider.client.find(widgets, blue));
    expect((await cli('reconcile', 'shop')).code).toBe(0);
    // Connections and bindings ready, forwarder, lag: how long ago the sweep was, which the table knows.
    const inSync = /shop +ok +1\/1 +1\/1 .* alive +\d+s/;
    await until(async () => inSync.test((await cli('status', 'shop')).out));
    const [listed] = (await json('clusters', 'list'))['clusters'] as { heardAt?: number }[];
    expect(listed?.heardAt).toBeGreaterThan(0);
    expect((await cli('clusters', 'check')).code).toBe(0);
    expect((await cli('explain', 'shop', 'widgets.example.org', 'default/blue')).code).toBe(0);
    expect((await cli('reconcile', 'shop', 'widgets.example.org', 'default/blue', '--wait')).code).toBe(0);
  });

  it('pauses and resumes: what came meanwhile is made up for by the sweep after it', async () => {
    const found = { namespace: 'default', name: 'while-paused' };
    expect((await cli('clusters', 'pause', 'shop')).code).toBe(0);
    expect((await json('clusters', 'list'))['clusters']).toEqual([expect.objectContaining({ paused: true })]);
    await shop.client.create(widgets, {
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      metadata: found,
      spec: { size: 1 },
    });
    expect(await cli('clusters', 'resume', 'shop')).toMatchObject({
      code: 0,
      out: 'shop resumed.\n',
      err: 'It is swept in 8 s.\n',
    });
    await until(() => provider.client.find(widgets, found));
    expect((await cli('dlq', 'list')).code).toBe(0);
  });

  it('does not take a cluster out of the fleet while it is in use, does where that is wanted, and knows it no more', async () => {
    const refused = await cli('clusters', 'remove', 'shop', '--yes');
    expect(refused).toMatchObject({ code: 4 });
    expect(refused.err).toContain('finalizers');
    expect((await cli('clusters', 'remove', 'shop', '--finalizers', 'keep', '--yes')).code).toBe(0);
    expect(await cli('status', 'shop')).toMatchObject({ code: 3 });
  });

  it('names the queue of a stage that is not there', async () => {
    const ran = await kbindFleet(['--stage', 'nowhere', '--region', REGION, 'dlq', 'list'], {
      env: { ...emulators(), AWS_ENDPOINT_URL_SQS: stack.queues.endpoint },
    });
    expect(ran.err).toContain('queue kbind-serverless-nowhere-');
    expect(ran.code).toBe(5);
  });
});

function urlOf(logicalId: string): string {
  const facts = stack.queues.facts.queues.get(logicalId);
  if (facts === undefined) throw new Error(`no queue ${logicalId}`);
  return facts.url;
}
