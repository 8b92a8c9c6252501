import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** Rules that nobody has seen fire may be misspelt or switched off: each of these files breaks one. */
const root = join(import.meta.dirname, '..', '..', '..');
const lines = (count: number, line: string): string => Array.from({ length: count }, () => line).join('\n');

const broken: readonly { readonly rule: string; readonly file: string; readonly text: string }[] = [
  {
    rule: 'no-floating-promises',
    file: 'lib/kube/floating.ts',
    text: 'async function go(): Promise<void> {}\nexport function start(): void {\n  go();\n}\n',
  },
  {
    rule: 'no-misused-promises',
    file: 'lib/kube/misused.ts',
    text: 'export const start = (): void => [1].forEach(async () => Promise.resolve());\n',
  },
  {
    rule: 'switch-exhaustiveness-check',
    file: 'lib/kube/switch.ts',
    text: "export function word(of: 'a' | 'b'): string {\n  switch (of) {\n    case 'a':\n      return 'A';\n  }\n  return '';\n}\n",
  },
  {
    rule: 'no-explicit-any',
    file: 'lib/kube/any.ts',
    text: 'export const all = (value: any): string => String(value);\n',
  },
  {
    rule: 'no-non-null-assertion',
    file: 'lib/kube/assertion.ts',
    text: 'export const first = (list: string[]): string => list[0]!;\n',
  },
  { rule: 'max-lines', file: 'lib/kube/long.ts', text: `${lines(301, 'export {};')}\n` },
  {
    rule: 'max-lines-per-function',
    file: 'lib/kube/long-function.ts',
    text: `export function long(list: string[]): void {\n${lines(51, "  list.push('');")}\n}\n`,
  },
  {
    rule: 'max-params',
    file: 'lib/kube/params.ts',
    text: 'export const five = (a: 1, b: 1, c: 1, d: 1, e: 1): number => a + b + c + d + e;\n',
  },
  {
    rule: 'max-depth',
    file: 'lib/kube/deep.ts',
    text: 'export function deep(a: boolean): number {\n  if (a) {\n    while (a) {\n      if (a) {\n        if (a) return 1;\n      }\n    }\n  }\n  return 2;\n}\n',
  },
  { rule: 'no-console', file: 'lib/kube/console.ts', text: "console.log('');\n" },
  {
    rule: 'no-empty',
    file: 'lib/kube/empty.ts',
    text: 'export function go(): void {\n  try {\n    go();\n  } catch {}\n}\n',
  },
  { rule: 'no-process-env', file: 'lib/kube/environment.ts', text: "export const home = process.env['HOME'];\n" },
  {
    rule: 'no-disabled-tests',
    file: 'test/unit/off.test.ts',
    text: "import { it } from 'vitest';\nit.skip('is off', () => undefined);\n",
  },
  {
    rule: 'no-focused-tests',
    file: 'test/unit/only.test.ts',
    text: "import { it } from 'vitest';\nit.only('is alone', () => undefined);\n",
  },
  ...[
    ['lib/model/up.ts', '../kube/any.ts'],
    ['lib/kube/up.ts', '../queue/up.ts'],
    ['lib/schema/up.ts', '../reconcile/up.ts'],
    ['lib/fleet/up.ts', '../app/up.ts'],
    ['lib/queue/up.ts', '../reconcile/up.ts'],
    ['lib/reconcile/up.ts', '../queue/up.ts'],
    ['lib/reconcile/connection/up.ts', '../../queue/up.ts'],
    ['lib/sweep/up.ts', '../app/up.ts'],
    ['lib/forwarder/up.ts', '../app/up.ts'],
    ['lib/app/up.ts', '../local/up.ts'],
    ['lib/embedded/up.ts', '../kube/any.ts'],
    ['lib/embedded/rest/up.ts', '../../model/up.ts'],
    ['functions/up.ts', '../lib/kube/any.ts'],
  ].map(([file = '', target = '']) => ({
    rule: 'no-restricted-imports',
    file,
    text: `export * from '${target}';\n`,
  })),
];

let folder = '';
let found = new Map<string, string[]>();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kbind-lint-'));
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json']) cpSync(join(root, name), join(folder, name));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, text } of broken) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  const run = spawnSync('oxlint', ['--format', 'json', 'lib', 'functions', 'test'], { cwd: folder, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(run.stdout) as { diagnostics: { filename: string; code: string }[] };
  found = new Map(
    [...Map.groupBy(diagnostics, ({ filename }) => filename)].map(([file, all]) => [file, all.map(({ code }) => code)]),
  );
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(broken)('$rule fires in $file', ({ rule, file }) => {
  expect(found.get(file) ?? []).toContainEqual(expect.stringContaining(`(${rule})`));
});
