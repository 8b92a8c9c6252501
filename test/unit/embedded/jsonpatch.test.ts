import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../lib/embedded/json/json.ts';
import { applyJsonPatch, applyMergePatch, PatchProblem, readSteps } from '../../../lib/embedded/patch/jsonpatch.ts';
import { age } from '../../../lib/embedded/table/age.ts';
import { evaluateJsonPath } from '../../../lib/embedded/table/jsonpath.ts';

describe('patches', () => {
  it('leave the document alone', () => {
    const document = { a: { b: [1] } };
    applyJsonPatch(document, readSteps([{ op: 'add', path: '/a/b/-', value: 2 }]));
    applyMergePatch(document, { a: null });
    expect(document).toEqual({ a: { b: [1] } });
  });

  it('put back what a test has just read', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (document) => {
        for (const [key, value] of Object.entries(document)) {
          const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
          const steps = readSteps([
            { op: 'test', path, value },
            { op: 'replace', path, value },
          ]);
          expect(applyJsonPatch(document, steps)).toEqual(document);
        }
      }),
    );
  });

  it('refuse what does not fit', () => {
    expect(() => applyJsonPatch({}, readSteps([{ op: 'remove', path: '/a' }]))).toThrow(PatchProblem);
    expect(() => applyJsonPatch({}, readSteps([{ op: 'jump', path: '/a' }]))).toThrow(PatchProblem);
  });

  it('print every digit that they read', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (number) => {
        expect(JSON.stringify(parseJson(`{"n":${number}}`))).toBe(`{"n":${number}}`);
      }),
    );
  });
});

describe('what kubectl prints', () => {
  const object = {
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'Synced', status: 'False' },
      ],
    },
    spec: { 'a.b': 1, list: [1, 2] },
  };

  it.each([
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    ['.status.conditions[*].type', ['Ready', 'Synced']],
    ['.spec.list[1]', [2]],
    ['.spec.list[-1]', [2]],
    ["{.spec['a.b']}", [1]],
    ['.spec.a\\.b', [1]],
    ['.nowhere.at.all', []],
  ])('%s', (path, expected) => {
    expect(evaluateJsonPath(object, path)).toEqual(expected);
  });

  it.each([
    [0, '0s'],
    [119, '119s'],
    [125, '2m5s'],
    [3 * 3600, '3h'],
    [49 * 3600, '2d1h'],
    [400 * 86_400, '400d'],
    [3 * 365 * 86_400, '3y'],
  ])('an age of %d seconds as %s', (seconds, expected) => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(age(new Date(now - seconds * 1000).toISOString(), now)).toBe(expected);
  });
});
