import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import type { ForwarderQueue } from '../forwarder/sink.ts';
import { describeIssue } from '../queue/codec.ts';
import type { QueueName } from '../queue/queues.ts';

/** Everything that is configured from outside, read once, frozen. The only file that reads the environment. */

export const logLevels = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'] as const;

/** Where AWS services are, if not at AWS: the emulators of a local run or a test. */
export type Endpoints = Readonly<Partial<Record<'dynamodb' | 'secretsManager' | 'sts' | 'eks', string>>>;

/** Where the fleet is written down: a directory of `NAME.kubeconfig` files (local runs), or a DynamoDB table. */
export type FleetConfig = { readonly dir: string } | { readonly table: string };

export interface Config {
  readonly queueUrls: Readonly<Record<QueueName | 'workDead', string>>;
  readonly fleet: FleetConfig;
  /** Local runs only: API servers on this machine may be talked to (spec §9). */
  readonly allowLoopback: boolean;
  /** AWS region of the queues and the table; the SDK's own search when absent. */
  readonly region: string | undefined;
  /** Where SQS is, if not at AWS: the emulator of a local run. Queue URLs name its queues, not its address. */
  readonly sqsEndpoint: string | undefined;
  readonly endpoints: Endpoints;
  readonly installation: string;
  readonly stage: string;
  readonly logLevel: (typeof logLevels)[number];
  /** Where counters go: CloudWatch's embedded metric format on standard output, or nowhere. */
  readonly metrics: 'emf' | 'none';
  /** Reconciles of one cluster side by side in one container. */
  readonly perCluster: number;
}

/** What a forwarder's pod is told from outside. */
export interface ForwarderConfig {
  /** Where keys go: the queues, with the pod's own cloud credentials, or the ingest webhook, signed with a key. */
  readonly send: SendToQueues | SendToIngest;
  /** File with the operator's kubeconfig of the consumer; the pod's service account when absent. */
  readonly kubeconfig: string | undefined;
  /** UID that the consumer must have; what it has at the start when absent. */
  readonly clusterUid: string | undefined;
  readonly allowLoopback: boolean;
  readonly port: number;
  readonly installation: string;
  readonly stage: string;
  readonly logLevel: (typeof logLevels)[number];
}

export interface SendToQueues {
  readonly to: 'queues';
  readonly urls: Readonly<Record<ForwarderQueue, string>>;
  readonly region: string | undefined;
}

export interface SendToIngest {
  readonly to: 'ingest';
  readonly url: string;
  /** File that holds the key: a mounted Secret. Read for each request, because it may be replaced. */
  readonly keyFile: string;
}

