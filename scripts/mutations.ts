import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { command, count } from './arguments.ts';

const program = command(
  'npm run mutations --',
  'Plants each bug of test/mutations/*.patch in a copy of the last commit and looks for it twice: on the paths of the crash points and those with a fault at a chosen place (no kill is tried), and in random histories of the campaign. Prints a table. Exit code 1 when a bug is found by neither (docs/campaign.md).',
)
  .argument('[names...]', 'patches without their ending; all by default')
  .option('--runs <n>', 'random histories for each bug; 0 only walks the paths', count, 60)
  .option('--seed <s>', 'the first of them', count, 1)
  .option('--seconds <n>', 'begin no history of a bug after this time', count, 86_400)
  .parse();
const values = program.opts<{ runs: number; seed: number; seconds: number }>();
const positionals = program.args;
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

interface Find {
  readonly where: string;
  /** The first violation. */
  readonly by: string;
}

interface Verdict {
  readonly name: string;
  readonly what: string;
  readonly onPath: Find | undefined;
  readonly inRun: Find | undefined;
}

function hunt(file: string): Verdict {
  const patch = join(folder, file);
  const tree = join(mkdtempSync(join(tmpdir(), 'mutation-')), 'tree');
  git(root, 'worktree', 'add', '--detach', tree, 'HEAD');
  try {
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
    git(tree, 'apply', patch);
    const what = readFileSync(patch, 'utf8').split('\n')[0] ?? '';
    return { name: basename(file, '.patch'), what, onPath: onPaths(tree), inRun: inCampaign(tree) };
  } finally {
    git(root, 'worktree', 'remove', '--force', tree);
  }
}

/** In which of the campaign's runs. */
function inCampaign(tree: string): Find | undefined {
  const { runs, seed, seconds } = values;
  if (runs === 0) return undefined;
  const limits = Object.entries({ runs, seed, seconds }).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const output = outputOf(tree, 'campaign.ts', ...limits, '--no-narrowing');
  const found = /^violation: seed (\d+)/m.exec(output)?.[1];
  return found === undefined ? undefined : { where: String(Number(found) - seed + 1), by: violationOf(output) };
}

/** On which of the short histories of one thing each. */
function onPaths(tree: string): Find | undefined {
  const output = outputOf(tree, 'crash-points.ts', '--every', '0');
  const found = /^(.*), not killed: seed/m.exec(output)?.[1];
  return found === undefined ? undefined : { where: found, by: violationOf(output) };
}

/** @throws Error when a script does not come to its end. */
function outputOf(tree: string, script: string, ...args: readonly string[]): string {
  const command = [join('scripts', script), ...args];
  const { stdout, stderr } = spawnSync(process.execPath, command, { cwd: tree, encoding: 'utf8' });
  if (!/^\d+ runs in/m.test(stdout)) throw new Error(`${script} broke off: ${stderr.slice(0, 400)}`);
  return stdout;
}

const violationOf = (output: string): string => (/^ {2}! (?:[\d.]+ ms: )?(.*)$/m.exec(output)?.[1] ?? '').slice(0, 110);

const inCell = (text: string): string => text.replaceAll('|', '\\|');

console.log('| planted bug | what it does | found on the path | in run | by |\n| --- | --- | --- | --- | --- |');
let missed = 0;
for (const file of wanted) {
  const { name, what, onPath, inRun } = hunt(file);
  if (onPath === undefined && inRun === undefined) missed += 1;
  const run = inRun?.where ?? (values.runs === 0 ? '' : `not in ${values.runs}`);
  console.log(`| ${name} | ${what} | ${onPath?.where ?? 'none'} | ${run} | ${inCell((onPath ?? inRun)?.by ?? '')} |`);
}
process.exit(missed === 0 ? 0 : 1);
