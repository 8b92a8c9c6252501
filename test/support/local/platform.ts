import { connectConsumer, bindAndOrder, changeAndDelete, type Stage } from '../../../lib/local/demo/story.ts';
import { installCrd, makeDemoFolder, startDemoCluster, type DemoFolder } from '../../../lib/local/demo/clusters.ts';
import { startSimulatedOperator } from '../../../lib/local/demo/operator.ts';
import { databasesCrd } from '../../../lib/local/demo/sample-api.ts';

/** The demonstration's clusters without its pipeline: two consumers and a provider with its operator, all embedded. */
export interface Platform {
  readonly stage: Stage;
  readonly folder: DemoFolder;
  /** Steps that were told. */
  readonly told: readonly string[];
  stop(): Promise<void>;
}

export async function startPlatform(): Promise<Platform> {
  const folder = await makeDemoFolder();
  const told: string[] = [];
  const provider = await startDemoCluster('provider', folder.path);
  const consumers = [
    await startDemoCluster('shop', folder.fleet),
    await startDemoCluster('blog', folder.fleet),
  ] as const;
  await installCrd(provider.client, databasesCrd);
  const operator = startSimulatedOperator(provider.client);
  for (const consumer of consumers) await connectConsumer(consumer, provider);
  return {
    stage: { provider, consumers, step: (text) => told.push(text) },
    folder,
    told,
    async stop() {
      await operator.stop();
      for (const cluster of [...consumers, provider]) await cluster.stop();
      await folder.remove();
    },
  };
}

export { bindAndOrder, changeAndDelete };
