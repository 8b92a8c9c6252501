import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalJson,
  hashJson,
  isRawNumber,
  MAX_DEPTH,
  jsonEqual,
  parseJson,
  printForApply,
  printJson,
  refuseDeep,
} from '../../../lib/kube/json.ts';
import { jsonContains } from '../../support/json-contains.ts';
import { canonicalNumber } from '../../../lib/kube/canonical.ts';
import { parse as parseYaml } from 'yaml';

const numberText = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,30}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^\.[0-9]{1,30}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?[0-9]{1,3}$/)),
  )
  .map((parts) => parts.join(''));

describe('numbers keep their text', () => {
  test.each([
    '9007199254740993',
    '-9007199254740993',
    '9223372036854775807',
    '1.0',
    '1.50',
    '1e5',
    '1E+21',
    '-0',
    '0.1234567890123456789',
    '0',
    '12',
    '0.5',
  ])('%s, alone, in lists, in maps, with blanks before it', (number) => {
    for (const document of [number, `[${number}]`, `{"a":${number}}`, `[1,${number}]`]) {
      expect(printJson(parseJson(document))).toBe(document);
    }
    expect(printJson(parseJson(` {"a" : [ \n ${number} ] }`))).toBe(`{"a":[${number}]}`);
    expect(printJson(parseJson(`{"a"\r\n :\t${number}}`))).toBe(`{"a":${number}}`);
  });

  test('any number of any length', () => {
    fc.assert(fc.property(numberText, (number) => printJson(parseJson(`{"a":[${number}]}`)) === `{"a":[${number}]}`));
  });

  test('ordinary numbers are ordinary numbers', () => {
    expect(parseJson('{"a":1,"b":0.5,"c":"1.0"}')).toStrictEqual({ a: 1, b: 0.5, c: '1.0' });
    expect(isRawNumber((parseJson('{"a":1.0}') as { a: unknown }).a)).toBe(true);
  });
});

describe('documents survive', () => {
  test('any JSON value is what JSON.parse says', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(jsonEqual(parseJson(text), JSON.parse(text))).toBe(true);
        expect(jsonEqual(parseJson(printJson(parseJson(text))), parseJson(text))).toBe(true);
      }),
    );
  });

  test('bytes are UTF-8; others are refused', () => {
    expect(parseJson(new TextEncoder().encode('{"a":"ü😀"}'))).toStrictEqual({ a: 'ü😀' });
    expect(() => parseJson(new Uint8Array([0x22, 0xff, 0x22]))).toThrow(TypeError);
    expect(() => parseJson('{"a":')).toThrow(SyntaxError);
  });

  test('__proto__ is a member like any other', () => {
    const document = '{"__proto__":{"a":1.0},"constructor":2}';
    expect(printJson(parseJson(document))).toBe(document);
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  test('nulls, empty maps and lists, key order', () => {
    const document = '{"z":null,"a":{},"m":[],"b":[null,{}]}';
    expect(printJson(parseJson(document))).toBe(document);
  });
});

describe('objects as deep as kube-apiserver takes them, which is 10,000 levels', () => {
  const list = (depth: number, inside = '1.0'): string => `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`;
  const map = (depth: number): string => `${'{"a":'.repeat(depth)}9007199254740993${'}'.repeat(depth)}`;

  test.each([
    ['lists', list(10_000)],
    ['maps', map(10_000)],
  ])('%s are read, with all that lies beside them in a page', (_what, deep) => {
    const page = parseJson(`{"items":[{"spec":{"n":9007199254740993}},{"spec":${deep}},{"spec":{"n":1.50}}]}`);
    const [before, , after] = (page as { items: unknown[] }).items;
    expect(printJson([before, after])).toBe('[{"spec":{"n":9007199254740993}},{"spec":{"n":1.50}}]');
  });

  test('keep what lies at their bottom', () => {
    let inside = parseJson(list(10_000));
    while (Array.isArray(inside)) [inside] = inside as unknown[];
    expect(printJson(inside)).toBe('1.0');
  });

  test.each([
    ['hashed', (value: unknown) => hashJson(value)],
    ['compared', (value: unknown) => jsonEqual(value, parseJson(list(MAX_DEPTH + 2)))],
    ['looked through', (value: unknown) => jsonContains({ a: value }, { a: parseJson(list(MAX_DEPTH + 2)) })],
    ['copied', (value: unknown) => refuseDeep(value)],
  ])(
    'beyond what anybody means seriously they are refused when they are %s, as the object’s own fault',
    (_what, use) => {
      const value = parseJson(list(MAX_DEPTH + 2));
      expect(() => use(value)).toThrow(expect.objectContaining({ errorClass: 'invalid' }));
    },
  );

  test('up to there they are objects like others', () => {
    const [value, other] = [parseJson(list(MAX_DEPTH)), parseJson(list(MAX_DEPTH, '2.0'))];
    expect(hashJson(value)).not.toBe(hashJson(other));
    expect(jsonEqual(value, structuredClone(JSON.parse(list(MAX_DEPTH))))).toBe(true);
    expect(jsonEqual(value, other)).toBe(false);
    expect(() => refuseDeep(value)).not.toThrow();
  });
});

