import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RELATED_ROUTES_ANNOTATION } from '../../../lib/model/markers.ts';
import type { Side } from '../../../lib/reconcile/world.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { clusterBindings, namespaces, Pair, secrets } from './fixture.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const at = (name: string) => ({ namespace: 'default', name });
const sides: readonly Side['which'][] = ['provider', 'consumer'];
const directions = ['FromProvider', 'FromConsumer'] as const;
const ends = {
  FromProvider: { source: 'provider', target: 'consumer' },
  FromConsumer: { source: 'consumer', target: 'provider' },
} as const;
const cases = directions.flatMap((direction) => sides.map((elsewhere) => ({ direction, elsewhere })));

/**
 * An address that leads to another cluster since the last answer to who it is: what is read there is not copied, and nothing
 * is written or deleted there. A Secret of one cluster would stand in another, where nobody cleans it up.
 */
describe.each(clusterKinds())('related resources while an address leads elsewhere: $name', (kind) => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await Pair.start(kind);
  }, 180_000);
  afterEach(() => {
    pair.elsewhere = undefined;
    pair.before = () => Promise.resolve();
  });
  afterAll(() => pair.stop());

  /** A binding that asks for one Secret by name, which its cluster does not have yet. */
  async function bound(name: string, direction: (typeof directions)[number]) {
    await pair.bind(name, [{ resource: 'secrets', direction, selector: { names: [name] } }]);
    await pair.settle(name);
    const { source, target } = ends[direction];
    return {
      source,
      target,
      makeSource: (fields: object = {}) =>
        pair.make(source, secrets, at(name), { data: { a: base64('1') }, ...fields }),
      copy: async () => (await pair.find(target, secrets, at(name)))?.['data'],
    };
  }

  /** The pass fails for the cluster's sake and has written nothing. */
  async function refused(name: string, elsewhere: Side['which']): Promise<void> {
    pair.elsewhere = elsewhere;
    pair.requests.splice(0);
    await expect(pair.reconcile(name)).rejects.toMatchObject({ errorClass: 'identity' });
    expect(pair.writes).toEqual([]);
    pair.elsewhere = undefined;
  }

  test.each(cases)('no Secret is made $direction while the $elsewhere is another', async ({ direction, elsewhere }) => {
    const name = `make-${direction}-${elsewhere}`.toLowerCase();
    const { makeSource, copy } = await bound(name, direction);
    await makeSource();
    await refused(name, elsewhere);
    await pair.settle(name);
    expect(await copy()).toEqual({ a: base64('1') });
  });

  test.each(cases)('none is changed $direction while the $elsewhere is', async ({ direction, elsewhere }) => {
    const name = `change-${direction}-${elsewhere}`.toLowerCase();
    const { source, makeSource, copy } = await bound(name, direction);
    await makeSource();
    await pair.settle(name);
    await pair.patch(source, secrets, at(name), [{ op: 'replace', path: '/data/a', value: base64('2') }]);
    await refused(name, elsewhere);
    await pair.settle(name);
    expect(await copy()).toEqual({ a: base64('2') });
  });

  test.each(cases)('none is replaced $direction while the $elsewhere is', async ({ direction, elsewhere }) => {
    const name = `replace-${direction}-${elsewhere}`.toLowerCase();
    const { source, makeSource, copy } = await bound(name, direction);
    await makeSource({ immutable: true });
    await pair.settle(name);
    await pair.remove(source, secrets, at(name));
    await makeSource({ immutable: true, data: { a: base64('2') } });
    await refused(name, elsewhere);
    await pair.settle(name);
    expect(await copy()).toEqual({ a: base64('2') });
  });

  test.each(cases)('none is deleted $direction while the $elsewhere is', async ({ direction, elsewhere }) => {
    const name = `delete-${direction}-${elsewhere}`.toLowerCase();
    const { source, makeSource, copy } = await bound(name, direction);
    await makeSource();
    await pair.settle(name);
    await pair.remove(source, secrets, at(name));
    await refused(name, elsewhere);
    await pair.settle(name);
    expect(await copy()).toBeUndefined();
  });

  test.each(directions)(
    '%s a route is forgotten only where the cluster without copies is the one that was meant',
    async (direction) => {
      const name = `route-${direction}`.toLowerCase();
      const { makeSource, target } = await bound(name, direction);
      await makeSource();
      await pair.settle(name);
      await pair.edit(name, []);
      // As another cluster's list would show it.
      await pair.remove(target, secrets, at(name));
      await refused(name, target);
      await pair.settle(name);
      expect((await pair.find('consumer', clusterBindings, { name }))?.metadata.annotations).not.toHaveProperty(
        RELATED_ROUTES_ANNOTATION,
      );
    },
  );

  test.each(directions)(
    '%s a cluster that misses the namespace is asked who it is before one is made',
    async (direction) => {
      const name = `namespace-${direction}`.toLowerCase();
      const key = { namespace: name, name };
      const { source, target } = ends[direction];
      await pair.bind(name, [{ resource: 'secrets', direction, selector: { names: [name] } }]);
      await pair.settle(name);
      await pair.make(source, namespaces, { name });
      await pair.make(source, secrets, key, { data: { a: base64('1') } });
      pair.before = (line) => {
        if (line === `${target} create secrets ${name}/${name}`) pair.elsewhere = target;
        return Promise.resolve();
      };
      await expect(pair.reconcile(name)).rejects.toMatchObject({ errorClass: 'identity' });
      expect(await pair.find(target, namespaces, { name })).toBeUndefined();
    },
  );
});
