import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import type { ServerName } from '../support/bench/servers.ts';
import { tableOf, type Result } from './result.ts';
import { Bench, fleet, idle, storm } from './scenarios.ts';

/**
 * `npm run bench -- [SCENARIO…] [--json] [--server embedded|real] [--n N]`: what the product costs, counted at the API servers and the
 * queues. Times are told and never judged. Real API servers by default where KUBEBUILDER_ASSETS names them.
 */
const ORDER = [
  'limit',
  'create',
  'change',
  'status',
  'noop',
  'backstop',
  'relist',
  'fanout',
  'lag',
  'delete',
  'drain',
] as const;
const ALL = [...ORDER, 'storm', 'idle', 'fleet'] as const;
type Scenario = (typeof ALL)[number];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    server: { type: 'string', default: process.env['KUBEBUILDER_ASSETS'] ? 'real' : 'embedded' },
    n: { type: 'string', default: '100' },
  },
});
const n = Number(values.n);
const unknown = positionals.filter((name) => !(ALL as readonly string[]).includes(name));
const wrong = [
  ...(unknown.length === 0 ? [] : [`no scenario ${unknown.join(', ')}: there are ${ALL.join(', ')}`]),
  ...(Number.isInteger(n) && n > 0 ? [] : ['--n wants a number']),
  ...(['embedded', 'real'].includes(values.server) ? [] : ['--server is embedded or real']),
];
if (wrong.length > 0) {
  process.stderr.write(`${wrong.join('\n')}\n`);
  process.exit(2);
}
const server = values.server as ServerName;
const wanted = new Set<Scenario>(
  positionals.length === 0 ? ALL.filter((name) => name !== 'fleet') : (positionals as Scenario[]),
);

const tell = (text: string): void => void process.stderr.write(`${text}\n`);
const results: Result[] = [];
const keep = (result: Result | readonly Result[]): void => {
  for (const each of [result].flat()) {
    results.push(each);
    tell(
      `${each.scenario}: ${each.requests} requests, ${each.writes} writes, ${each.messages} messages, ${each.ms} ms`,
    );
  }
};

const inCell = ORDER.filter((name) => wanted.has(name));
if (inCell.length > 0) {
  const bench = await Bench.start({ server, n });
  try {
    for (const name of inCell) keep(await bench[name]());
  } finally {
    await bench.stop();
  }
}
if (wanted.has('storm')) keep(await storm(n));
if (wanted.has('idle')) keep(await idle(n));
if (wanted.has('fleet')) keep(await fleet(n));

const machine = {
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 2 ** 30),
  node: process.version,
};
process.stdout.write(
  values.json ? `${JSON.stringify({ machine, server, n, results }, undefined, 2)}\n` : `${tableOf(results)}\n`,
);
process.exit(0);
