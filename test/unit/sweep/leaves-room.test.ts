import { describe, expect, test } from 'vitest';
import type { SweepRequest } from '../../../lib/model/request.ts';
import { runSweep, type SweepRest } from '../../../lib/sweep/sweep.ts';
import { InstanceWorld, widgets } from '../instance/instance-world.ts';

/** Instances that none of our finalizers holds yet: a sweep tells the key of each. */
const MANY = 450;
const sweep: SweepRequest = { v: 1, type: 'sweep', cluster: 'consumer-uid', id: 'x', retry: true };

function worldOfMany({ ordered = true } = {}): InstanceWorld {
  const world = new InstanceWorld();
  for (let n = 0; n < MANY; n += 1) {
    const metadata = {
      namespace: 'team-a',
      name: `${ordered ? 'x' : 'n'}${String(n).padStart(3, '0')}`,
      uid: `uid-${n}`,
      finalizers: [],
    };
    world.consumer.put(widgets, { metadata, spec: {} });
  }
  return world;
}
const toldBy = ({ told }: InstanceWorld): string[] => told.flatMap(({ keys }) => keys);

interface Visit {
  readonly request?: SweepRequest;
  readonly backlog?: () => Promise<number>;
}
const visit = (world: InstanceWorld, { request = sweep, ...options }: Visit): Promise<SweepRest | undefined> =>
  runSweep(world.world(), request, { deadline: Number.MAX_SAFE_INTEGER, ...options });

describe('a sweep that finds many keys', () => {
  test('goes on after a second once many wait, each time with some; in the end each key was told once', async () => {
    const world = worldOfMany();
    const visits: number[] = [];
    const rests: SweepRest[] = [];
    let request: SweepRequest | undefined = sweep;
    while (request !== undefined && visits.length < 10) {
      const before = toldBy(world).length;
      const rest: SweepRest | undefined = await visit(world, { request, backlog: () => Promise.resolve(500) });
      visits.push(toldBy(world).length - before);
      if (rest !== undefined) rests.push(rest);
      request = rest?.request;
    }
    expect(visits).toEqual([100, 100, 100, 100, MANY - 400 + 1]);
    expect(rests.map(({ afterSeconds, request: { id, cursor } }) => [afterSeconds, id, cursor?.api])).toEqual(
      Array.from({ length: 4 }, () => [1, 'x', 'widgets.example.org']),
    );
    expect(new Set(toldBy(world)).size).toBe(MANY + 1);
    expect(new Set(world.told.map(({ change }) => change))).toEqual(new Set(['x']));
  });

  test('over lists without an order does not stop in a page: it would begin it again, and never come to its end', async () => {
    const world = worldOfMany({ ordered: false });
    expect(await visit(world, { backlog: () => Promise.resolve(500) })).toBeUndefined();
    expect(new Set(toldBy(world)).size).toBe(MANY + 1);
  });

  test('tells them at once while few wait', async () => {
    const world = worldOfMany();
    const asked: number[] = [];
    const backlog = (): Promise<number> => Promise.resolve(asked.push(toldBy(world).length) && 499);
    expect(await visit(world, { backlog })).toBeUndefined();
    expect(asked).toEqual([100, 200, 300, 400]);
    expect(toldBy(world)).toHaveLength(MANY + 1);
  });

  test('tells them at once where nobody knows how many wait', async () => {
    const world = worldOfMany();
    expect(await visit(world, { backlog: () => Promise.reject(new Error('AccessDenied')) })).toBeUndefined();
    expect(toldBy(world)).toHaveLength(MANY + 1);
  });

  test('that finds few asks nobody', async () => {
    const world = new InstanceWorld({ finalizers: [] });
    const backlog = (): Promise<number> => Promise.reject(new Error('asked'));
    expect(await visit(world, { backlog })).toBeUndefined();
    expect(toldBy(world)).toEqual(['team-a/w']);
  });
});
