import { PassThrough } from 'node:stream';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { CliError, codeOf, exitOf } from '../../../lib/cli/exit-codes.ts';
import { keyRequest } from '../../../lib/cli/keys.ts';
import { age, parseDuration, table } from '../../../lib/cli/output.ts';
import { tellError } from '../../../lib/cli/session.ts';
import { confirm, type Terminal } from '../../../lib/cli/terminal.ts';
import { KbindError } from '../../../lib/model/errors.ts';

function terminal(extra: Partial<Terminal> = {}): Terminal & { readonly told: () => string } {
  const err = new PassThrough();
  return {
    out: new PassThrough(),
    err,
    in: new PassThrough(),
    interactive: false,
    live: false,
    quiet: false,
    colors: pc.createColors(false),
    told: () => String(err.read() ?? ''),
    ...extra,
  };
}

describe('a key', () => {
  it.each([
    ['widgets.example.org', 'default/a', { controller: 'instance', api: 'widgets.example.org', namespace: 'default' }],
    ['Connections', 'a', { controller: 'connection', name: 'a' }],
    ['clusterbindings.core.kbind.io', 'a', { controller: 'clusterbinding' }],
    ['binding', 'ns/a', { controller: 'binding', namespace: 'ns' }],
    ['crd', 'widgets.example.org', { controller: 'crd', name: 'widgets.example.org' }],
  ])('%s %s', (api, name, expected) => expect(keyRequest('c', api, name)).toMatchObject(expected));

  it.each([
    ['binding', 'a'],
    ['connection', 'ns/a'],
    ['widgets', 'a'],
    ['widgets.example.org', 'a/b/c'],
  ])('%s %s is none', (api, name) => expect(() => keyRequest('c', api, name)).toThrow('is no key'));
});

it('aligns columns by what is seen of them', () => {
  expect(
    table(
      ['A', 'B'],
      [
        ['\u001B[31mlong\u001B[39m', 'x'],
        ['y', 'z'],
      ],
      'none',
    ),
  ).toBe('A     B\n\u001B[31mlong\u001B[39m  x\ny     z');
  expect(table(['A'], [], 'none')).toBe('none');
});

it('says ages and reads durations', () => {
  expect([5_000, 300_000, 10_800_000, 864_000_000].map(age)).toEqual(['5s', '5m', '3h', '10d']);
  expect(['90s', '15m', '2h', '7d', 'x', '5'].map(parseDuration)).toEqual([
    90,
    900,
    7200,
    604_800,
    undefined,
    undefined,
  ]);
});

it('tells an error in one line without control characters, and its exit code', () => {
  const at = terminal();
  expect(tellError(at, new KbindError('unavailable', 'no\nanswer\u001B[2J'), false)).toBe(codeOf('unavailable'));
  expect(at.told()).toBe('error: no answer [2J\n');
  expect(tellError(at, new CliError('refused', 'no'), false)).toBe(4);
  expect(tellError(at, new Error('bug'), true)).toBe(1);
  expect(at.told()).toContain('at ');
  expect(exitOf('absent')).toBe('notFound');
});

describe('a question', () => {
  it('that nobody can answer is refused', async () => {
    await expect(confirm(terminal(), 'Drop it?', false)).rejects.toMatchObject({ exit: 'refused' });
    await expect(confirm(terminal(), 'Drop it?', true)).resolves.toBeUndefined();
  });

  it.each([
    ['y\n', undefined],
    ['\n', 'refused'],
    ['no\n', 'refused'],
  ])('answered with %j', async (text, exit) => {
    const input = new PassThrough();
    const asked = confirm(terminal({ interactive: true, in: input }), 'Drop it?', false).then(
      () => undefined,
      (error: CliError) => error.exit,
    );
    input.write(text);
    expect(await asked).toBe(exit);
  });
});
