import { command, amount } from './arguments.ts';
import { amountsOf, billOf, forwarderShare, type Fleet } from './cost-model.ts';

const values = command('npm run cost --', 'What a month of a cell costs, for your numbers (docs/cost.md).')
  .option('--clusters <n>', 'consumer clusters', amount, 20)
  .option('--apis <n>', 'bound APIs of each', amount, 3)
  .option('--objects <n>', 'instances of each API', amount, 200)
  .option('--changes <n>', 'spec changes an hour and cluster', amount, 10)
  .option('--table', 'the table of docs/cost.md instead', false)
  .parse()
  .opts<{ clusters: number; apis: number; objects: number; changes: number; table: boolean }>();

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
else {
  const { clusters, apis, objects, changes } = values;
  print({ clusters, apis, objects, changesPerHour: changes });
}
