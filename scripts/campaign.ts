import { planOf, run } from '../test/invariants/campaign/run.ts';
import { command, count } from './arguments.ts';
import { narrow, report, Summary } from '../test/invariants/campaign/report.ts';

const values = command(
  'npm run campaign --',
  'The fault campaign: runs the seeds S, S+1, … and ends with what they did. A violation prints its seed, its history and the smallest failing case found, and ends it with exit code 1 (docs/campaign.md).',
)
  .option('--runs <n>', 'how many seeds', count, 200)
  .option('--seed <s>', 'the first one', count, 1)
  .option('--seconds <n>', 'begin no run after this time', count, 86_400)
  .option('--verbose', 'print what happens in each run', false)
  .option('--keep-going', 'go on after a violation', false)
  .option('--no-narrowing', 'look for no smaller failing case')
  .parse()
  .opts<{ runs: number; seed: number; seconds: number; verbose: boolean; keepGoing: boolean; narrowing: boolean }>();
const first = values.seed;
const summary = new Summary();
const endsAt = performance.now() + values.seconds * 1000;
for (let seed = first; seed < first + values.runs; seed += 1) {
  if (performance.now() > endsAt) break;
  const result = await run(planOf(seed), { verbose: values.verbose });
  summary.add(result);
  if ((seed - first + 1) % 25 === 0) console.error(`seed ${seed}: ${summary.toString().split('\n')[0] ?? ''}`);
  if (values.verbose) console.log(result.log.join('\n'));
  if (result.violations.length === 0) continue;
  console.log(report(result));
  if (values.narrowing) console.log(report(await narrow(result), 'the smallest failing case'));
  if (!values.keepGoing) break;
}
console.log(summary.toString());
process.exit(summary.failed === 0 ? 0 : 1);
