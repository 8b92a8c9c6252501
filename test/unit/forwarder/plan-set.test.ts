import { describe, expect, it } from 'vitest';
import { diffWatches, wantedWatches, type ConnectionView, type ConsumerView } from '../../../lib/forwarder/plan-set.ts';
import type { WatchPlan } from '../../../lib/model/watch-plan.ts';

const STATIC = ['connections', 'clusterbindings', 'bindings', 'crds'];
const WIDGETS = 'widgets.example.org';

const plan: WatchPlan = {
  v: 1,
  generation: 3,
  version: 'v1',
  scope: 'Namespaced',
  connection: 'east',
  cluster: 'local-uid',
  epoch: 'e1',
  provider: true,
};
const connection: ConnectionView = {
  uid: 'c1',
  secret: { namespace: 'kbind', name: 'east-kubeconfig' },
  remoteClusterUID: 'remote-uid',
  secretVersion: 's1',
  connected: true,
  deleting: false,
};

function view(change: {
  connection?: Partial<ConnectionView> | null;
  plan?: Partial<WatchPlan> | null;
  crdUid?: string;
  conflicting?: boolean;
  connectionsKnown?: boolean;
}): ConsumerView {
  const connections = change.connection === null ? [] : [['east', { ...connection, ...change.connection }] as const];
  const planned = change.plan === null ? undefined : { ...plan, ...change.plan };
  return {
    clusterUid: 'local-uid',
    connectionsKnown: change.connectionsKnown ?? true,
    connections: new Map(connections),
    crds: new Map([[WIDGETS, { uid: change.crdUid ?? 'crd1', plan: planned }]]),
    conflictingApis: new Set(change.conflicting === true ? [WIDGETS] : []),
  };
}

const INSTANCES = `instances|${WIDGETS}`;
const COPIES = `copies|${WIDGETS}`;
const FOREIGN = `foreign|${WIDGETS}`;
const SECRET = 'secret|kbind|east-kubeconfig';
const EXPORTS = 'exports|east';

describe('wanted watches', () => {
  const rows: readonly [string, Parameters<typeof view>[0], readonly string[]][] = [
    ['a plan with its provider watches both sides', {}, [SECRET, EXPORTS, INSTANCES, COPIES]],
    ['a shrunken plan watches the consumer only', { plan: { provider: false } }, [SECRET, EXPORTS, INSTANCES]],
    ['a CRD without a plan is not watched', { plan: null }, [SECRET, EXPORTS]],
    ['nothing is asked of a provider whose Connection is gone', { connection: null }, [INSTANCES]],
    [
      'nothing is asked of a provider without a pinned identity',
      { connection: { remoteClusterUID: undefined } },
      [SECRET, INSTANCES],
    ],
    [
      'exports of a provider that is away are not watched',
      { connection: { connected: false } },
      [SECRET, INSTANCES, COPIES],
    ],
    [
      'exports are not watched for a deleting Connection',
      { connection: { deleting: true } },
      [SECRET, INSTANCES, COPIES],
    ],
    [
      'a conflict adds the watch of what is not ours',
      { conflicting: true },
      [SECRET, EXPORTS, INSTANCES, COPIES, FOREIGN],
    ],
    [
      'a conflict adds none while the plan is shrunken',
      { conflicting: true, plan: { provider: false } },
      [SECRET, EXPORTS, INSTANCES],
    ],
    [
      'a plan of another cluster, in a restored backup, reaches no provider',
      { plan: { cluster: 'other' } },
      [SECRET, EXPORTS, INSTANCES],
    ],
    ['plans wait until Connections are known', { connectionsKnown: false }, [SECRET, EXPORTS]],
  ];
  it.each(rows)('%s', (_name, change, expected) => {
    expect([...wantedWatches(view(change)).keys()].sort()).toEqual([...STATIC, ...expected].sort());
  });

  it('select what is ours, what is not, and one Secret', () => {
    const wanted = wantedWatches(view({ conflicting: true }));
    expect(wanted.get(COPIES)?.labelSelector).toBe('core.kbind.io/consumer-cluster-uid=local-uid');
    expect(wanted.get(FOREIGN)?.labelSelector).toBe('core.kbind.io/consumer-cluster-uid!=local-uid');
    expect(wanted.get(INSTANCES)?.labelSelector).toBeUndefined();
    expect(wanted.get(SECRET)).toMatchObject({ namespace: 'kbind', fieldSelector: 'metadata.name=east-kubeconfig' });
    expect(wanted.get(EXPORTS)?.labelSelector).toBe('core.kbind.io/exported=true');
    expect(wanted.get('crds')?.labelSelector).toBe('core.kbind.io/managed=true');
    expect(wanted.get(COPIES)?.ref).toMatchObject({
      group: 'example.org',
      version: 'v1',
      resource: 'widgets',
      namespaced: true,
    });
  });

  it('share the Secret of two Connections', () => {
    const both = {
      ...view({}),
      connections: new Map([
        ['east', connection],
        ['west', { ...connection, uid: 'c2' }],
      ]),
    };
    expect([...wantedWatches(both).keys()].filter((id) => id.startsWith('secret'))).toEqual([SECRET]);
  });
});

describe('differences', () => {
  const rows: readonly [
    string,
    Parameters<typeof view>[0],
    { start?: string[]; stop?: string[]; rebuild?: string[] },
  ][] = [
    ['nothing changed: nothing to do', {}, {}],
    ['another schema rebuilds both sides', { plan: { generation: 4 } }, { rebuild: [INSTANCES, COPIES] }],
    ['a CRD made anew rebuilds both sides', { crdUid: 'crd2' }, { rebuild: [INSTANCES, COPIES] }],
    ['another epoch rebuilds the provider side', { plan: { epoch: 'e2' } }, { rebuild: [COPIES] }],
    [
      'another credential rebuilds all that uses it',
      { connection: { secretVersion: 's2' } },
      { rebuild: [EXPORTS, COPIES] },
    ],
    ['a Connection made anew rebuilds all that uses it', { connection: { uid: 'c9' } }, { rebuild: [EXPORTS, COPIES] }],
    ['lost readiness stops the provider side', { plan: { provider: false, epoch: '' } }, { stop: [COPIES] }],
    ['a Connection that is gone stops all that uses it', { connection: null }, { stop: [SECRET, EXPORTS, COPIES] }],
    ['a removed plan stops both sides', { plan: null }, { stop: [INSTANCES, COPIES] }],
    ['the first conflict starts the second watch', { conflicting: true }, { start: [FOREIGN] }],
  ];
  it.each(rows)('%s', (_name, change, expected) => {
    const { start, stop, rebuild } = diffWatches(wantedWatches(view({})), wantedWatches(view(change)));
    expect({ start: start.map(({ id }) => id), stop, rebuild: rebuild.map(({ id }) => id) }).toEqual({
      start: [],
      stop: [],
      rebuild: [],
      ...expected,
    });
  });
});
