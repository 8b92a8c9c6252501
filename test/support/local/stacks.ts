import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SendMessageBatchCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { silentLogger } from '../../../lib/model/log.ts';
import { startLocalStack, type LocalStack, type LocalStackOptions } from '../../../lib/local/local-stack.ts';
import { readServerlessFile } from '../../../lib/local/stack/serverless-file.ts';
import { until } from '../e2e/until.ts';

/** What a test may say of the one queue and the one function of a small stack. */
export interface SmallStack {
  readonly fifo?: boolean;
  readonly batchSize?: number;
  readonly maximumConcurrency?: number;
  readonly reportsItemFailures?: boolean;
  readonly visibilitySeconds?: number;
  readonly maxReceiveCount?: number;
  readonly delaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly rate?: string;
}

/** A serverless.yml with a function `worker` fed from `Jobs`, whose dead letters go to `Dead`, and a scheduled `clock`. */
export function smallServerlessFile(options: SmallStack = {}): string {
  const suffix = options.fifo === false ? '' : '.fifo';
  const fifo = options.fifo === false ? '' : 'FifoQueue: true';
  return `
service: small
provider: { name: aws, region: eu-central-1, environment: { JOBS_URL: { Ref: Jobs } } }
functions:
  worker:
    handler: worker.handler
    timeout: ${options.timeoutSeconds ?? 5}
    events:
      - sqs:
          arn: { Fn::GetAtt: [Jobs, Arn] }
          batchSize: ${options.batchSize ?? 10}
          ${options.maximumConcurrency === undefined ? '' : `maximumConcurrency: ${options.maximumConcurrency}`}
          ${options.reportsItemFailures === false ? '' : 'functionResponseType: ReportBatchItemFailures'}
  clock:
    handler: clock.handler
    events:
      - schedule: { rate: ${options.rate ?? 'rate(1 hour)'} }
resources:
  Resources:
    Jobs:
      Type: AWS::SQS::Queue
      Properties:
        QueueName: jobs-\${sls:stage}${suffix}
        ${fifo}
        VisibilityTimeout: ${options.visibilitySeconds ?? 30}
        DelaySeconds: ${options.delaySeconds ?? 0}
        RedrivePolicy: { deadLetterTargetArn: { Fn::GetAtt: [Dead, Arn] }, maxReceiveCount: ${options.maxReceiveCount ?? 5} }
    Dead:
      Type: AWS::SQS::Queue
      Properties:
        QueueName: dead-\${sls:stage}${suffix}
        ${fifo}
`;
}

/** Stacks and folders of one test file, all stopped together. */
export class Stacks {
  readonly #stops: (() => Promise<void>)[] = [];

  /** Writes a file into a folder of its own. */
  async file(text: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'kbind-local-'));
    this.#stops.push(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, 'serverless.yml');
    await writeFile(path, text);
    return path;
  }

  /** Starts a small stack; functions that the test does not give do nothing. */
  async start(
    small: SmallStack,
    handlers: NonNullable<LocalStackOptions['handlers']>,
    more: Partial<LocalStackOptions> = {},
  ): Promise<LocalStack> {
    const serverlessFile = await this.file(smallServerlessFile(small));
    const idle = Object.fromEntries(
      readServerlessFile(serverlessFile, { stage: 'local' }).functions.map(({ name }) => [name, () => undefined]),
    );
    const stack = await startLocalStack({
      serverlessFile,
      log: silentLogger,
      ...more,
      handlers: { ...idle, ...handlers },
    });
    this.#stops.push(() => stack.stop());
    return stack;
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).toReversed()) await stop();
  }
}

/** Sends texts to `Jobs`, each to the group that `groupOf` gives it (its own by default). */
export async function send(
  stack: LocalStack,
  bodies: readonly string[],
  groupOf: (body: string) => string = (body) => body,
): Promise<void> {
  const url = stack.queues.facts.queues.get('Jobs')?.url ?? '';
  const fifo = url.endsWith('.fifo');
  for (const [index, body] of bodies.entries()) {
    const ids = { MessageGroupId: groupOf(body), MessageDeduplicationId: `${index}-${body}` };
    await stack.sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody: body, ...(fifo ? ids : {}) }));
  }
}

/** Sends up to ten texts at once, so that they can arrive as one batch. */
export async function sendTogether(stack: LocalStack, bodies: readonly string[]): Promise<void> {
  await stack.sqs.send(
    new SendMessageBatchCommand({
      QueueUrl: stack.queues.facts.queues.get('Jobs')?.url ?? '',
      Entries: bodies.map((body, index) => ({
        Id: String(index),
        MessageBody: body,
        MessageGroupId: body,
        MessageDeduplicationId: body,
      })),
    }),
  );
}

export { until };