const url = z.string().check(z.regex(/^https?:\/\/\S+$/, 'must be a URL'));
const text = z.string().check(z.minLength(1, 'must not be empty'));
const label = z.string().check(z.regex(/^[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$/, 'must be a short name'));
const yesOrNo = z._default(z.enum(['true', 'false']), 'false');
const logLevel = z._default(z.enum(logLevels), 'INFO');
/** An empty text is none: a stack's value can so be taken away for a local run. */
const optionalText = z.optional(z.string());

const environmentSchema = z.object({
  CONTROL_QUEUE_URL: url,
  INSTANCES_QUEUE_URL: url,
  WORK_QUEUE_URL: url,
  DEAD_LETTERS_QUEUE_URL: url,
  WORK_DEAD_QUEUE_URL: url,
  FLEET_DIR: optionalText,
  FLEET_TABLE: optionalText,
  ALLOW_LOOPBACK: yesOrNo,
  AWS_REGION: z.optional(text),
  AWS_ENDPOINT_URL_SQS: z.optional(url),
  AWS_ENDPOINT_URL_DYNAMODB: z.optional(url),
  AWS_ENDPOINT_URL_SECRETS_MANAGER: z.optional(url),
  AWS_ENDPOINT_URL_STS: z.optional(url),
  AWS_ENDPOINT_URL_EKS: z.optional(url),
  INSTALLATION: label,
  STAGE: label,
  LOG_LEVEL: logLevel,
  METRICS: z._default(z.enum(['emf', 'none']), 'emf'),
  RECONCILES_PER_CLUSTER: z._default(z.string().check(z.regex(/^[1-9]\d?$/, 'must be a number from 1 to 99')), '10'),
});

const forwarderSchema = z.object({
  CONTROL_QUEUE_URL: z.optional(url),
  INSTANCES_QUEUE_URL: z.optional(url),
  WORK_QUEUE_URL: z.optional(url),
  INGEST_URL: z.optional(url),
  INGEST_KEY_FILE: z.optional(text),
  AWS_REGION: z.optional(text),
  KUBECONFIG: z.optional(text),
  CLUSTER_UID: z.optional(text),
  ALLOW_LOOPBACK: yesOrNo,
  PORT: z._default(z.string().check(z.regex(/^\d{1,5}$/, 'must be a port')), '8080'),
  INSTALLATION: z._default(text, 'kbind'),
  STAGE: z._default(text, 'prod'),
  LOG_LEVEL: logLevel,
});

type Environment = Readonly<Record<string, string | undefined>>;

function describe(issue: z.core.$ZodIssue, environment: Environment): string {
  const name = String(issue.path[0]);
  return environment[name] === undefined ? `${name} is not set` : `${name}: ${describeIssue(issue)}`;
}

/** What is wrong with single values, then (`more`) with how they go together. Throws class `misconfigured` with all of it. */
function check<Shape extends z.core.$ZodType>(
  shape: Shape,
  environment: Environment,
  more: (environment: Environment) => readonly string[],
): z.output<Shape> {
  const parsed = z.safeParse(shape, environment);
  const single = parsed.success ? [] : parsed.error.issues.map((issue) => describe(issue, environment));
  const problems = [...single, ...more(environment)];
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new KbindError('misconfigured', `configuration: ${problems.join('; ')}`);
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== '';

function fleetProblems({ FLEET_DIR, FLEET_TABLE }: Environment): string[] {
  if (isSet(FLEET_DIR) === isSet(FLEET_TABLE)) return ['exactly one of FLEET_TABLE and FLEET_DIR must be set'];
  return [];
}

/**
 * The configuration that an environment gives.
 * @throws KbindError class `misconfigured` that names every problem at once
 */
export function readConfig(environment: Environment = process.env): Config {
  const values = check(environmentSchema, environment, fleetProblems);
  return Object.freeze({
    queueUrls: Object.freeze({
      control: values.CONTROL_QUEUE_URL,
      instances: values.INSTANCES_QUEUE_URL,
      work: values.WORK_QUEUE_URL,
      deadLetters: values.DEAD_LETTERS_QUEUE_URL,
      workDead: values.WORK_DEAD_QUEUE_URL,
    }),
    fleet: isSet(values.FLEET_TABLE) ? { table: values.FLEET_TABLE } : { dir: values.FLEET_DIR ?? '' },
    allowLoopback: values.ALLOW_LOOPBACK === 'true',
    region: values.AWS_REGION,
    sqsEndpoint: values.AWS_ENDPOINT_URL_SQS,
    endpoints: endpointsOf(values),
    installation: values.INSTALLATION,
    stage: values.STAGE,
    logLevel: values.LOG_LEVEL,
    metrics: values.METRICS,
    perCluster: Number(values.RECONCILES_PER_CLUSTER),
  });
}

function endpointsOf(values: z.output<typeof environmentSchema>): Endpoints {
  const {
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: secretsManager,
    AWS_ENDPOINT_URL_STS: sts,
    AWS_ENDPOINT_URL_EKS: eks,
  } = values;
  return Object.freeze({
    ...(dynamodb === undefined ? {} : { dynamodb }),
    ...(secretsManager === undefined ? {} : { secretsManager }),
    ...(sts === undefined ? {} : { sts }),
    ...(eks === undefined ? {} : { eks }),
  });
}

const forwarderQueueUrls = ['CONTROL_QUEUE_URL', 'INSTANCES_QUEUE_URL', 'WORK_QUEUE_URL'] as const;

function sendProblems(environment: Environment): string[] {
  const set = forwarderQueueUrls.filter((name) => environment[name] !== undefined);
  const { INGEST_URL, INGEST_KEY_FILE } = environment;
  if (INGEST_URL !== undefined) {
    const both = set.length > 0 ? ['INGEST_URL and queue URLs are both set: keys go one way'] : [];
    return INGEST_KEY_FILE === undefined ? [...both, 'INGEST_KEY_FILE is not set'] : both;
  }
  if (INGEST_KEY_FILE !== undefined) return ['INGEST_URL is not set'];
  if (set.length === 0) return ['either INGEST_URL and INGEST_KEY_FILE or the three queue URLs must be set'];
  return forwarderQueueUrls.filter((name) => environment[name] === undefined).map((name) => `${name} is not set`);
}

/**
 * The configuration of a forwarder's pod.
 * @throws KbindError class `misconfigured` that names every problem at once
 */
export function readForwarderConfig(environment: Environment = process.env): ForwarderConfig {
  const values = check(forwarderSchema, environment, sendProblems);
  const { INGEST_URL, INGEST_KEY_FILE = '' } = values;
  const queues: SendToQueues = {
    to: 'queues',
    urls: {
      control: values.CONTROL_QUEUE_URL ?? '',
      instances: values.INSTANCES_QUEUE_URL ?? '',
      work: values.WORK_QUEUE_URL ?? '',
    },
    region: values.AWS_REGION,
  };
  const send: ForwarderConfig['send'] =
    INGEST_URL === undefined ? queues : { to: 'ingest', url: INGEST_URL, keyFile: INGEST_KEY_FILE };
  return Object.freeze({
    send,
    kubeconfig: values.KUBECONFIG,
    clusterUid: values.CLUSTER_UID,
    allowLoopback: values.ALLOW_LOOPBACK === 'true',
    port: Number(values.PORT),
    installation: values.INSTALLATION,
    stage: values.STAGE,
    logLevel: values.LOG_LEVEL,
  });
}

/** Whether the person at this terminal says that clusters on this machine may be talked to: emulators, and nothing that is deployed. */
export const allowsLoopback = ({ ALLOW_LOOPBACK }: Environment = process.env): boolean => ALLOW_LOOPBACK === 'true';

/** Lets the AWS SDK find the credentials of a profile of the person at this terminal. For the CLI, before its first request. */
export function useProfile(profile: string, environment: Record<string, string | undefined> = process.env): void {
  environment['AWS_PROFILE'] = profile;
}
