import { describe, expect, it } from 'vitest';
import { holdFleetLease } from '../../../lib/fleet/lease.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { KbindError } from '../../../lib/model/errors.ts';

/** A cluster whose Lease has that holder (undefined: none), and which turns out to be another one. */
function another(holder: string | undefined) {
  const written: string[] = [];
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: {}, spec: { holderIdentity: holder } };
  const write = (verb: string) => (_ref: unknown, object: unknown) => {
    written.push(verb);
    return Promise.resolve(object);
  };
  const client = {
    find: () => Promise.resolve(holder === undefined ? undefined : lease),
    create: write('create'),
    update: write('update'),
  } as unknown as KubeClient;
  const confirmIdentity = (): Promise<void> =>
    Promise.reject(new KbindError('identity', 'another cluster', { side: 'consumer' }));
  return { consumer: { client, confirmIdentity }, written };
}

describe('the Lease of the installation, where the address leads to another cluster by now', () => {
  it.each([
    ['no Lease', undefined],
    ['a Lease that nobody holds', ''],
  ])('that has %s: is not taken', async (_what, holder) => {
    const { consumer, written } = another(holder);
    await expect(holdFleetLease(consumer, 'a/b')).rejects.toMatchObject({ errorClass: 'identity' });
    expect(written).toEqual([]);
  });

  it('that belongs to somebody else: says nothing about ours', async () => {
    const { consumer } = another('x/y');
    await expect(holdFleetLease(consumer, 'a/b')).rejects.toMatchObject({ errorClass: 'identity' });
  });

  it('whose Lease is ours is not asked who it is: that costs a request a minute', async () => {
    const { consumer, written } = another('a/b');
    await holdFleetLease(consumer, 'a/b');
    expect(written).toEqual([]);
  });
});
