import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { startLocalCell, type LocalCell } from '../../../lib/local/cell.ts';
import { databases } from '../../../lib/local/demo/sample-api.ts';
import { until } from '../../support/e2e/until.ts';
import { bindAndOrder, startPlatform, type Platform } from '../../support/local/platform.ts';

let platform: Platform;
const cells: LocalCell[] = [];

async function startCell(): Promise<LocalCell> {
  const cell = await startLocalCell({ fleetDir: platform.folder.fleet, allowLoopback: true });
  cells.push(cell);
  return cell;
}

beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(async () => {
  for (const cell of cells.splice(0)) await cell.stop();
  await platform.stop();
});

const ordered = { namespace: 'shop', name: 'orders' };

describe('a cell on this machine', () => {
  it('syncs, counts what it did, comes to rest without dead letters, and stops with nothing undelivered', async () => {
    const cell = await startCell();
    await bindAndOrder(platform.stage);
    await cell.waitIdle();
    expect(cell.clusters).toEqual(['blog', 'shop']);
    expect(cell.ready()).toBe(true);
    const counts = cell.counts();
    for (const name of ['control', 'instances', 'work', 'tick'])
      expect(counts[name]).toMatchObject({ errors: 0, failures: 0, invocations: expect.toSatisfy(isPositive) });
    expect(cell.bodies('deadLetters')).toEqual([]);
    expect(cell.bodies('workDead')).toEqual([]);
    expect(await cell.stop()).toEqual({ undelivered: 0 });
  });

  it('converges when it starts again with empty queues: what changed meanwhile is found', async () => {
    const cell = await startCell();
    await bindAndOrder(platform.stage);
    await cell.stop();
    const [shop] = platform.stage.consumers;
    const { uid } = (await shop.client.get(databases, ordered)).metadata;
    const operations = [{ op: 'replace', path: '/spec/sizeGb', value: 99 } as const];
    await shop.client.patch(databases, ordered, { read: { uid }, operations });
    await startCell();
    await until('the provider has the new size', async () => {
      const copy = await platform.stage.provider.client.get(databases, ordered);
      return Number((copy.spec as { sizeGb: unknown }).sizeGb) === 99;
    });
  });

  it('makes a dead letter of a message that nobody can read, through the function that reads the queue', async () => {
    const cell = await startCell();
    const sqs = new SQSClient({
      endpoint: cell.endpoint,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
    });
    const QueueUrl = cell.queues.instances.url;
    const ids = { MessageGroupId: 'g', MessageDeduplicationId: 'd' };
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: '{"v":1,"type":"nonsense"}', ...ids }));
    sqs.destroy();
    const [letter] = await until('there is a dead letter', () => {
      const bodies = cell.bodies('deadLetters');
      return bodies.length > 0 && bodies;
    });
    expect(letter).toContain('nonsense');
    // The message goes once the function has answered, which is a moment after its letter.
    await cell.waitIdle();
    expect(cell.depth('instances')).toEqual({ ready: 0, inFlight: 0, delayed: 0 });
  });
});

const isPositive = (count: unknown): boolean => typeof count === 'number' && count > 0;
