import { command, count } from './arguments.ts';
import { paths, planOfPath, type Path } from '../test/invariants/campaign/crash-points.ts';
import { pathsWithFaults } from '../test/invariants/campaign/paths-with-faults.ts';
import { report, Summary } from '../test/invariants/campaign/report.ts';
import { run } from '../test/invariants/campaign/run.ts';

const values = command(
  'npm run crash-points --',
  'Kills the functions at each await of each reconcile path in turn, and prints a line per path. Exit code 1 where a kill left something undone or behind, or where time was up before the last await (docs/campaign.md).',
)
  .option('--path <text>', 'only paths whose name holds this', '')
  .option(
    '--every <n>',
    'kill at every n-th await; 0 only walks the paths, those with a fault at a chosen place first',
    count,
    1,
  )
  .option('--from <n>', 'the first await to kill at', count, 1)
  .option('--seconds <n>', 'kill no more after this time', count, 86_400)
  .parse()
  .opts<{ path: string; every: number; from: number; seconds: number }>();
const endsAt = performance.now() + values.seconds * 1000;
const summary = new Summary();
let left = 0;

async function walk(path: Path): Promise<void> {
  const whole = await run(planOfPath(path, 0));
  summary.add(whole);
  if (whole.violations.length > 0) console.log(report(whole, `${path.name}, not killed`));
  let [killed, failed] = [0, 0];
  if (values.every === 0) return;
  for (let point = values.from; point <= whole.awaits; point += values.every) {
    if (performance.now() > endsAt) {
      left += 1;
      continue;
    }
    const result = await run(planOfPath(path, point));
    summary.add(result);
    killed += 1;
    if (result.violations.length === 0) continue;
    failed += 1;
    console.log(report(result, `${path.name}, killed at await ${point} of ${whole.awaits}`));
  }
  console.log(`${path.name}: ${whole.awaits} awaits, killed at ${killed}, ${failed} with violations`);
}

const onlyWalked = values.every === 0 ? pathsWithFaults : [];
for (const path of [...onlyWalked, ...paths].filter(({ name }) => name.includes(values.path))) {
  await walk(path);
  // Whoever only walks the paths asks whether there is a violation at all.
  if (values.every === 0 && summary.failed > 0) break;
}
console.log(`${summary.toString()}${left === 0 ? '' : `\n${left} awaits were not reached in time`}`);
process.exit(summary.failed === 0 && left === 0 ? 0 : 1);
