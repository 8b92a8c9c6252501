import { expect, test } from 'vitest';
import { ClusterIdentity } from '../../../lib/reconcile/cluster-identity.ts';
import { createSide } from '../../../lib/reconcile/side.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';

const ANY_AGE = Number.POSITIVE_INFINITY;

/** A side that is held to cluster `right`, behind an address that answers as `answers` say, one after the other. */
function sideOf(answers: string[]) {
  let now = 0;
  let asked = 0;
  const clock = { now: () => now, monotonic: () => now };
  const identity = new ClusterIdentity(() => {
    asked += 1;
    return Promise.resolve(answers.shift() ?? 'right');
  }, clock);
  const side = createSide({ which: 'consumer', uid: 'right', client: { host: 'h' } as KubeClient, identity });
  return { side, pass: (ms: number) => (now += ms), asked: () => asked };
}

test('an address that led to another cluster for a moment does not keep the right one out for ever', async () => {
  const { side, pass } = sideOf(['wrong']);
  await expect(side.confirmIdentity(ANY_AGE)).rejects.toThrow('nothing is moved or deleted there');
  pass(3_000);
  await side.confirmIdentity(ANY_AGE);
});

test('another cluster is not asked for its identity by every key that fails on it', async () => {
  const { side, pass, asked } = sideOf(['wrong', 'wrong', 'wrong']);
  for (let key = 0; key < 5; key += 1) {
    await expect(side.confirmIdentity(ANY_AGE)).rejects.toThrow('not right');
    pass(100);
  }
  expect(asked()).toBe(1);
});

test('the right answer is kept for as long as the caller believes it', async () => {
  const { side, pass, asked } = sideOf(['right']);
  await side.confirmIdentity(ANY_AGE);
  pass(3_600_000);
  await side.confirmIdentity(ANY_AGE);
  expect(asked()).toBe(1);
});

test('whoever must ask now is never told what was asked before, and shares the next question with those who must as well', async () => {
  const answers: ((uid: string) => void)[] = [];
  const clock = { now: () => 0, monotonic: () => 0 };
  const identity = new ClusterIdentity(() => new Promise((resolve) => answers.push(resolve)), clock);
  const first = identity.read(0);
  const [second, third] = [identity.read(0), identity.read(0)];
  expect(answers).toHaveLength(1);
  answers[0]?.('before');
  expect(await first).toBe('before');
  await expect.poll(() => answers.length).toBe(2);
  const fourth = identity.read(0);
  answers[1]?.('after');
  expect(await Promise.all([second, third])).toEqual(['after', 'after']);
  await expect.poll(() => answers.length).toBe(3);
  answers[2]?.('last');
  expect(await fourth).toBe('last');
});
