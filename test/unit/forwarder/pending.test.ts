import { describe, expect, it } from 'vitest';
import { PendingKeys, type Taken } from '../../../lib/forwarder/pending.ts';
import { outgoing } from '../../../lib/forwarder/mapping.ts';
import { MAX_BATCH, type Outgoing } from '../../../lib/forwarder/sink.ts';
import { reconcileRequest } from '../../../lib/model/request.ts';

const CLUSTER = 'local';
const widget = (name: string, change: string, api = 'widgets.example.org'): Outgoing =>
  outgoing(reconcileRequest(CLUSTER, 'instance', { namespace: 'default', name }, { api }), change);

function take(pending: PendingKeys): Taken {
  const taken = pending.take('instances', MAX_BATCH);
  if (taken === undefined) throw new Error('nothing to take');
  return taken;
}
const changes = (taken: Taken): string[] => taken.batch.map(({ change }) => change);

describe('pending keys', () => {
  it('coalesce: a thousand events of one key are one message that carries the newest change', () => {
    const pending = new PendingKeys(CLUSTER);
    for (let version = 1; version <= 1000; version += 1) pending.put(widget('a', String(version)), version);
    expect(pending.size()).toBe(1);
    expect(changes(take(pending))).toEqual(['1000']);
    expect(pending.oldest()).toBe(1);
  });

  it('leave only when they were delivered', () => {
    const pending = new PendingKeys(CLUSTER);
    pending.put(widget('a', '1'), 0);
    pending.put(widget('b', '2'), 0);
    const taken = take(pending);
    expect(pending.size()).toBe(2);
    pending.settle(taken, [0]);
    expect(pending.size()).toBe(1);
    expect(changes(take(pending))).toEqual(['1']);
  });

  it('stay when something newer came in while they were under way, and are not sent twice at once', () => {
    const pending = new PendingKeys(CLUSTER);
    pending.put(widget('a', '1'), 0);
    const taken = take(pending);
    pending.put(widget('a', '2'), 1);
    expect(pending.take('instances', MAX_BATCH)).toBeUndefined();
    pending.settle(taken, []);
    const second = take(pending);
    expect(changes(second)).toEqual(['2']);
    pending.settle(second, []);
    expect(pending.size()).toBe(0);
  });

  it('go ten at a time, oldest first, failed ones last', () => {
    const pending = new PendingKeys(CLUSTER);
    for (let index = 0; index < 12; index += 1) pending.put(widget(`w${index}`, String(index)), index);
    const first = take(pending);
    expect(changes(first)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    pending.settle(first, [3]);
    expect(changes(take(pending))).toEqual(['10', '11', '3']);
  });

  it('of the largest API give way to one sweep when there are too many', () => {
    const pending = new PendingKeys(CLUSTER, 10);
    for (let index = 0; index < 3; index += 1) pending.put(widget(`g${index}`, 'g', 'gadgets.example.org'), 0);
    for (let index = 0; index < 20; index += 1) pending.put(widget(`w${index}`, 'w'), 0);
    expect(pending.size('instances')).toBeLessThanOrEqual(10 + 5);
    const sweep = pending.take('work', MAX_BATCH)?.batch[0]?.message;
    expect(sweep).toMatchObject({ type: 'sweep', cluster: CLUSTER, apis: ['widgets.example.org'], retry: true });
    expect(changes(take(pending)).filter((change) => change === 'g')).toHaveLength(3);
  });
});
