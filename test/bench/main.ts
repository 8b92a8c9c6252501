import { cpus, loadavg, totalmem } from 'node:os';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Argument, Option } from 'commander';
import { command, positive } from '../../scripts/arguments.ts';
import type { ServerName } from '../support/bench/servers.ts';
import { Bench } from './bench.ts';
import { fleet, idle, storm } from './clusters.ts';
import { limit } from './limit.ts';
import { local } from './local.ts';
import { medianRuns, summarize } from './medians.ts';
import { tableOf, type Result } from './result.ts';
import { change, create, deletion, lag, noop, status } from './scenarios.ts';
import { backstop, drain, fanout, relist } from './sweeps.ts';

type InCell = (bench: Bench) => Promise<Result | readonly Result[]>;
/** These leave the cell as they found it, so that they can be repeated: their medians are told. */
const REPEATED: Readonly<Record<string, InCell>> = { limit, create, change, status, delete: deletion };
const ONCE: Readonly<Record<string, InCell>> = { noop, backstop, relist, fanout, lag, drain };
const ON_ITS_OWN: Readonly<Record<string, (n: number, server: ServerName) => Promise<Result>>> = {
  local: (_n, server) => local(server),
  storm,
  idle,
  fleet,
};
const ALL = [REPEATED, ONCE, ON_ITS_OWN].flatMap((group) => Object.keys(group));

const program = command(
  'npm run bench --',
  'What the product costs, counted at the API servers and the queues. Times are told and never judged (docs/performance.md). Real API servers by default where KUBEBUILDER_ASSETS names them.',
)
  .addArgument(new Argument('[scenarios...]', 'all by default, but for fleet').choices(ALL))
  .option('--json', 'JSON instead of a table', false)
  .addOption(
    new Option('--server <kind>', 'the API servers')
      .choices(['embedded', 'real'])
      .default(process.env['KUBEBUILDER_ASSETS'] ? 'real' : 'embedded'),
  )
  .option('--n <n>', 'objects', positive, 100)
  .option(
    '--repeat <r>',
    'rounds of limit, create, change, status and delete, of which the medians are told',
    positive,
    1,
  )
  .option('--out <directory>', 'keep the results as DIRECTORY/SERVER-N.json, from which docs/bench is made')
  .parse();
const values = program.opts<{ json: boolean; server: ServerName; n: number; repeat: number; out?: string }>();
const { n, repeat, server } = values;
const wanted = new Set(program.args.length === 0 ? ALL.filter((name) => name !== 'fleet') : program.args);

const results: Result[] = [];
const keep = (result: Result | readonly Result[]): void => {
  for (const each of [result].flat()) {
    results.push(each);
    const used = each.processes.map(({ name, cpuMs, peakRssMb }) => `${name} ${cpuMs} ms ${peakRssMb} MB`).join(', ');
    process.stderr.write(
      `${each.scenario}: ${each.requests} requests, ${each.writes} writes, ${each.messages} messages, ${each.ms} ms (${used})\n`,
    );
  }
};

async function runInCell(): Promise<void> {
  const repeated = Object.entries(REPEATED).filter(([name]) => wanted.has(name));
  const once = Object.entries(ONCE).filter(([name]) => wanted.has(name));
  if (repeated.length + once.length === 0) return;
  const bench = await Bench.start({ server, n });
  try {
    for (let round = 0; round < repeat; round += 1) for (const [, run] of repeated) keep(await run(bench));
    for (const [, run] of once) keep(await run(bench));
  } finally {
    await bench.stop();
  }
}

const loadBefore = loadavg()[0] ?? 0;
await runInCell();
for (const [name, run] of Object.entries(ON_ITS_OWN)) if (wanted.has(name)) keep(await run(n, server));

const machine = {
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  /** Of others: the minute before the run. */
  load: Math.round(loadBefore * 10) / 10,
};
const summary = summarize(results);
const report = `${JSON.stringify({ machine, server, n, repeat, summary, results }, undefined, 2)}\n`;
if (values.out !== undefined) {
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, `${server}-${n}.json`), report);
}
process.stdout.write(values.json ? report : `${tableOf(medianRuns(results), summary)}\n`);
process.exit(0);
