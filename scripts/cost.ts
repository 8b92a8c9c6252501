import { parseArgs } from 'node:util';
import { amountsOf, billOf, forwarderShare, type Fleet } from './cost-model.ts';

/** `npm run cost -- --clusters 200 --apis 3 --objects 500 --changes 20`: a month of a cell, docs/cost.md. `--table`: the page's table. */
const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '20' },
    apis: { type: 'string', default: '3' },
    objects: { type: 'string', default: '200' },
    changes: { type: 'string', default: '10' },
    table: { type: 'boolean', default: false },
  },
});

function number(name: 'clusters' | 'apis' | 'objects' | 'changes'): number {
  const value = Number(values[name]);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number that is not negative`);
  return value;
}

const dollars = (amount: number): string =>
  `$${amount < 100 ? amount.toFixed(2) : Math.round(amount).toLocaleString('en')}`;
const millions = (amount: number): string => `${(amount / 1e6).toFixed(2)} M`;

function print(fleet: Fleet): void {
  const amounts = amountsOf(fleet);
  const bill = billOf(fleet);
  console.log(
    `${fleet.clusters} clusters, ${fleet.apis} APIs each, ${fleet.objects} objects per API, ${fleet.changesPerHour} changes an hour and cluster`,
  );
  console.log('\nA month:');
  console.log(
    `  messages ${millions(amounts.messages)}, SQS requests ${millions(amounts.sqsStandard + amounts.sqsFifo)}, invocations ${millions(amounts.invocations)}, requests to API servers ${millions(amounts.kubeRequests)}`,
  );
  for (const { what, dollars: amount } of bill.lines) console.log(`  ${what.padEnd(28)} ${dollars(amount)}`);
  console.log(
    `  ${'the cell'.padEnd(28)} ${dollars(bill.total)}, ${dollars(bill.total / Math.max(1, fleet.clusters))} a cluster`,
  );
  console.log(`  ${'forwarders, share of nodes'.padEnd(28)} ${dollars(forwarderShare(fleet))}`);
  console.log(
    `\nOne controller pod in each cluster instead: ${dollars(bill.podsOnNodes)} as a share of nodes, ${dollars(bill.podsOnFargate)} on Fargate`,
  );
}

/** The table of docs/cost.md. */
export const EXAMPLES: readonly Fleet[] = [
  { clusters: 1, apis: 1, objects: 50, changesPerHour: 1 },
  { clusters: 20, apis: 3, objects: 200, changesPerHour: 10 },
  { clusters: 200, apis: 3, objects: 200, changesPerHour: 10 },
  { clusters: 200, apis: 3, objects: 5_000, changesPerHour: 100 },
  { clusters: 1_000, apis: 5, objects: 200, changesPerHour: 10 },
];

function printTable(): void {
  console.log(
    '| clusters | APIs | objects | changes/h | messages | invocations | cell | forwarders | pods on nodes | pods on Fargate |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const fleet of EXAMPLES) {
    const { messages, invocations } = amountsOf(fleet);
    const { total, podsOnNodes, podsOnFargate } = billOf(fleet);
    const cells = [
      fleet.clusters,
      fleet.apis,
      fleet.objects,
      fleet.changesPerHour,
      millions(messages),
      millions(invocations),
    ];
    const money = [total, forwarderShare(fleet), podsOnNodes, podsOnFargate].map(dollars);
    console.log(`| ${[...cells, ...money].join(' | ')} |`);
  }
}

if (values.table) printTable();
else
  print({
    clusters: number('clusters'),
    apis: number('apis'),
    objects: number('objects'),
    changesPerHour: number('changes'),
  });
