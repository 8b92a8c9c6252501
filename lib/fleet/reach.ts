import * as z from 'zod/mini';
import type { ConnectionTarget } from '../kube/target.ts';
import { KbindError } from '../model/errors.ts';

/** How a cell reaches a consumer cluster, as the registry keeps it: whereabouts of credentials, never credentials. */

const ARN = (service: string) =>
  z.string().check(z.regex(new RegExp(`^arn:aws[a-z-]*:${service}:\\S+$`)), z.maxLength(2048));

const eksSchema = z.strictObject({
  type: z.literal('eks'),
  /** Name of the EKS cluster. */
  cluster: z.string().check(z.regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/)),
  region: z.string().check(z.regex(/^[a-z]{2}(-[a-z]+)+-\d$/)),
  /** Assumed for every look and token: the cluster's access entry names it, so that it names one principal, not one a function. */
  roleArn: ARN('iam'),
  /** Asked for by roles of other accounts, against a confused deputy. */
  externalId: z.optional(z.string().check(z.regex(/^[\w+=,.@:/-]{2,1224}$/))),
});

const secretSchema = z.strictObject({
  type: z.literal('secret'),
  /** Of a self-contained kubeconfig in Secrets Manager. */
  arn: ARN('secretsmanager'),
});

export const reachSchema = z.discriminatedUnion('type', [eksSchema, secretSchema]);
export type EksReach = z.infer<typeof eksSchema>;
export type SecretReach = z.infer<typeof secretSchema>;
export type Reach = z.infer<typeof reachSchema>;

/** Makes a connection of what the registry says. */
export interface ReachResolver {
  /** Throws class `credential` for what can not be used, `misconfigured` or `unavailable` where AWS refuses or is away. */
  resolve(reach: Reach): Promise<ConnectionTarget>;
  /** The keys in that secret. Throws like `resolve`. */
  ingestKeys(arn: string): Promise<readonly Uint8Array[]>;
  /** What is remembered about it is asked for anew, once it is a few seconds old. */
  forget(reach: Reach): void;
}

/** Throws class `misconfigured` that names what is wrong. */
export function checkReach(value: unknown): Reach {
  const parsed = reachSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map(({ path }) => path.join('.') || 'type').join(', ');
  throw new KbindError('misconfigured', `how the cluster is reached is not valid: ${fields}`);
}
