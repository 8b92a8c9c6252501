import { describe, expect, test } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import { ago, API, FINALIZER, InstanceWorld } from './instance-world.ts';

const anotherMarker = { 'core.kbind.io/consumer-cluster-uid': 'consumer-uid' };

describe('a look at once after the deletion of a copy that nothing holds', () => {
  /** Does something before the provider is asked for the copy that often. */
  function beforeLook(world: InstanceWorld, look: number, act: () => void): void {
    let looks = 0;
    world.provider.beforeRequest = ({ verb, api }) => {
      if (verb !== 'get' || api !== API) return;
      looks += 1;
      if (looks !== look) return;
      expect(world.copyNow).toBeUndefined();
      act();
    };
  }
  const withDeleting = (): InstanceWorld => {
    const world = new InstanceWorld({ deletionTimestamp: ago(1) });
    world.copy(undefined);
    return world;
  };
  const deletes = ({ provider }: InstanceWorld): number =>
    provider.writes.filter(({ verb }) => verb === 'delete').length;
  const kept = (world: InstanceWorld): void => expect(world.sourceNow?.metadata.finalizers).toEqual([FINALIZER]);
  /** The first look is the chart's, and the fake's DELETE reads twice. */
  const THE_LOOK = 4;

  test('that fails releases nothing', async () => {
    const world = withDeleting();
    beforeLook(world, THE_LOOK, () => {
      throw new KbindError('unavailable', 'etcd is away');
    });
    await expect(world.instanceOutcome()).rejects.toThrow('etcd is away');
    expect(deletes(world)).toBe(1);
    kept(world);
  });

  test('that still finds one of ours waits, and deletes it no second time', async () => {
    const world = withDeleting();
    beforeLook(world, THE_LOOK, () => world.copy(undefined));
    expect(await world.instanceOutcome()).toMatchObject({ type: 'wait', reason: 'the provider copy is going away' });
    expect(deletes(world)).toBe(1);
    kept(world);
  });

  test('that finds somebody else’s there releases, and leaves that alone', async () => {
    const world = withDeleting();
    beforeLook(world, THE_LOOK, () => world.copy(anotherMarker));
    expect(await world.instanceOutcome()).toMatchObject({ reason: 'finalizer released' });
    expect(deletes(world)).toBe(1);
    expect(world.copyNow).toBeDefined();
  });

  test.each(['consumer', 'provider'] as const)(
    'releases nothing where the %s turns out to be another cluster',
    async (which) => {
      const world = withDeleting();
      beforeLook(world, THE_LOOK, () => {
        world.identityErrors[which] = new KbindError('identity', 'another cluster answers');
      });
      await expect(world.instanceOutcome()).rejects.toThrow('another cluster answers');
      kept(world);
    },
  );
});
