import { describe, expect, it } from 'vitest';
import type { ConnectionView } from '../../../lib/forwarder/plan-set.ts';
import { bindingView, relatedWatches, type BindingView } from '../../../lib/forwarder/related-watches.ts';
import type { KubeObject } from '../../../lib/model/api.ts';

const connection: ConnectionView = {
  uid: 'c1',
  secret: { namespace: 'kbind', name: 'east' },
  remoteClusterUID: 'remote-uid',
  secretVersion: 's1',
  connected: true,
  deleting: false,
};
const binding = (
  relatedResources: readonly object[],
  change: { namespace?: string; metadata?: object } = {},
): KubeObject =>
  ({
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: change.namespace === undefined ? 'ClusterBinding' : 'Binding',
    metadata: { name: 'b', uid: 'b1', resourceVersion: '1', namespace: change.namespace, ...change.metadata },
    spec: { connectionRef: { name: 'east' }, apis: [{ name: 'widgets.example.org' }], relatedResources },
  }) as unknown as KubeObject;

function watchesOf(objects: readonly KubeObject[], change: Partial<ConnectionView> = {}) {
  const views = objects.map((object) => bindingView(object, object.kind as 'Binding' | 'ClusterBinding'));
  const known = views.filter((view): view is BindingView => view !== undefined);
  const relatedBindings = new Map(known.map((view, position) => [String(position), view]));
  const connections = new Map([['east', { ...connection, ...change }]]);
  return relatedWatches({ clusterUid: 'local-uid', connections, relatedBindings });
}

const OURS = 'core.kbind.io/managed=true,core.kbind.io/consumer-cluster-uid=local-uid';
const secrets = (direction: string, selector?: object) => ({ resource: 'secrets', direction, selector });
const labelled = { labelSelector: { matchLabels: { app: 'w' } } };

describe('watches of related resources', () => {
  const rows: readonly [string, readonly KubeObject[], Partial<ConnectionView>, readonly string[]][] = [
    ['a binding without entries watches nothing', [binding([])], {}, []],
    [
      'FromProvider watches the sources there and our copies here',
      [binding([secrets('FromProvider', labelled)])],
      {},
      ['related|east|secrets||app=w,core.kbind.io/managed!=true|', 'related||secrets||core.kbind.io/managed=true|'],
    ],
    [
      'FromConsumer watches the sources here and our copies there',
      [binding([secrets('FromConsumer', labelled)])],
      {},
      ['related||secrets||app=w,core.kbind.io/managed!=true|', `related|east|secrets||${OURS}|`],
    ],
    [
      'names are watched one by one, a Binding in its namespace',
      [binding([secrets('FromConsumer', { names: ['a', 'c'] })], { namespace: 'n' })],
      { connected: false },
      [
        'related||secrets|n|core.kbind.io/managed!=true|metadata.name=a',
        'related||secrets|n|core.kbind.io/managed!=true|metadata.name=c',
      ],
    ],
    [
      'many names are watched by label alone',
      [binding([secrets('FromConsumer', { names: 'a b c d e f g h i'.split(' ') })])],
      { deleting: true },
      ['related||secrets||core.kbind.io/managed!=true|'],
    ],
    [
      'an invalid selector is not watched, our copies are',
      [binding([secrets('FromProvider', { labelSelector: { matchLabels: { 'no key!': '' } } })])],
      {},
      ['related||secrets||core.kbind.io/managed=true|'],
    ],
    [
      'a deleting binding watches nothing',
      [binding([secrets('FromProvider')], { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
      {},
      [],
    ],
  ];
  it.each(rows)('%s', (_name, objects, change, expected) => {
    expect([...watchesOf(objects, change).keys()].sort()).toEqual([...expected].sort());
  });

  it('two bindings that ask for the same share a watch, and both are told', () => {
    const other = binding([secrets('FromProvider', labelled)], { metadata: { name: 'other', uid: 'b2' } });
    const watches = watchesOf([binding([secrets('FromProvider', labelled)]), other]);
    expect(watches.size).toBe(2);
    for (const { bindings } of watches.values()) expect(bindings.map(({ key }) => key.name)).toEqual(['b', 'other']);
  });

  it('another credential rebuilds the watches of the provider alone', () => {
    const fingerprints = (secretVersion: string) =>
      [...watchesOf([binding([secrets('FromProvider', labelled)])], { secretVersion }).values()].map(
        ({ watch }) => watch.fingerprint,
      );
    const [before, after] = [fingerprints('s1'), fingerprints('s2')];
    expect(before[0]).not.toBe(after[0]);
    expect(before[1]).toBe(after[1]);
  });
});
