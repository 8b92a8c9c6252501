import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import type { ForwarderQueue } from '../forwarder/sink.ts';
import { logLevels } from './config.ts';

/** What a forwarder's pod is told from outside, read once. */
export interface ForwarderConfig {
  readonly queueUrls: Readonly<Record<ForwarderQueue, string>>;
  readonly region: string | undefined;
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

const url = z.string().check(z.regex(/^https?:\/\/\S+$/, 'must be a URL'));
const text = z.string().check(z.minLength(1, 'must not be empty'));

const environmentSchema = z.object({
  CONTROL_QUEUE_URL: url,
  INSTANCES_QUEUE_URL: url,
  WORK_QUEUE_URL: url,
  AWS_REGION: z.optional(text),
  KUBECONFIG: z.optional(text),
  CLUSTER_UID: z.optional(text),
  ALLOW_LOOPBACK: z._default(z.enum(['true', 'false']), 'false'),
  PORT: z._default(z.string().check(z.regex(/^\d{1,5}$/, 'must be a port')), '8080'),
  INSTALLATION: z._default(text, 'kbind'),
  STAGE: z._default(text, 'prod'),
  LOG_LEVEL: z._default(z.enum(logLevels), 'INFO'),
});

/**
 * The configuration that an environment gives.
 * @throws KbindError class `misconfigured` that names every problem at once
 */
export function readForwarderConfig(
  // oxlint-disable-next-line node/no-process-env -- config.ts of another process: the forwarder's pod
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ForwarderConfig {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => {
      const name = String(path[0]);
      return environment[name] === undefined ? `${name} is not set` : `${name}: ${message}`;
    });
    throw new KbindError('misconfigured', `configuration: ${problems.join('; ')}`);
  }
  const values = parsed.data;
  return Object.freeze({
    queueUrls: {
      control: values.CONTROL_QUEUE_URL,
      instances: values.INSTANCES_QUEUE_URL,
      work: values.WORK_QUEUE_URL,
    },
    region: values.AWS_REGION,
    kubeconfig: values.KUBECONFIG,
    clusterUid: values.CLUSTER_UID,
    allowLoopback: values.ALLOW_LOOPBACK === 'true',
    port: Number(values.PORT),
    installation: values.INSTALLATION,
    stage: values.STAGE,
    logLevel: values.LOG_LEVEL,
  });
}
