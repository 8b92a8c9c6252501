import { SQSClient } from '@aws-sdk/client-sqs';
import { startFauxqs, type FauxqsServer } from 'fauxqs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../lib/model/clock.ts';
import { readEntry } from '../../../lib/replay/entry.ts';
import { listDead } from '../../../lib/replay/hold.ts';
import { replayDead, type ReplayReport } from '../../../lib/replay/replay.ts';
import { createSqsDeadQueues } from '../../../lib/replay/sqs-dead-queues.ts';
import type { DeadQueues } from '../../../lib/replay/dead-queues.ts';
import { createSqsQueues } from '../../../lib/queue/sqs.ts';
import type { Queues } from '../../../lib/queue/queues.ts';
import { instanceRequest } from '../../support/queue/events.ts';
import { letter } from '../../support/queue/letters.ts';

/** The port to dead letters, and a replay over it, on a real SQS server without StartMessageMoveTask. */

const region = 'eu-central-1';
let server: FauxqsServer;
let client: SQSClient;
let generation = 0;
let urls: Record<'control' | 'instances' | 'work' | 'deadLetters' | 'workDead', string>;
let dead: DeadQueues;
let queues: Queues;

beforeAll(async () => {
  server = await startFauxqs({ port: 0, logger: false });
  client = clientOf();
});

const clientOf = (): SQSClient =>
  new SQSClient({ endpoint: server.address, region, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } });

afterAll(async () => {
  client.destroy();
  await server.stop();
});

beforeEach(makeQueues);

function makeQueues(): void {
  generation += 1;
  const attributes = {
    FifoQueue: 'true',
    DeduplicationScope: 'messageGroup',
    FifoThroughputLimit: 'perMessageGroupId',
  };
  const make = (name: string, fifo: boolean): string =>
    server.createQueue(`${name}-${generation}${fifo ? '.fifo' : ''}`, { region, ...(fifo ? { attributes } : {}) })
      .queueUrl;
  urls = {
    control: make('control', true),
    instances: make('instances', true),
    work: make('work', false),
    deadLetters: make('dead-letters', true),
    workDead: make('work-dead', false),
  };
  dead = createSqsDeadQueues(client, urls, 0);
  queues = createSqsQueues(client, urls);
}

let ids = 0;

async function bury(name: string, group = name): Promise<void> {
  ids += 1;
  await queues.send('deadLetters', [{ body: letter(name), group, deduplicationId: `id-${ids}` }]);
}

const buryRaw = (body: string): Promise<void> =>
  createSqsQueues(client, { ...urls, work: urls.workDead }).send('work', [{ body }]);

/** What a queue holds, received or not. */
function namesIn(queue: 'instances' | 'deadLetters' | 'workDead'): string[] {
  const { messages } = server.inspectQueue(urls[queue].split('/').at(-1) ?? '') ?? {
    messages: { ready: [], inflight: [] },
  };
  const bodies = [...messages.ready.map(({ body }) => body), ...messages.inflight.map(({ message }) => message.body)];
  const key = (body: string): string =>
    readEntry({ queue: 'deadLetters', id: '', receipt: '', body, sentAt: 0 }).key.split('|').at(-1) ?? '';
  return bodies.map(key).toSorted();
}

function replay(over: { dead?: DeadQueues; queues?: Queues } = {}): Promise<ReplayReport> {
  const pause = (): Promise<void> => Promise.resolve();
  return replayDead(
    { dead, queues, ...over, clock: systemClock, pause },
    { id: `r${ids}`, filter: {}, max: 100, perSecond: 1000 },
  );
}

describe('dead letters on SQS', () => {
  it('are listed from both queues with their story, and stay where they are', async () => {
    await bury('a');
    await bury('b');
    await buryRaw(JSON.stringify(instanceRequest('raw')));
    const { entries, seen, hidden } = await listDead(dead, {}, { nowMs: Date.now() });
    expect({ seen, hidden }).toEqual({ seen: 3, hidden: 0 });
    expect(entries.map(({ origin, message: { queue } }) => [origin, queue])).toEqual([
      ['settled', 'deadLetters'],
      ['settled', 'deadLetters'],
      ['redriven', 'workDead'],
    ]);
    expect((await listDead(dead, {}, { nowMs: Date.now() })).seen).toBe(3);
  });

  it('that stand behind others of their key are counted', async () => {
    await bury('a', 'g');
    await bury('b', 'g');
    expect(await listDead(dead, {}, { nowMs: Date.now() })).toMatchObject({ seen: 1, hidden: 1 });
  });

  it('are replayed, those behind others of their key as well', async () => {
    await bury('a', 'g');
    await bury('b', 'g');
    await buryRaw(JSON.stringify(instanceRequest('raw')));
    expect(await replay()).toMatchObject({ matched: 3, enqueued: 3, notRemoved: 0 });
    expect(namesIn('instances')).toEqual(['a', 'b', 'raw']);
    expect([...namesIn('deadLetters'), ...namesIn('workDead')]).toEqual([]);
  });

  it('are out of their queue once they are removed, and counted until then', async () => {
    await bury('a');
    const messages = await dead.receive('deadLetters', 60);
    expect(await dead.count('deadLetters')).toBe(1);
    expect(await dead.remove(messages)).toEqual([]);
    expect(await dead.count('deadLetters')).toBe(0);
  });

  it('of a queue that is not there are an error of ours', async () => {
    const nowhere = createSqsDeadQueues(client, { ...urls, deadLetters: `${server.address}/000000000000/none.fifo` });
    await expect(nowhere.receive('deadLetters', 60)).rejects.toMatchObject({ errorClass: 'unavailable' });
    await expect(nowhere.count('deadLetters')).rejects.toMatchObject({ errorClass: 'unavailable' });
  });

  it('are never neither dead nor enqueued, whichever request is the last', async () => {
    for (let last = 0; ; last += 1) {
      for (const name of ['a', 'b', 'c']) await bury(name, name === 'c' ? 'b' : name);
      const mortal = clientOf();
      const send = mortal.send.bind(mortal) as (command: never) => Promise<unknown>;
      let sends = 0;
      let died: () => void = () => undefined;
      const death = new Promise<'died'>((resolve) => (died = () => resolve('died')));
      mortal.send = ((command: never) => {
        sends += 1;
        if (sends <= last) return send(command);
        died();
        return new Promise(() => undefined);
      }) as typeof mortal.send;
      const parts = { dead: createSqsDeadQueues(mortal, urls, 0), queues: createSqsQueues(mortal, urls) };
      const end = await Promise.race([death, replay(parts)]);
      expect(new Set([...namesIn('deadLetters'), ...namesIn('instances')]), `request ${last}`).toEqual(
        new Set(['a', 'b', 'c']),
      );
      mortal.destroy();
      if (end !== 'died') break;
      // What was under way when it died may still arrive: at queues that nobody uses any more.
      makeQueues();
    }
    expect(namesIn('deadLetters')).toEqual([]);
  });
});
