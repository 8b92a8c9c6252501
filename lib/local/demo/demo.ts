import pc from 'picocolors';
import { startNarratedCell, type NarratedCell } from '../run-cell.ts';
import { installCrd, makeDemoFolder, startDemoCluster } from './clusters.ts';
import { startSimulatedOperator } from './operator.ts';
import { databasesCrd } from './sample-api.ts';
import { bindAndOrder, changeAndDelete, connectConsumer, kubectlLines, type Stage } from './story.ts';

export interface DemoOptions {
  /** Show everything once and end, instead of running on. */
  readonly once: boolean;
  readonly verbose: boolean;
  readonly print: (line: string) => void;
  /** Resolves when somebody wants it to end. */
  readonly untilTold: Promise<void>;
}

type Stop = () => Promise<unknown>;

/**
 * Shows the product on three embedded clusters: two consumers and a provider with a simulated operator. Throws an error
 * that says which step never came. Everything it started and wrote is gone when it ends.
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const stops: Stop[] = [];
  try {
    const shown = demonstrate(options, stops);
    const ended = await Promise.race([
      shown.then(() => 'shown' as const),
      options.untilTold.then(() => 'told' as const),
    ]);
    if (ended === 'told') {
      // The steps under way fail because what they use stops; nobody waits for them any more.
      shown.catch(() => undefined);
    } else if (!options.once) {
      await options.untilTold;
    }
    options.print('Stopping; the clusters and all that is in them are thrown away…');
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function demonstrate(options: DemoOptions, stops: Stop[]): Promise<void> {
  const startedAt = performance.now();
  let steps = 0;
  const step = (text: string): void => {
    steps += 1;
    options.print(`${pc.green('✔')} ${text}`);
  };
  const { stage, fleet } = await startClusters(step, stops);
  // While the steps are told, what the functions look at would only be in the way.
  let telling = options.verbose;
  const narrate = (line: string): void => (telling ? options.print(line) : undefined);
  const running = await startNarratedCell({ fleetDir: fleet, verbose: options.verbose, print: narrate });
  stops.push(() => running.stop());
  step('The pipeline runs: queues, functions, schedules, and a forwarder for each consumer');
  await bindAndOrder(stage);
  if (options.once) await changeAndDelete(stage);
  summarize(options, running, { steps, seconds: (performance.now() - startedAt) / 1000 });
  if (!options.once) {
    telling = true;
    invite(options, stage);
  }
}

async function startClusters(
  step: (text: string) => void,
  stops: Stop[],
): Promise<{ readonly stage: Stage; readonly fleet: string }> {
  const folder = await makeDemoFolder();
  stops.push(() => folder.remove());
  const provider = await startDemoCluster('provider', folder.path);
  stops.push(() => provider.stop());
  const consumers = [
    await startDemoCluster('shop', folder.fleet),
    await startDemoCluster('blog', folder.fleet),
  ] as const;
  for (const consumer of consumers) stops.push(() => consumer.stop());
  step(
    `Three Kubernetes API servers run in this process: ${provider.name}, ${consumers.map(({ name }) => name).join(', ')}`,
  );
  await installCrd(provider.client, databasesCrd);
  const operator = startSimulatedOperator(provider.client);
  stops.push(() => operator.stop());
  step('provider: offers the API "databases", and a small operator serves it');
  for (const consumer of consumers) await connectConsumer(consumer, provider);
  step("Both consumers hold the provider's kubeconfig in a Secret, and a Connection that uses it");
  return { stage: { provider, consumers, step }, fleet: folder.fleet };
}

function summarize(
  { print }: DemoOptions,
  { cell }: NarratedCell,
  { steps, seconds }: { readonly steps: number; readonly seconds: number },
): void {
  const counts = Object.values(cell.counts());
  const invocations = counts.reduce((sum, count) => sum + count.invocations, 0);
  const messages = counts.reduce((sum, count) => sum + count.messages, 0);
  print(
    `${pc.bold(`${steps} steps in ${seconds.toFixed(1)} s`)}, with ${invocations} invocations for ${messages} messages; ` +
      `${cell.depth('deadLetters').ready} dead letters`,
  );
}

function invite({ print }: DemoOptions, stage: Stage): void {
  print('It keeps running. Try it from another terminal:');
  for (const line of kubectlLines(stage)) print(`    ${pc.cyan(line)}`);
  print('Stop with Ctrl-C.');
}
