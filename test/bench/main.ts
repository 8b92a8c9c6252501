import { cpus, loadavg, totalmem } from 'node:os';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ServerName } from '../support/bench/servers.ts';
import { Bench } from './bench.ts';
import { fleet, idle, storm } from './clusters.ts';
import { limit } from './limit.ts';
import { local } from './local.ts';
import { medianRuns, summarize } from './medians.ts';
import { tableOf, type Result } from './result.ts';
import { change, create, deletion, lag, noop, status } from './scenarios.ts';
import { backstop, drain, fanout, relist } from './sweeps.ts';

/**
 * `npm run bench -- [SCENARIO…] [--json] [--server embedded|real] [--n N] [--repeat R] [--out DIRECTORY]`: what the product
 * costs, counted at the API servers and the queues. Times are told and never judged. Real API servers by default where
 * KUBEBUILDER_ASSETS names them. `--out` keeps the results as DIRECTORY/SERVER-N.json, from which docs/bench is made.
 */

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

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    server: { type: 'string', default: process.env['KUBEBUILDER_ASSETS'] ? 'real' : 'embedded' },
    n: { type: 'string', default: '100' },
    repeat: { type: 'string', default: '1' },
    out: { type: 'string' },
  },
});
const n = Number(values.n);
const repeat = Number(values.repeat);
const unknown = positionals.filter((name) => !ALL.includes(name));
const isCount = (value: number): boolean => Number.isInteger(value) && value > 0;
const wrong = [
  ...(unknown.length === 0 ? [] : [`no scenario ${unknown.join(', ')}: there are ${ALL.join(', ')}`]),
  ...(isCount(n) && isCount(repeat) ? [] : ['--n and --repeat want a number']),
  ...(['embedded', 'real'].includes(values.server) ? [] : ['--server is embedded or real']),
];
if (wrong.length > 0) {
  process.stderr.write(`${wrong.join('\n')}\n`);
  process.exit(2);
}
const server = values.server as ServerName;
const wanted = new Set(positionals.length === 0 ? ALL.filter((name) => name !== 'fleet') : positionals);

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
