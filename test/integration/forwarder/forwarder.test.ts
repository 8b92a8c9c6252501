import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Forwarder } from '../../../lib/forwarder/forwarder.ts';
import { createOpenProvider } from '../../../lib/forwarder/providers.ts';
import type { KubeClient, WatchOptions } from '../../../lib/kube/types.ts';
import { apiName, resources, type ResourceRef } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import type { RecordingSink } from '../../support/forwarder/recording-sink.ts';
import {
  clientOf,
  create,
  egress,
  label,
  plan,
  rbacDocuments,
  remove,
  rotate,
  SECRET,
  setStatus,
  startForwarder,
  startPair,
  until,
  widgets,
  WIDGETS,
  type Pair,
} from './fixture.ts';

const CONFLICT = { 'core.kbind.io/conflict': 'true' };
const widget = (name: string, labels: Record<string, string> = {}) => ({
  metadata: { namespace: 'default', name, labels },
  spec: { size: 1 },
});

describe.each(clusterKinds())('forwarder between two $name', (kind) => {
  let pair: Pair;
  let running: Forwarder | undefined;
  let started = 0;

  beforeAll(async () => {
    pair = await startPair(kind);
  }, 180_000);
  afterEach(async () => {
    await running?.stop();
  });
  afterAll(() => pair.stop());

  /** A forwarder that stands: both sides' watches do, and its one sweep was asked for. */
  async function standing(change: Parameters<typeof startForwarder>[1] = {}): Promise<RecordingSink> {
    const { forwarder, sink } = await startForwarder(pair, change);
    running = forwarder;
    started += 1;
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(1));
    await until(() => expect(forwarder.ready()).toBe(true));
    // The keys of the control plane are gathered for a moment.
    await until(() => expect(sink.keys()).toContain(`crd ${WIDGETS}`));
    return sink;
  }
  const name = (word: string): string => `${word}-${started}`;
  const ours = () => ({ 'core.kbind.io/consumer-cluster-uid': pair.consumer.uid });
  const expectKey = (sink: RecordingSink, from: number, key: string) =>
    until(() => expect(sink.keys(from)).toContain(key));

  it('forwards what happens on either side, and asks for one sweep', async () => {
    const sink = await standing();
    const key = { namespace: 'default', name: name('a') };
    const line = `instance default/${key.name}`;
    const steps: (() => Promise<unknown>)[] = [
      () => create(pair.consumer.admin, widgets, widget(key.name)),
      () => label(pair.consumer.admin, key, { edited: 'yes' }),
      () => create(pair.provider.admin, widgets, widget(key.name, ours())),
      () => setStatus(pair.provider.admin, widgets, key, { phase: 'Ready' }),
      () => remove(pair.provider.admin, widgets, key),
      () => remove(pair.consumer.admin, widgets, key),
    ];
    for (const step of steps) {
      const sent = sink.sent.length;
      await step();
      await expectKey(sink, sent, line);
    }
    const sent = sink.sent.length;
    await create(pair.provider.admin, widgets, widget(name('foreign')));
    await create(pair.provider.admin, widgets, widget(name('own'), ours()));
    await expectKey(sink, sent, `instance default/${name('own')}`);
    expect(sink.keys(sent)).not.toContain(`instance default/${name('foreign')}`);
    expect(sink.sweeps(WIDGETS)).toHaveLength(1);
  });

  it('forwards bindings, Connections, Secrets and exports', async () => {
    const sink = await standing();
    const spec = { connectionRef: { name: 'east' }, apis: [{ name: WIDGETS }] };
    let sent = sink.sent.length;
    await create(pair.consumer.admin, resources.clusterBindings, { metadata: { name: name('cb') }, spec });
    await expectKey(sink, sent, `clusterbinding ${name('cb')}`);
    await create(pair.consumer.admin, resources.bindings, {
      metadata: { namespace: 'default', name: name('b') },
      spec,
    });
    await expectKey(sink, sent, `binding default/${name('b')}`);
    sent = sink.sent.length;
    const crd = await pair.provider.admin.get(resources.crds, { name: WIDGETS });
    const operations = [{ op: 'add', path: '/metadata/annotations', value: { touched: name('at') } }] as const;
    await pair.provider.admin.patch(resources.crds, { name: WIDGETS }, { read: crd.metadata, operations });
    await expectKey(sink, sent, 'connection east');
    sent = sink.sent.length;
    const secret = await pair.consumer.admin.get(resources.secrets, SECRET);
    await pair.consumer.admin.patch(resources.secrets, SECRET, { read: secret.metadata, operations });
    await expectKey(sink, sent, 'connection east');
  });

  it('after a 410 of the server asks for one sweep and goes on', async () => {
    let stale = 0;
    const client: KubeClient = {
      ...pair.limited,
      watch: (ref, options) => {
        const old = apiName(ref) === WIDGETS && stale > 0;
        if (old) stale -= 1;
        return pair.limited.watch(ref, { ...options, ...shortly(ref), ...(old ? { resourceVersion: '1' } : {}) });
      },
    };
    const sink = await standing({ client });
    await create(pair.consumer.admin, widgets, widget(name('before')));
    await expectKey(sink, 0, `instance default/${name('before')}`);
    await pair.consumer.server.compact();
    stale = 1;
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(2));
    const sent = sink.sent.length;
    await create(pair.consumer.admin, widgets, widget(name('a')));
    await expectKey(sink, sent, `instance default/${name('a')}`);
    expect(sink.sweeps(WIDGETS)).toHaveLength(2);
    expect(new Set(sink.sweeps(WIDGETS)).size).toBe(2);
  });

  it('streams that end every second lose nothing and ask for no further sweep', async () => {
    const opened: string[] = [];
    const client: KubeClient = {
      ...pair.limited,
      watch: (ref, options) => {
        if (apiName(ref) === WIDGETS) opened.push(options.resourceVersion);
        return pair.limited.watch(ref, { ...options, ...shortly(ref) });
      },
    };
    const sink = await standing({ client });
    for (let index = 0; opened.length < 4; index += 1) {
      const sent = sink.sent.length;
      await create(pair.consumer.admin, widgets, widget(`${name('w')}-${index}`));
      await expectKey(sink, sent, `instance default/${name('w')}-${index}`);
    }
    expect(sink.sweeps(WIDGETS)).toHaveLength(1);
  });

  it('started again, asks for a sweep of its own', async () => {
    const first = await standing();
    expect(await running?.stop()).toEqual({ undelivered: 0 });
    await create(pair.consumer.admin, widgets, widget(name('meanwhile')));
    const second = await standing();
    expect(second.sweeps(WIDGETS)[0]).not.toBe(first.sweeps(WIDGETS)[0]);
    expect(second.keys()).toContain('connection east');
    expect(second.keys()).toContain(`crd ${WIDGETS}`);
  });

  it('goes on with new credentials and lets go of the old ones', async () => {
    const used: string[] = [];
    const open = createOpenProvider({ consumer: pair.limited, clock: systemClock, egress });
    const sink = await standing({
      openProvider: async (connection, options) => {
        const provider = await open(connection, options);
        const number = used.push('open') - 1;
        return { ...provider, close: async () => ((used[number] = 'closed'), await provider.close?.()) };
      },
    });
    const other = await pair.provider.server.addUser({ name: name('rotated'), groups: ['system:masters'] });
    await rotate(pair, other.kubeconfig, name('s2'));
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(2));
    expect(used).toEqual(['closed', 'open']);
    const sent = sink.sent.length;
    await create(pair.provider.admin, widgets, widget(name('a'), ours()));
    await expectKey(sink, sent, `instance default/${name('a')}`);
  });

  it('a conflict ends when its blocker goes: its key is forwarded', async () => {
    const key = { namespace: 'default', name: name('blocked') };
    const sink = await standing();
    await create(pair.provider.admin, widgets, widget(key.name));
    await create(pair.consumer.admin, widgets, widget(key.name));
    await label(pair.consumer.admin, key, CONFLICT);
    await expectKey(sink, 0, `instance default/${key.name}`);
    // The second watch stands once an edit of the blocker is heard.
    await until(async () => {
      const sent = sink.sent.length;
      await label(pair.provider.admin, key, { edited: String(sent) });
      await new Promise(setImmediate);
      expect(sink.keys(sent)).toContain(`instance default/${key.name}`);
    });
    const sent = sink.sent.length;
    await remove(pair.provider.admin, widgets, key);
    await expectKey(sink, sent, `instance default/${key.name}`);
    await remove(pair.consumer.admin, widgets, key);
  });

  it('a plan that shrinks and grows keeps the consumer watched, and is swept when it grew', async () => {
    const sink = await standing();
    await plan(pair.consumer, { epoch: '', provider: false });
    await expectKey(sink, 0, `crd ${WIDGETS}`);
    const sent = sink.sent.length;
    await create(pair.consumer.admin, widgets, widget(name('a')));
    await expectKey(sink, sent, `instance default/${name('a')}`);
    await plan(pair.consumer, { epoch: 'e2', provider: true });
    await until(() => expect(sink.sweeps(WIDGETS)).toHaveLength(2));
  });

  it('keys that come while the queue is away are delivered once it is back, each once', async () => {
    const sink = await standing();
    sink.away = true;
    const sent = sink.sent.length;
    for (let edit = 0; edit < 5; edit += 1) {
      if (edit === 0) await create(pair.consumer.admin, widgets, widget(name('a')));
      else await label(pair.consumer.admin, { namespace: 'default', name: name('a') }, { edit: String(edit) });
    }
    await until(() => expect(sink.refused).toBeGreaterThan(1));
    const { resourceVersion, uid } = (await pair.consumer.admin.get(widgets, { namespace: 'default', name: name('a') }))
      .metadata;
    sink.away = false;
    await until(() => expect(sink.sent.slice(sent).map(({ change }) => change)).toContain(`${uid}/${resourceVersion}`));
    expect(sink.keys(sent).filter((key) => key === `instance default/${name('a')}`)).toHaveLength(1);
  });

  it('uses every verb that its RBAC manifest grants, and needs no other', async () => {
    const used = new Set<string>();
    const note = (verb: string, ref: ResourceRef): void => void used.add(`${verb} ${apiName(ref)}`);
    const { limited } = pair;
    const client: KubeClient = {
      ...limited,
      get: (ref, ...rest) => (note('get', ref), limited.get(ref, ...rest)),
      find: (ref, ...rest) => (note('get', ref), limited.find(ref, ...rest)),
      list: (ref, ...rest) => (note('list', ref), limited.list(ref, ...rest)),
      listAll: (ref, ...rest) => (note('list', ref), limited.listAll(ref, ...rest)),
      listMetadata: (ref, ...rest) => (note('list', ref), limited.listMetadata(ref, ...rest)),
      listAllMetadata: (ref, ...rest) => (note('list', ref), limited.listAllMetadata(ref, ...rest)),
      watch: (ref, options) => (note('watch', ref), limited.watch(ref, options)),
    };
    await standing({ client });
    const declared = (await rbacDocuments()).flatMap((document) => {
      const rules = (document['rules'] ?? []) as { apiGroups: string[]; resources: string[]; verbs: string[] }[];
      return rules.flatMap(({ apiGroups, resources, verbs }) =>
        verbs.flatMap((verb) =>
          resources.map(
            (resource) =>
              `${verb} ${resource === '*' ? 'widgets' : resource}${apiGroups[0] === '' ? '' : `.${apiGroups[0]}`}`,
          ),
        ),
      );
    });
    // Only a kcp workspace serves the logical cluster; here discovery says so and nothing is asked.
    const expected = declared.filter((line) => line !== 'get logicalclusters.core.kcp.io');
    await until(() => expect([...used].sort()).toEqual(expected.sort()));
  });

  it('a provider that is another cluster is not watched', async () => {
    const impostor = clientOf(pair.consumer.server.kubeconfig);
    let opened = 0;
    const requests: string[] = [];
    const { forwarder, sink } = await startForwarder(pair, {
      openProvider: () => {
        opened += 1;
        const client: KubeClient = {
          ...impostor,
          watch: (ref, options) => (requests.push(apiName(ref)), impostor.watch(ref, options)),
        };
        return Promise.resolve({ client, uid: pair.consumer.uid });
      },
    });
    running = forwarder;
    await until(() => expect(opened).toBeGreaterThan(1));
    expect(requests).toEqual([]);
    expect(sink.sweeps(WIDGETS)).toEqual([]);
    await forwarder.stop();
    await impostor.close();
  });
});

/** Streams of widgets that the server ends after a second. */
const shortly = (ref: ResourceRef): Partial<WatchOptions> => (apiName(ref) === WIDGETS ? { timeoutSeconds: 1 } : {});
