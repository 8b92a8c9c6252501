import { describe, expect, it } from 'vitest';
import { messagesFor, type MappingContext } from '../../../lib/forwarder/mapping.ts';
import type { WatchSource } from '../../../lib/forwarder/plan-set.ts';

const api = 'widgets.example.org';
const context: MappingContext = {
  cluster: 'local-uid',
  connectionsOf: ({ namespace, name }) => (`${namespace}/${name}` === 'default/a' ? ['east', 'west'] : []),
  relatedBindings: (watch) =>
    watch === 'related|one' ? [{ controller: 'binding', key: { namespace: 'default', name: 'b' } }] : [],
  conflicts: (conflicting, { name }) => conflicting === api && name === 'a',
  toConsumer: (_api, { namespace, name }) => ({
    ...(namespace === undefined ? {} : { namespace }),
    name: name.replace(/^p-/, ''),
  }),
};

const named = (name: string, namespace?: string) => ({
  apiVersion: 'v1',
  kind: 'Any',
  metadata: { name, uid: 'u', resourceVersion: '7', ...(namespace === undefined ? {} : { namespace }) },
});

describe('event to keys', () => {
  const rows: readonly [string, WatchSource, ReturnType<typeof named>, readonly string[]][] = [
    ['a Connection is its own key', { type: 'connections' }, named('east'), ['control connection east']],
    ['a ClusterBinding is its own key', { type: 'clusterbindings' }, named('b'), ['control clusterbinding b']],
    ['a Binding is its own key', { type: 'bindings' }, named('b', 'default'), ['control binding default/b']],
    ['a managed CRD is its own key', { type: 'crds' }, named(api), [`control crd ${api}`]],
    [
      'a Secret is the keys of all Connections that name it',
      { type: 'secret', secret: { namespace: 'default', name: 'a' } },
      named('a', 'default'),
      ['control connection east', 'control connection west'],
    ],
    ['an export is its Connection', { type: 'exports', connection: 'east' }, named(api), ['control connection east']],
    [
      'an instance is its own key',
      { type: 'instances', api },
      named('a', 'default'),
      [`instances instance ${api} default/a`],
    ],
    [
      'a cluster-scoped instance has no namespace',
      { type: 'instances', api },
      named('a'),
      [`instances instance ${api} a`],
    ],
    [
      'a copy is the key of its source',
      { type: 'copies', api, connection: 'east' },
      named('p-a', 'default'),
      [`instances instance ${api} default/a`],
    ],
    [
      'what is not ours is a key where something of ours conflicts',
      { type: 'foreign', api, connection: 'east' },
      named('p-a', 'default'),
      [`instances instance ${api} default/a`],
    ],
    [
      'a related Secret is the keys of the bindings that select it',
      { type: 'related', watch: 'related|one', copies: false, connection: 'east' },
      named('a', 'default'),
      ['control binding default/b'],
    ],
    ['what is not ours is nothing elsewhere', { type: 'foreign', api, connection: 'east' }, named('b', 'default'), []],
  ];
  it.each(rows)('%s', (_name, source, object, expected) => {
    const messages = messagesFor(source, object, context);
    const told = messages.map(({ queue, message }) => {
      if (message.type !== 'reconcile') throw new Error('not a key');
      const { controller, namespace, name } = message;
      const key = namespace === undefined ? name : `${namespace}/${name}`;
      return [queue, controller, message.api, key].filter((part) => part !== undefined).join(' ');
    });
    expect(told).toEqual(expected);
    for (const { change, message } of messages) {
      expect(change).toBe('u/7');
      expect(message).toMatchObject({ cluster: 'local-uid', retry: true, attempt: 0 });
    }
  });
});
