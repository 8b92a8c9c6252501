import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeFields, encodeFields, FieldSet, showPath } from '../../../lib/embedded/ssa/fieldset.ts';

const element = fc.oneof(
  fc.string({ minLength: 1, maxLength: 5 }).map((name) => `f:${name}`),
  fc.string({ maxLength: 3 }).map((value) => `v:${JSON.stringify(value)}`),
  fc.integer().map((port) => `k:${JSON.stringify({ port })}`),
);
const paths = fc.array(fc.array(element, { minLength: 1, maxLength: 4 }), { maxLength: 12 });

function setOf(list: string[][]): FieldSet {
  const set = new FieldSet();
  for (const path of list) set.insert(path);
  return set;
}

describe('field sets', () => {
  it('survive being written and read', () => {
    fc.assert(
      fc.property(paths, (list) => {
        expect(decodeFields(encodeFields(setOf(list))).equals(setOf(list))).toBe(true);
      }),
    );
  });

  it('hold what was inserted, and nothing else', () => {
    fc.assert(
      fc.property(paths, (list) => {
        const set = setOf(list);
        expect(list.every((path) => set.has(path))).toBe(true);
        expect(set.paths()).toHaveLength(new Set(list.map((path) => JSON.stringify(path))).size);
      }),
    );
  });

  it('add up: what is in one or in both makes the union', () => {
    fc.assert(
      fc.property(paths, paths, (one, two) => {
        const [a, b] = [setOf(one), setOf(two)];
        expect(a.difference(b).union(a.intersection(b)).equals(a)).toBe(true);
        expect(a.union(b).difference(b).equals(a.difference(b))).toBe(true);
        expect(a.difference(a).empty).toBe(true);
      }),
    );
  });

  it('show paths as kubectl does', () => {
    expect(showPath(['f:spec', 'f:ports', 'k:{"name":"http","port":80}', 'f:port'])).toBe(
      '.spec.ports[name="http",port=80].port',
    );
    expect(showPath(['f:metadata', 'f:finalizers', 'v:"a/b"'])).toBe('.metadata.finalizers[="a/b"]');
  });

  it('refuse elements that are none', () => {
    expect(() => decodeFields({ 'x:a': {} })).toThrow('unknown path element');
    expect(() => decodeFields('text')).toThrow('not an object');
  });
});
