import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { SweepRequest } from '../../../lib/model/request.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import { runSweep } from '../../../lib/sweep/sweep.ts';
import { crd, managed } from '../binding/fake-world.ts';
import { InstanceWorld, KEY } from '../instance/instance-world.ts';

/** Comes before widgets, whose instance needs work. */
const FIRST = 'apples.example.org';
const sweep: SweepRequest = { v: 1, type: 'sweep', cluster: 'consumer-uid', id: 'x', retry: true };
const consumerSays = (errorClass: 'forbidden' | 'unavailable' | 'throttled', status?: number): KbindError =>
  new KbindError(errorClass, 'no', { side: 'consumer', verb: 'list', api: FIRST, status });

interface Made {
  readonly made: InstanceWorld;
  readonly world: World;
}

/** A second API whose instances cannot be listed. */
function failing(error: Error): Made {
  const made = new InstanceWorld({ finalizers: [] });
  const names = { plural: 'apples', singular: 'apple', kind: 'Apple', listKind: 'AppleList' };
  made.consumer.put(resources.crds, crd({ ...managed(), name: FIRST }, { names }));
  const world = made.world();
  const { client } = world.consumer;
  const list: typeof client.list = async (ref, options) => {
    if (ref.resource === 'apples') throw error;
    return client.list(ref, options);
  };
  return { made, world: { ...world, consumer: { ...world.consumer, client: { ...client, list } } } };
}

const run = ({ world }: Made, request = sweep): Promise<unknown> =>
  runSweep(world, request, { deadline: Number.MAX_SAFE_INTEGER });
const ofWidgets = [{ change: 'x', keys: [`${KEY.namespace}/${KEY.name}`] }];

describe('an API that cannot be swept', () => {
  test.each([
    ['is forbidden', consumerSays('forbidden', 403)],
    ['is answered with 500', consumerSays('unavailable', 500)],
    ['holds what no code was written for', new TypeError('filter is not a function')],
  ])('because it %s gets a sweep of its own; the others are swept', async (_why, error) => {
    const failed = failing(error);
    expect(await run(failed)).toBeUndefined();
    expect(failed.made.told).toEqual(ofWidgets);
    expect(failed.made.sweeps).toEqual([{ ...sweep, id: `x/${FIRST}`, apis: [FIRST] }]);
  });

  test('is left to the next backstop by a backstop', async () => {
    const failed = failing(consumerSays('forbidden', 403));
    expect(await run(failed, { ...sweep, retry: false })).toBeUndefined();
    expect(failed.made.told).toEqual(ofWidgets);
    expect(failed.made.sweeps).toEqual([]);
  });

  test('in a sweep of its own fails that: its chain goes on', async () => {
    const error = consumerSays('forbidden', 403);
    await expect(run(failing(error), { ...sweep, apis: [FIRST] })).rejects.toBe(error);
  });

  test.each([
    ['does not answer', consumerSays('unavailable')],
    ['asks for patience', consumerSays('throttled', 429)],
    ['is not to be asked any more: time is up', new KbindError('aborted', 'time is up')],
  ])('because its cluster %s ends the sweep', async (_why, error) => {
    const failed = failing(error);
    await expect(run(failed)).rejects.toBe(error);
    expect(failed.made.sweeps).toEqual([]);
  });

  test('whose keys the queue does not take ends the sweep', async () => {
    const { world } = failing(consumerSays('forbidden', 403));
    const tell = { ...world.tell, sweep: () => Promise.reject(new KbindError('unavailable', 'queue work: away')) };
    await expect(runSweep({ ...world, tell }, sweep, { deadline: Number.MAX_SAFE_INTEGER })).rejects.toThrow('away');
  });
});
