import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DueRequest } from '../../../lib/model/request.ts';
import { bucketSeconds } from '../../../lib/queue/backoff.ts';
import {
  changeDeduplicationId,
  changeOf,
  deadLetterId,
  heartbeatGroup,
  messageGroup,
  requeueDeduplicationId,
  spread,
} from '../../../lib/queue/ids.ts';
import { CLUSTER, instanceRequest } from '../../support/queue/events.ts';

const due = (dueAt: number, delaySeconds: number, extra: object = {}): DueRequest => ({
  v: 1,
  type: 'due',
  request: instanceRequest('w1', extra),
  dueAt,
  delaySeconds,
});

describe('message groups', () => {
  it('fit into 128 characters for the longest names', () => {
    expect(messageGroup(instanceRequest('n'.repeat(253))).length).toBeLessThanOrEqual(128);
    expect(heartbeatGroup('c'.repeat(128)).length).toBeLessThanOrEqual(128);
  });

  it('are one per key, whatever the attempt', () => {
    const group = messageGroup(instanceRequest('w1'));
    expect(messageGroup(instanceRequest('w1', { attempt: 4, waited: 8, retry: false }))).toBe(group);
    expect(messageGroup(instanceRequest('w2'))).not.toBe(group);
    expect(messageGroup(instanceRequest('w1', { namespace: 'other' }))).not.toBe(group);
    expect(messageGroup(instanceRequest('w1', { api: 'gadgets.example.org' }))).not.toBe(group);
    expect(messageGroup(instanceRequest('w1', { cluster: 'another' }))).not.toBe(group);
  });

  it('do not confuse an object in a namespace with a cluster-scoped one', () => {
    const clusterScoped = { ...instanceRequest('w1'), namespace: undefined };
    expect(messageGroup(clusterScoped)).not.toBe(messageGroup(instanceRequest('w1')));
  });
});

describe('deduplication ids of changes', () => {
  const change = changeOf({ uid: 'u', resourceVersion: '7' });

  it('differ with the change, the key and whether it retries', () => {
    const ids = [
      changeDeduplicationId(instanceRequest('w1'), change),
      changeDeduplicationId(instanceRequest('w1'), changeOf({ uid: 'u', resourceVersion: '8' })),
      changeDeduplicationId(instanceRequest('w2'), change),
      changeDeduplicationId(instanceRequest('w1', { retry: false }), change),
    ];
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id.length).toBeLessThanOrEqual(128);
  });

  it('are the same for the same change, whoever sends it', () => {
    expect(changeDeduplicationId(instanceRequest('w1', { attempt: 3 }), change)).toBe(
      changeDeduplicationId(instanceRequest('w1'), change),
    );
  });
});

/** How much before it is due a key may run: the tolerance of the work function, and as much again for two clocks. */
const EARLIEST_MS = 500;

describe('deduplication ids of requeues', () => {
  it('collapse two chains of one key whose due times fall into one bucket', () => {
    expect(requeueDeduplicationId(due(16_000, 8))).toBe(requeueDeduplicationId(due(19_999, 8, { attempt: 2 })));
  });

  it('do not collapse the next bucket, another width, or another retry', () => {
    const id = requeueDeduplicationId(due(16_000, 8));
    expect(requeueDeduplicationId(due(20_000, 8))).not.toBe(id);
    expect(requeueDeduplicationId(due(16_000, 4))).not.toBe(id);
    expect(requeueDeduplicationId(due(16_000, 8, { retry: false }))).not.toBe(id);
  });

  it('under 2 s collapse only for the very same moment: redeliveries', () => {
    expect(requeueDeduplicationId(due(16_000, 1))).toBe(requeueDeduplicationId(due(16_000, 1)));
    expect(requeueDeduplicationId(due(16_000, 1))).not.toBe(requeueDeduplicationId(due(16_001, 1)));
  });

  it('never drop a requeue that was asked for after the kept one had run', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 2, max: 900, noNaN: true }),
        fc.integer({ min: 0, max: 4_000_000_000_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (delaySeconds, dueAt, part) => {
          const width = bucketSeconds(delaySeconds) ?? 0;
          const laterDueAt = Math.floor(dueAt + part * 2 * width * 1000);
          const same =
            requeueDeduplicationId(due(dueAt, delaySeconds)) === requeueDeduplicationId(due(laterDueAt, delaySeconds));
          // The later one was asked for at its due time less the delay: before the kept one could run, if it is dropped.
          expect(!same || laterDueAt - delaySeconds * 1000 < dueAt - EARLIEST_MS).toBe(true);
        },
      ),
    );
  });
});

describe('dead letter ids', () => {
  it('are one per chain: key and first failure', () => {
    expect(deadLetterId('k', 1)).toBe(deadLetterId('k', 1));
    expect(deadLetterId('k', 1)).not.toBe(deadLetterId('k', 2));
    expect(deadLetterId('k', 1)).not.toBe(deadLetterId('l', 1));
  });
});

describe('spread', () => {
  it('is steady and within its range', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 1000 }), (text, range) => {
        expect(spread(text, range)).toBe(spread(text, range));
        expect(spread(text, range)).toBeLessThan(range);
        expect(spread(text, range)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('puts a fleet over the whole range', () => {
    const seconds = new Set(Array.from({ length: 500 }, (_, n) => spread(`${CLUSTER}/${n}`, 30)));
    expect(seconds.size).toBe(30);
  });
});
