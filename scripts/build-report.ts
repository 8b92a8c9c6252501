import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Reports what `npm run build` left in .build: size of each function's bundle, the packages that weigh most in it, and how
 * long its import takes in a fresh process beside a handler that does nothing. `node scripts/build-report.ts [RUNS]`.
 * Times mean something on a quiet machine only; nothing here is a limit (test/integration/local/bundles.test.ts has those).
 */
const RUNS = Number(process.argv[2] ?? 10);
const HEAVIEST = 6;
const built = join(import.meta.dirname, '..', '.build');

const TIMER = `
const began = performance.now();
const cpu = process.cpuUsage();
const { handler } = await import(process.argv[1]);
if (typeof handler !== 'function') throw new Error('no handler');
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(JSON.stringify({ wall: performance.now() - began, cpu: (user + system) / 1000 }));
`;

interface Took {
  readonly wall: number;
  /** Of all threads: stays true on a machine that does other things. */
  readonly cpu: number;
}

function importMs(file: string): Took {
  const url = pathToFileURL(file).href;
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', TIMER, url], { encoding: 'utf8' }),
  ) as Took;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle) - 1] ?? 0)) / 2;
}

interface Metafile {
  readonly outputs: Readonly<Record<string, { readonly inputs: Readonly<Record<string, { bytesInOutput: number }>> }>>;
}

/** The part of a path that tells where it is from: a package, or a folder of ours. */
const origin = (file: string): string =>
  [...file.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].at(-1)?.[1] ?? file.split('/').slice(0, 2).join('/');

function heaviest(name: string): string {
  const { outputs } = JSON.parse(readFileSync(join(built, 'maps', `${name}.meta.json`), 'utf8')) as Metafile;
  const sums = new Map<string, number>();
  for (const { inputs } of Object.values(outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      sums.set(origin(file), (sums.get(origin(file)) ?? 0) + bytesInOutput);
    }
  }
  const largest = [...sums].toSorted(([, a], [, b]) => b - a).slice(0, HEAVIEST);
  return largest.map(([from, bytes]) => `${from} ${kilobytes(bytes)}`).join(', ');
}

const kilobytes = (bytes: number): string => `${Math.round(bytes / 1000)}`;

const scratch = mkdtempSync(join(tmpdir(), 'kbind-report-'));
try {
  const bare = join(scratch, 'bare.mjs');
  writeFileSync(bare, 'export const handler = async () => undefined;\n');
  const names = readdirSync(join(built, 'functions')).filter((name) => !name.endsWith('.zip'));
  const files = new Map([
    ['(bare)', bare],
    ...names.map((name) => [name, join(built, 'functions', name, `${name}.mjs`)] as const),
  ]);
  const times = new Map<string, Took[]>();
  // In turns, so that what else the machine does falls on all of them alike.
  for (let run = 0; run < RUNS; run += 1) {
    for (const [name, file] of files) times.set(name, [...(times.get(name) ?? []), importMs(file)]);
  }
  const of = (name: string, kind: keyof Took): number => median((times.get(name) ?? []).map((took) => took[kind]));
  console.log(
    '| function | KB | KB zipped | import, ms over a bare handler | CPU, ms over it | heaviest, KB |\n| --- | --- | --- | --- | --- | --- |',
  );
  for (const name of names) {
    const size = statSync(join(built, 'functions', name, `${name}.mjs`)).size;
    const zipped = statSync(join(built, 'functions', `${name}.zip`)).size;
    const over = (kind: keyof Took): number => Math.round(of(name, kind) - of('(bare)', kind));
    console.log(
      `| ${name} | ${kilobytes(size)} | ${kilobytes(zipped)} | ${over('wall')} | ${over('cpu')} | ${heaviest(name)} |`,
    );
  }
  console.log(
    `\nMedian of ${RUNS} fresh processes each, Node ${process.version}; the bare handler takes ${of('(bare)', 'wall').toFixed(1)} ms.`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