describe('bodies of server-side apply', () => {
  test('DEL, C1 controls, line and paragraph separators, byte order marks and non-characters are escaped', () => {
    const nasty = '\u007f\u0080\u0085\u009f\u2028\u2029\ufeff\ufffe\uffff';
    const printed = printJson({ [nasty]: nasty });
    expect(printed).toMatch(/^[\u0020-\u007e]*$/);
    expect(JSON.parse(printed)).toStrictEqual({ [nasty]: nasty });
  });

  test('a YAML reader sees the same value', () => {
    const value = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.constant(null)));
    fc.assert(
      fc.property(value, (map) => {
        expect(parseYaml(printForApply(map), { schema: 'core' })).toStrictEqual({ ...map });
      }),
    );
  });

  test('a key too long for YAML gets the explicit form, and only where there is one', () => {
    const long = { a: [{ ['k'.repeat(1_500)]: parseJson('1.0'), b: undefined }], c: null };
    expect(printForApply(long)).toContain('? "kkk');
    expect(parseYaml(printForApply(long))).toStrictEqual({ a: [{ ['k'.repeat(1_500)]: 1 }], c: null });
    expect(printForApply({ a: 1 })).toBe('{"a":1}');
  });
});

describe('equality and hashes', () => {
  test.each([
    ['1', '1.0'],
    ['1', '10e-1'],
    ['0', '-0'],
    ['0', '0.000'],
    ['100', '1e2'],
    ['9007199254740993', '9007199254740993.0'],
    ['0.1', '1e-1'],
    ['[1,{"a":1,"b":2}]', '[1.0,{"b":2,"a":1.00}]'],
  ])('%s equals %s', (a, b) => {
    expect(jsonEqual(parseJson(a), parseJson(b))).toBe(true);
    expect(hashJson(parseJson(a))).toBe(hashJson(parseJson(b)));
  });

  test.each([
    ['9007199254740993', '9007199254740992'],
    ['1', '"1"'],
    ['null', '{}'],
    ['{"a":null}', '{}'],
    ['[]', '{}'],
    ['[1,2]', '[2,1]'],
    ['{"a":1}', '{"a":1,"b":1}'],
    ['{"toString":1}', '{}'],
    ['{"rawJSON":"1.0"}', '1.0'],
  ])('%s is not %s', (a, b) => {
    for (const [x, y] of [
      [a, b],
      [b, a],
    ] as const) {
      expect(jsonEqual(parseJson(x), parseJson(y))).toBe(false);
      expect(canonicalJson(parseJson(x))).not.toBe(canonicalJson(parseJson(y)));
    }
  });

  test('equality and canonical text agree', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(jsonEqual(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
        expect(jsonEqual(a, structuredClone(a))).toBe(true);
      }),
    );
  });

  test('a hash is sha256: and 16 hex digits', () => {
    expect(hashJson({ a: 1 })).toMatch(/^sha256:[0-9a-f]{16}$/);
    expect(hashJson({ b: 2, a: 1 })).toBe(hashJson({ a: 1, b: 2 }));
  });

  test('the canonical text of a number is that of its value', () => {
    fc.assert(
      fc.property(numberText, (number) => {
        expect(canonicalNumber(canonicalNumber(number))).toBe(canonicalNumber(number));
        expect(Number(canonicalNumber(number)) + 0).toBe(Number(number) + 0);
      }),
    );
  });

  test('members that are undefined do not count', () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
    expect(jsonEqual({ a: undefined, b: 1 }, { b: 1 })).toBe(true);
  });
});

describe('containment', () => {
  test.each([
    ['{"a":1,"b":{"c":1,"d":2}}', '{"b":{"d":2.0}}', true],
    ['{"a":[1,2]}', '{"a":[1,2]}', true],
    ['{"a":[1,2,3]}', '{"a":[1,2]}', false],
    ['{"a":[{"x":1,"y":2}]}', '{"a":[{"x":1}]}', false],
    ['{"a":null}', '{"a":null}', true],
    ['{}', '{"a":null}', false],
    ['{}', '{"toString":{}}', false],
    ['{"a":1}', '{}', true],
    ['[]', '{}', false],
  ])('%s contains %s: %s', (whole, part, answer) => {
    expect(jsonContains(parseJson(whole), parseJson(part))).toBe(answer);
  });
});

test('no text is slow to scan', () => {
  const started = performance.now();
  for (const text of [
    `"${':'.repeat(2e6)}"`,
    `"${': '.repeat(1e6)}"`,
    `[${'1234567890'.repeat(2e5)}]`,
    `${' '.repeat(2e6)}1`,
  ]) {
    parseJson(text);
  }
  expect(performance.now() - started).toBeLessThan(5_000);
});
