import { describe, expect, it } from 'vitest';
import { MAX_SESSIONS, Sessions } from '../../../lib/app/sessions.ts';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { silentLogger } from '../../../lib/model/log.ts';

/** What a container keeps warm stays within bounds, whatever the number of clusters. */

let now = 0;
const clock = { now: () => now, monotonic: () => now };

/** Clusters that say who they are by their host, and how often each was asked for that. */
function sessionsOf(): { readonly sessions: Sessions; readonly asked: Map<string, number> } {
  const asked = new Map<string, number>();
  const answering = (client: KubeClient): KubeClient => ({
    ...client,
    getPath: () => Promise.resolve({ kind: 'APIGroupList', groups: [] }),
    get: (ref, { name }) => {
      const [uid = ''] = client.host.split('.');
      asked.set(uid, (asked.get(uid) ?? 0) + 1);
      return Promise.resolve({ apiVersion: 'v1', kind: ref.kind, metadata: { name, uid, resourceVersion: '1' } });
    },
    find: () => Promise.resolve(undefined),
  });
  const options = { clock, log: silentLogger, allowLoopback: false, holder: 'a/b', lease: 'look' as const };
  return { sessions: new Sessions({ ...options, distrust: () => undefined, wrapClient: answering }), asked };
}

const clusterOf = (index: number) => ({
  name: `c${index}`,
  uid: `c${index}`,
  paused: false,
  target: { server: `https://c${index}.test` },
});
const nothing = (): Promise<void> => Promise.resolve();

describe('warm sessions', () => {
  it('are as many as the bound: the least recently used one goes, one that is at work stays', async () => {
    const { sessions, asked } = sessionsOf();
    let end = (): void => undefined;
    const atWork = sessions.use(clusterOf(0), () => new Promise<void>((resolve) => (end = resolve)));
    for (let index = 1; index <= MAX_SESSIONS; index += 1) {
      now += 1;
      await sessions.use(clusterOf(index), nothing);
    }
    await sessions.use(clusterOf(MAX_SESSIONS), nothing);
    await sessions.use(clusterOf(0), nothing);
    expect([asked.get('c0'), asked.get(`c${MAX_SESSIONS}`)]).toEqual([1, 1]);
    await sessions.use(clusterOf(1), nothing);
    expect(asked.get('c1')).toBe(2);
    end();
    await atWork;
    await sessions.close();
  });

  it('are not made anew by a fleet that fits', async () => {
    const { sessions, asked } = sessionsOf();
    for (let round = 0; round < 3; round += 1) {
      for (let index = 0; index < MAX_SESSIONS; index += 1) await sessions.use(clusterOf(index), nothing);
      now += 30_000;
    }
    expect(new Set(asked.values())).toEqual(new Set([1]));
    await sessions.close();
  });
});
