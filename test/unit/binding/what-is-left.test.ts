import { describe, expect, test } from 'vitest';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import { API, FakeWorld, ago, crd, exported, managed, widgets } from './fake-world.ts';

const HELD = { finalizers: ['core.kbind.io/syncer'] };
const message = (world: FakeWorld, type: string): string | undefined =>
  (world.bindingNow() as { conditions?: { type: string; message: string }[] } | undefined)?.conditions?.find(
    (condition) => condition.type === type,
  )?.message;

/** The consumer CRD of the API as a binding of this UID left it. */
function pulled(world: FakeWorld, boundBy: string): void {
  const { labels, annotations } = managed() as { labels: object; annotations: object };
  const established = { conditions: [{ type: 'Established', status: 'True' }] };
  const object = crd({ labels, annotations: { ...annotations, 'core.kbind.io/bound-by': boundBy } });
  world.consumer.put(resources.crds, { ...object, status: established });
}

/** A Ready binding of another API of the same Connection. */
function listingAnother(): FakeWorld {
  const world = new FakeWorld();
  const others = { ...widgets, resource: 'others', kind: 'Other' };
  const exports = [widgets, others].map(({ group, resource }) => ({
    name: `${resource}.${group}`,
    group,
    resource,
    scope: 'Namespaced',
    versions: ['v1'],
  }));
  world.connection({ status: { exportedAPIs: exports } });
  const other = crd(exported()) as { metadata: object; spec: object };
  world.provider.put(resources.crds, {
    ...other,
    metadata: { ...other.metadata, name: 'others.example.org' },
    spec: { ...other.spec, names: { plural: 'others', kind: 'Other' } },
  });
  world.binding({ spec: { apis: [{ name: 'others.example.org' }] } });
  return world;
}

describe('what stays although nobody lists it any more is said', () => {
  test('an API that was edited off the list: how many instances, the first few by name, what to do', async () => {
    const world = listingAnother();
    pulled(world, 'b-uid/1');
    for (const name of ['d', 'c', 'b', 'a']) world.instance(name, HELD);
    world.instance('never-synchronized');
    await world.reconcile();
    expect(world.condition('Ready')).toBe('True/AsExpected');
    expect(message(world, 'Ready')).toBe(
      `${API} is not listed any more: 4 instances keep their copies and our finalizer, but are not synchronized: team-a/a, team-a/b, team-a/c and 1 more; delete them to have their copies deleted, or list the API again`,
    );
  });

  test.each<[string, (world: FakeWorld) => void]>([
    ['nothing of it is held', (world) => pulled(world, 'b-uid/1')],
    [
      'another binding turned Ready on it last',
      (world) => {
        pulled(world, 'other-uid/1');
        world.instance('a', HELD);
      },
    ],
    [
      'another binding lists it',
      (world) => {
        pulled(world, 'b-uid/1');
        world.instance('a', HELD);
        world.binding({ metadata: { name: 'other', uid: 'other-uid' } });
      },
    ],
  ])('nothing is said when %s', async (_why, given) => {
    const world = listingAnother();
    given(world);
    await world.reconcile();
    expect(message(world, 'Ready')).toBe('the requested APIs are set up');
  });

  test('a ClusterBinding that goes while a Binding lists the API: an Event names what that one does not hold', async () => {
    const world = new FakeWorld();
    world.connection();
    pulled(world, 'b-uid/1');
    world.binding({ metadata: { deletionTimestamp: ago(20) } });
    world.binding({ kind: 'Binding', metadata: { name: 'n', uid: 'n-uid' } });
    world.instance('held-by-the-other', HELD);
    world.instance('left', { ...HELD, namespace: 'elsewhere' });
    world.consumer.date = world.time;
    await world.reconcile();
    expect(world.events.map(({ reason }) => reason)).toEqual(['APISkipped']);
    expect(world.events[0]?.message).toContain('1 instance keeps its copy');
    expect(world.events[0]?.message).toContain('elsewhere/left');
  });
});

test('an API with more than spec and status says once what does not travel (L34)', async () => {
  const properties = Object.fromEntries(
    ['apiVersion', 'spec', 'status', 'data', 'binaryData'].map((name) => [name, {}]),
  );
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } },
  ];
  const world = new FakeWorld();
  world.connection();
  world.provider.put(resources.crds, crd(exported(), { versions }));
  world.binding();
  await world.reconcile();
  expect(message(world, 'Ready')).toBe(
    `of ${API} only spec goes up and status comes down: binaryData, data stay in this cluster`,
  );
});

describe('a provider that forbids what a watch needs', () => {
  test.each(['list', 'watch'])(
    '%s: PermissionDenied beside Ready=True, looked at again until it is allowed',
    async (verb) => {
      const world = new FakeWorld();
      world.connection();
      world.provider.put(resources.crds, crd(exported()));
      world.binding();
      world.provider.beforeRequest = (request) => {
        if (request.verb === verb && request.api === API)
          throw new KbindError('forbidden', 'not for you', { verb, api: API, side: 'provider' });
      };
      expect(await world.reconcile()).toMatchObject({ type: 'wait', firstSeconds: 30 });
      expect(world.condition('Ready')).toBe('True/AsExpected');
      expect(world.condition('PermissionDenied')).toBe('True/Forbidden');
      expect(message(world, 'PermissionDenied')).toContain(`grant ${verb} on ${API}`);
      world.provider.beforeRequest = () => undefined;
      await world.reconcile();
      expect(world.condition('PermissionDenied')).toBe('False/AsExpected');
      let asked = 0;
      world.provider.beforeRequest = ({ api }) => void (asked += api === API ? 1 : 0);
      await world.reconcile();
      expect(asked).toBe(0);
    },
  );
});
