import { createHash } from 'node:crypto';
import type { KubeObject } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';
import { parseForeignKubeconfig } from '../kube/kubeconfig.ts';
import type { ConnectionTarget } from '../kube/target.ts';
import { secretText, type SecretRef } from '../model/secret-ref.ts';

/** A kubeconfig out of a Secret, vetted (spec §9). Nothing of it may be logged or stored but the version. */
export interface Credential {
  readonly target: ConnectionTarget;
  /** Hash of the Secret's uid and the kubeconfig's bytes (spec §2.8). */
  readonly secretVersion: string;
}

const unusable = (message: string): KbindError => new KbindError('credential', message, { side: 'provider' });

/**
 * The vetted credential that a Secret holds.
 * @param options `vetted`: targets by version that were vetted before. Vetting parses YAML and builds TLS contexts, which is more
 *   work than the rest of a reconcile.
 * @throws KbindError class `credential` that says what is missing or names the refused field, and what to do.
 */
export function readCredential(
  secret: KubeObject | undefined,
  ref: SecretRef,
  { allowLoopback, vetted }: { readonly allowLoopback: boolean; readonly vetted?: Map<string, ConnectionTarget> },
): Credential {
  const where = secretText(ref);
  if (secret === undefined)
    throw unusable(`${where} does not exist: create it with a kubeconfig under key "${ref.key}"`);
  const bytes = kubeconfigBytes(secret, ref.key, where);
  const secretVersion = versionOf(secret, bytes);
  const target = vetted?.get(secretVersion) ?? vet(bytes, ref, { where, allowLoopback });
  vetted?.set(secretVersion, target);
  return { target, secretVersion };
}

function kubeconfigBytes(secret: KubeObject, key: string, where: string): Buffer {
  const encoded = (secret['data'] as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  if (typeof encoded !== 'string')
    throw unusable(`${where} has no key "${key}": put the provider's kubeconfig under it`);
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('utf8').trim() === '') throw unusable(`${where} has an empty value under key "${key}"`);
  return bytes;
}

function vet(
  bytes: Buffer,
  ref: SecretRef,
  { where, allowLoopback }: { readonly where: string; readonly allowLoopback: boolean },
): ConnectionTarget {
  try {
    return parseForeignKubeconfig(bytes.toString('utf8'), { allowLoopback });
  } catch (error) {
    const reason = error instanceof KbindError ? error.message : 'it cannot be parsed';
    throw unusable(`kubeconfig under key "${ref.key}" of ${where} cannot be used: ${reason}`);
  }
}

function versionOf(secret: KubeObject, bytes: Buffer): string {
  const digest = createHash('sha256').update(secret.metadata.uid).update('\n').update(bytes).digest('hex');
  return `sha256:${digest.slice(0, 16)}`;
}
