import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import { describeIssue } from '../queue/codec.ts';
import type { QueueName } from '../queue/queues.ts';

/** Everything that is configured from outside, read once, frozen. The only file that reads the environment. */

export const logLevels = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'] as const;

export interface Config {
  readonly queueUrls: Readonly<Record<QueueName | 'workDead', string>>;
  /** Directory of `NAME.kubeconfig` files: the fleet of a local run. */
  readonly fleetDir: string;
  /** Local runs only: API servers on this machine may be talked to (spec §9). */
  readonly allowLoopback: boolean;
  /** AWS region of the queues; the SDK's own search when absent. */
  readonly region: string | undefined;
  /** Where SQS is, if not at AWS: the emulator of a local run. Queue URLs name its queues, not its address. */
  readonly sqsEndpoint: string | undefined;
  readonly installation: string;
  readonly stage: string;
  readonly logLevel: (typeof logLevels)[number];
  /** Where counters go: CloudWatch's embedded metric format on standard output, or nowhere. */
  readonly metrics: 'emf' | 'none';
  /** Reconciles of one cluster side by side in one container. */
  readonly perCluster: number;
}

const url = z.string().check(z.regex(/^https?:\/\/\S+$/, 'must be a URL'));
const text = z.string().check(z.minLength(1, 'must not be empty'));
const label = z.string().check(z.regex(/^[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$/, 'must be a short name'));

const environmentSchema = z.object({
  CONTROL_QUEUE_URL: url,
  INSTANCES_QUEUE_URL: url,
  WORK_QUEUE_URL: url,
  DEAD_LETTERS_QUEUE_URL: url,
  WORK_DEAD_QUEUE_URL: url,
  FLEET_DIR: text,
  ALLOW_LOOPBACK: z._default(z.enum(['true', 'false']), 'false'),
  AWS_REGION: z.optional(text),
  AWS_ENDPOINT_URL_SQS: z.optional(url),
  INSTALLATION: label,
  STAGE: label,
  LOG_LEVEL: z._default(z.enum(logLevels), 'INFO'),
  METRICS: z._default(z.enum(['emf', 'none']), 'emf'),
  RECONCILES_PER_CLUSTER: z._default(z.string().check(z.regex(/^[1-9]\d?$/, 'must be a number from 1 to 99')), '10'),
});

type Environment = Readonly<Record<string, string | undefined>>;

function describe(issue: z.core.$ZodIssue, environment: Environment): string {
  const name = String(issue.path[0]);
  return environment[name] === undefined ? `${name} is not set` : `${name}: ${describeIssue(issue)}`;
}

/**
 * The configuration that an environment gives.
 * @throws KbindError class `misconfigured` that names every problem at once
 */
export function readConfig(environment: Environment = process.env): Config {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => describe(issue, environment));
    throw new KbindError('misconfigured', `configuration: ${problems.join('; ')}`);
  }
  const values = parsed.data;
  return Object.freeze({
    queueUrls: Object.freeze({
      control: values.CONTROL_QUEUE_URL,
      instances: values.INSTANCES_QUEUE_URL,
      work: values.WORK_QUEUE_URL,
      deadLetters: values.DEAD_LETTERS_QUEUE_URL,
      workDead: values.WORK_DEAD_QUEUE_URL,
    }),
    fleetDir: values.FLEET_DIR,
    allowLoopback: values.ALLOW_LOOPBACK === 'true',
    region: values.AWS_REGION,
    sqsEndpoint: values.AWS_ENDPOINT_URL_SQS,
    installation: values.INSTALLATION,
    stage: values.STAGE,
    logLevel: values.LOG_LEVEL,
    metrics: values.METRICS,
    perCluster: Number(values.RECONCILES_PER_CLUSTER),
  });
}
