import { parseArgs } from 'node:util';
import { planOf, run } from '../test/invariants/campaign/run.ts';
import { narrow, report, Summary } from '../test/invariants/campaign/report.ts';

/**
 * The fault campaign: `npm run campaign -- --runs N --seed S [--seconds N] [--verbose] [--keep-going]`. Runs the seeds S, S+1, … and ends
 * with what they did; a violation prints its seed, its history and the smallest failing case found.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '86400' },
    verbose: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    'no-narrowing': { type: 'boolean', default: false },
  },
});
const first = Number(values.seed);
const summary = new Summary();
const endsAt = performance.now() + Number(values.seconds) * 1000;
for (let seed = first; seed < first + Number(values.runs); seed += 1) {
  if (performance.now() > endsAt) break;
  const result = await run(planOf(seed), { verbose: values.verbose });
  summary.add(result);
  if ((seed - first + 1) % 25 === 0) console.error(`seed ${seed}: ${summary.toString().split('\n')[0] ?? ''}`);
  if (values.verbose) console.log(result.log.join('\n'));
  if (result.violations.length === 0) continue;
  console.log(report(result));
  if (!values['no-narrowing']) console.log(report(await narrow(result), 'the smallest failing case'));
  if (!values['keep-going']) break;
}
console.log(summary.toString());
process.exit(summary.failed === 0 ? 0 : 1);
