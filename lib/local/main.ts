import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Command } from 'commander';
import pc from 'picocolors';

/** `npm start`: the product on this machine. */
interface Options {
  readonly fleet?: string;
  readonly once: boolean;
  readonly verbose: boolean;
}

/** Longest time that a stop may take before the process ends anyway, ms: just over the functions' own timeouts. */
const STOP_DEADLINE_MS = 70_000;

/** Where Node keeps what it compiled, ignored by git. */
const COMPILED = join(import.meta.dirname, '..', '..', '.local', 'compile-cache');

const print = (line: string): void => {
  console.log(`${pc.dim(new Date().toISOString().slice(11, 19))}  ${line}`);
};

const program = new Command('npm start --')
  .description(
    'Runs the whole product on this machine: queues in memory, the functions and schedules of serverless.yml, and a\n' +
      'forwarder for each consumer cluster.\n\n' +
      'Without --fleet it shows itself on clusters of its own: two consumers and a provider, nothing to install.',
  )
  .option('--fleet <folder>', 'folder with one NAME.kubeconfig for each consumer cluster; loopback servers are allowed')
  .option('--once', 'show the demonstration once and end with a summary (what `npm run demo` does)', false)
  .option('--verbose', 'print the log lines of functions and forwarders as well', false)
  .showHelpAfterError()
  .action(run);

/** Resolves at the first Ctrl-C or SIGTERM; a second one ends the process at once. */
function untilTold(): Promise<void> {
  return new Promise((resolve) => {
    const told = (): void => {
      process.once('SIGINT', () => process.exit(130));
      process.once('SIGTERM', () => process.exit(143));
      // Something that does not end must not keep a stopped process alive for ever.
      setTimeout(() => process.exit(1), STOP_DEADLINE_MS).unref();
      resolve();
    };
    process.once('SIGINT', told);
    process.once('SIGTERM', told);
  });
}

async function run(options: Options): Promise<void> {
  // Everything below is loaded from here on: the second start takes half as long as the first.
  enableCompileCache(COMPILED);
  if (options.fleet === undefined) {
    const { runDemo } = await import('./demo/demo.ts');
    await runDemo({ once: options.once, verbose: options.verbose, print, untilTold: untilTold() });
    return;
  }
  const told = untilTold();
  const { startNarratedCell } = await import('./run-cell.ts');
  const running = await startNarratedCell({ fleetDir: options.fleet, verbose: options.verbose, print });
  const { cell } = running;
  print(
    `${pc.bold('Running.')} Functions: ${Object.keys(cell.counts()).join(', ')}. Queues in memory: ${cell.endpoint}`,
  );
  print(`Consumer clusters of ${options.fleet}: ${cell.clusters.join(', ')}. Stop with Ctrl-C.`);
  await told;
  print('Stopping: delivering what was seen, letting handlers finish…');
  await running.stop();
  print('Stopped. What was queued is found again at the next start.');
}

try {
  await program.parseAsync();
} catch (error) {
  console.error(pc.red(error instanceof Error ? error.message : String(error)));
  process.exitCode = 1;
}
