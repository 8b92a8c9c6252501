import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { Context, SQSEvent } from 'aws-lambda';
import { startFauxqs, type FauxqsServer } from 'fauxqs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { handler as control } from '../../../functions/control.ts';
import { handler as instances } from '../../../functions/instances.ts';
import { handler as tick } from '../../../functions/tick.ts';
import { handler as work } from '../../../functions/work.ts';
import { closeApps } from '../../../lib/app/app-from-environment.ts';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { parseDeadLetter } from '../../../lib/queue/dead-letters.ts';
import { instanceRequest, sqsEvent, sqsRecord } from '../../support/queue/events.ts';

/** The handlers as serverless.yml names them: configured by the environment, on a real queue and an API server. */

const REGION = 'eu-central-1';
let server: FauxqsServer;
let sqs: SQSClient;
let cluster: EmbeddedCluster;
let dir: string;
const urls: Record<string, string> = {};

const context = { getRemainingTimeInMillis: () => 30_000 } as Context;

beforeAll(async () => {
  server = await startFauxqs({ port: 0, logger: false });
  sqs = new SQSClient({
    endpoint: server.address,
    region: REGION,
    credentials: { accessKeyId: 't', secretAccessKey: 't' },
  });
  cluster = await startEmbeddedCluster({ name: 'consumer' });
  dir = await mkdtemp(join(tmpdir(), 'fleet-'));
  await writeFile(join(dir, 'demo.kubeconfig'), cluster.kubeconfig);
  for (const name of ['CONTROL', 'INSTANCES', 'DEAD_LETTERS']) {
    urls[`${name}_QUEUE_URL`] = server.createQueue(`${name}.fifo`, {
      region: REGION,
      attributes: { FifoQueue: 'true' },
    }).queueUrl;
  }
  for (const name of ['WORK', 'WORK_DEAD']) {
    urls[`${name}_QUEUE_URL`] = server.createQueue(name, { region: REGION }).queueUrl;
  }
  const environment = {
    ...urls,
    FLEET_DIR: dir,
    ALLOW_LOOPBACK: 'true',
    INSTALLATION: 'kbind',
    STAGE: 'test',
    LOG_LEVEL: 'SILENT',
    METRICS: 'none',
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_ENDPOINT_URL_SQS: server.address,
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
});

afterEach(() => closeApps());

afterAll(async () => {
  vi.unstubAllEnvs();
  sqs.destroy();
  await Promise.all([server.stop(), cluster.stop(), rm(dir, { recursive: true, force: true })]);
});

/** What a queue gives out now, as an event; deleted at once. */
async function eventFrom(queue: string): Promise<SQSEvent> {
  const QueueUrl = urls[`${queue}_QUEUE_URL`];
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: 5,
      MessageSystemAttributeNames: ['All'],
    }),
  );
  for (const { ReceiptHandle } of Messages) await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  return sqsEvent(
    ...Messages.map(({ MessageId = '', Body = '', Attributes }) =>
      sqsRecord(Body, {
        messageId: MessageId,
        sentAt: Number(Attributes?.SentTimestamp),
        ...(Attributes?.MessageGroupId === undefined ? {} : { group: Attributes.MessageGroupId }),
      }),
    ),
  );
}

const nothingFailed = { batchItemFailures: [] };

describe('the exported handlers', () => {
  it('tick puts work on the queue, and work runs it', async () => {
    await tick({ time: '2026-01-01T00:00:00Z' }, context);
    const depth = server.inspectQueue('WORK')?.messages;
    expect((depth?.ready.length ?? 0) + (depth?.delayed.length ?? 0)).toBeGreaterThanOrEqual(2);
    const refresh = { v: 1, type: 'refresh', cluster: await clusterUid(), id: 'now' };
    expect(await work(sqsEvent(sqsRecord(JSON.stringify(refresh))), context)).toEqual(nothingFailed);
  });

  it('instances settles a key whose API does not exist', async () => {
    const request = instanceRequest('w', { cluster: await clusterUid() });
    expect(await instances(sqsEvent(sqsRecord(JSON.stringify(request), { group: 'g' })), context)).toEqual(
      nothingFailed,
    );
  });

  it('control dead-letters what nobody can read, on the real queue', async () => {
    expect(await control(sqsEvent(sqsRecord('{"v":7}', { group: 'g' })), context)).toEqual(nothingFailed);
    const [letter] = (await eventFrom('DEAD_LETTERS')).Records;
    expect(parseDeadLetter(letter?.body ?? '')).toMatchObject({ body: '{"v":7}', error: { class: 'malformed' } });
  });

  it('say every problem of a configuration at once', async () => {
    vi.stubEnv('FLEET_DIR', '');
    vi.stubEnv('STAGE', undefined);
    try {
      await expect(Promise.resolve(control(sqsEvent(), context))).rejects.toThrow(/STAGE is not set.*FLEET_DIR/);
    } finally {
      vi.stubEnv('FLEET_DIR', dir);
      vi.stubEnv('STAGE', 'test');
    }
  });
});

async function clusterUid(): Promise<string> {
  const { parseForeignKubeconfig } = await import('../../../lib/kube/kubeconfig.ts');
  const { createKubeClient } = await import('../../../lib/kube/client.ts');
  const { readClusterIdentity } = await import('../../../lib/kube/identity.ts');
  const { systemClock } = await import('../../../lib/model/clock.ts');
  const egress = { allowLoopback: true };
  const client = createKubeClient(parseForeignKubeconfig(cluster.kubeconfig, egress), { clock: systemClock, egress });
  try {
    return await readClusterIdentity(client);
  } finally {
    await client.close();
  }
}
