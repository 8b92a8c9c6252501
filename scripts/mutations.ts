import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Plants each bug of test/mutations/*.patch in a copy of the last commit and has the campaign look for it:
 * `node scripts/mutations.ts [--runs N] [--seed S] [--seconds N] [NAME…]`. Ends with a table; fails when a bug is not found.
 */
const { values, positionals } = parseArgs({
  options: {
    runs: { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
    /** For each bug. */
    seconds: { type: 'string', default: '86400' },
  },
  allowPositionals: true,
});
const root = join(import.meta.dirname, '..');
const folder = join(root, 'test', 'mutations');
const wanted =
  positionals.length > 0
    ? positionals.map((name) => `${name}.patch`)
    : readdirSync(folder).filter((file) => file.endsWith('.patch'));

function git(cwd: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
}

interface Verdict {
  readonly name: string;
  readonly what: string;
  /** In which run it was found; undefined: not at all. */
  readonly run: number | undefined;
  readonly runs: string;
  readonly by: string;
}

function hunt(file: string): Verdict {
  const patch = join(folder, file);
  const tree = join(mkdtempSync(join(tmpdir(), 'mutation-')), 'tree');
  git(root, 'worktree', 'add', '--detach', tree, 'HEAD');
  try {
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
    git(tree, 'apply', patch);
    const args = [
      'scripts/campaign.ts',
      '--runs',
      values.runs,
      '--seed',
      values.seed,
      '--seconds',
      values.seconds,
      '--no-narrowing',
    ];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: tree, encoding: 'utf8' });
    const seed = /^violation: seed (\d+)/m.exec(stdout)?.[1];
    const by = /^ {2}! (?:[\d.]+ ms: )?(.*)$/m.exec(stdout)?.[1] ?? stderr.slice(0, 200);
    const what = readFileSync(patch, 'utf8').split('\n')[0] ?? '';
    const runs = /^(\d+) runs in/m.exec(stdout)?.[1] ?? '0';
    const run = seed === undefined ? undefined : Number(seed) - Number(values.seed) + 1;
    return { name: basename(file, '.patch'), what, run, runs, by: by.slice(0, 110) };
  } finally {
    git(root, 'worktree', 'remove', '--force', tree);
  }
}

console.log('| planted bug | what it does | found in run | by |\n| --- | --- | --- | --- |');
let missed = 0;
for (const file of wanted) {
  const { name, what, run, runs, by } = hunt(file);
  if (run === undefined) missed += 1;
  console.log(`| ${name} | ${what} | ${run ?? `not in ${runs}`} | ${by.replaceAll('|', '\\|')} |`);
}
process.exit(missed === 0 ? 0 : 1);
