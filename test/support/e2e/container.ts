import { SQSClient } from '@aws-sdk/client-sqs';
import { startEventSource } from '../../../lib/local/event-source.ts';
import { loadHandler, localFunction, type LocalFunction } from '../../../lib/local/lambda/invoke.ts';
import { startSchedule } from '../../../lib/local/schedule.ts';
import { resolveReferences, type QueueFacts } from '../../../lib/local/stack/cloudformation.ts';
import { readServerlessFile, type DeclaredMapping } from '../../../lib/local/stack/serverless-file.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { silentLogger } from '../../../lib/model/log.ts';

/**
 * Functions with their pollers as a process of its own, which a test may kill: `node container.ts`, forked by process-cell.ts.
 * Reads the queues from KBIND_QUEUES (JSON, facts by logical id), tells its parent how many invocations run, and invokes what
 * the parent asks for.
 */

/** What a container tells. */
export type Told =
  | { readonly type: 'busy'; readonly running: Readonly<Record<string, number>> }
  | { readonly type: 'answer'; readonly id: number; readonly answer?: unknown; readonly error?: string };
/** What a container is asked for: one invocation. */
export interface Asked {
  readonly id: number;
  readonly name: string;
  readonly event: object;
}

const [, , serverlessFile = ''] = process.argv;
const declared = readServerlessFile(serverlessFile, { stage: 'local' });
const queues = new Map(Object.entries(JSON.parse(process.env['KBIND_QUEUES'] ?? '{}') as Record<string, QueueFacts>));
const facts = { region: declared.region, account: '000000000000', queues, tables: declared.tables };
const client = new SQSClient();

const running: Record<string, number> = {};

function tell(name: string, by: 1 | -1): void {
  running[name] = (running[name] ?? 0) + by;
  say({ type: 'busy', running: { ...running } });
}

function say(told: Told): void {
  process.send?.(told);
}

/** The same function; the parent hears when it begins and when it has ended. */
const told = (target: LocalFunction): LocalFunction => ({
  ...target,
  async invoke(event) {
    tell(target.declared.name, 1);
    try {
      return await target.invoke(event);
    } finally {
      tell(target.declared.name, -1);
    }
  },
});

function queueOf({ arn }: DeclaredMapping): QueueFacts {
  const wanted = resolveReferences(arn, facts);
  const found = [...queues.values()].find((queue) => queue.arn === wanted);
  if (found === undefined) throw new Error(`no queue ${String(wanted)}`);
  return found;
}

const targets = new Map<string, LocalFunction>();
const sources: { stop(): Promise<void> }[] = [];
for (const each of declared.functions) {
  const target = told(localFunction(declared, each, await loadHandler(each), () => undefined));
  targets.set(each.name, target);
  const common = { region: declared.region, target, log: silentLogger };
  for (const mapping of each.mappings) {
    sources.push(
      startEventSource({ ...common, mapping, queue: queueOf(mapping), client, onDelivery: () => undefined }),
    );
  }
  for (const { everyMs } of each.schedules) {
    sources.push(startSchedule({ ...common, everyMs, clock: systemClock, onFired: () => undefined }));
  }
}

// What a platform does with a container that it needs no longer.
process.once('SIGTERM', () => void Promise.all(sources.map((source) => source.stop())).then(() => process.exit(0)));

process.on('message', ({ id, name, event }: Asked) => {
  const target = targets.get(name);
  if (target === undefined) throw new Error(`no function ${name}`);
  target.invoke(event).then(
    (answer) => say({ type: 'answer', id, answer }),
    (error: unknown) => say({ type: 'answer', id, error: String(error) }),
  );
});
