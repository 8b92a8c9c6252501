import { describe, expect, it } from 'vitest';
import { Unsupported } from '../../../lib/embedded/cel/ast.ts';
import { checkSupported, evaluate } from '../../../lib/embedded/cel/evaluate.ts';
import { parseRule } from '../../../lib/embedded/cel/parser.ts';

const run = (rule: string, self: unknown = {}, oldSelf?: unknown): unknown =>
  evaluate(parseRule(rule), { self, oldSelf });

describe('rules', () => {
  it.each([
    ['1 + 2 * 3 == 7', true],
    ['(1 + 2) * 3 == 9', true],
    ['7 / 2 == 3 && 7 % 2 == 1', true],
    ['!(true && false) || false', true],
    ['1 < 2 ? "a" : "b"', 'a'],
    ['"a" in ["a", "b"] && !("c" in ["a"])', true],
    ['"k" in {"k": 1}', true],
    ['[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]', true],
    ['[1, 2].exists_one(x, x == 2)', true],
    ["'it\\'s'.size() == 4 && r'\\d' == '\\\\d'", true],
    ['"abc".matches("^a.c$") && "a,b".split(",").size() == 2', true],
    ['size("😀") == 1', true],
    ['-1 < 0', true],
  ])('%s', (rule, expected) => {
    expect(run(rule)).toEqual(expected);
  });

  it('reads fields, has() and old values', () => {
    expect(run('self.a.b == 1 && has(self.a) && !has(self.c)', { a: { b: 1 } })).toBe(true);
    expect(run('self == oldSelf', 'a', 'b')).toBe(false);
    expect(run('self.x__dash__y == 1', { 'x-y': 1 })).toBe(true);
  });

  it('lets one decisive side win over an error on the other', () => {
    expect(run('self.missing == 1 || true')).toBe(true);
    expect(run('self.missing == 1 && false')).toBe(false);
    expect(() => run('self.missing == 1 || false')).toThrow('no such key: missing');
  });

  it.each([
    'self.?a.orValue(1)',
    'quantity(self.a).isGreaterThan(quantity("1"))',
    'unknown(self)',
    'self.a ==',
    'url(self.a).getHost()',
  ])('does not pretend to know %s', (rule) => {
    expect(() => checkSupported(parseRule(rule), ['self', 'oldSelf'])).toThrow(Unsupported);
  });
});
