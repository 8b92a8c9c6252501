import { keyText, type ObjectKey } from './api.ts';
import type { Connection, ConnectionSpec } from './kinds.ts';
import { SECRET_REF_ANNOTATION } from './markers.ts';

/**
 * Which Secret a Connection's credentials come from. `kubeconfigSecretRef` is immutable, but API servers before 1.25 cannot
 * say so: the first reconcile records it in an annotation, beside the finalizer and before anything is made. The record
 * decides from then on, also for what is to be unwound; a spec that says something else is refused, not followed.
 */
export type SecretRef = ConnectionSpec['kubeconfigSecretRef'];

/** `namespace/name/key`, as the annotation holds it. */
export const secretRefText = ({ namespace, name, key }: SecretRef): string => `${namespace}/${name}/${key}`;

/** Where the Secret is. */
export const secretKeyOf = ({ namespace, name }: SecretRef): ObjectKey => ({ namespace, name });

/** `Secret namespace/name`. */
export const secretText = (ref: SecretRef): string => `Secret ${keyText(secretKeyOf(ref))}`;

/** The recorded reference; undefined where none was recorded yet, or what stands there is not one. */
export function recordedSecretRef({ metadata }: Pick<Connection, 'metadata'>): SecretRef | undefined {
  const [namespace, name, key, ...rest] = (metadata.annotations?.[SECRET_REF_ANNOTATION] ?? '').split('/');
  if (!namespace || !name || !key || rest.length > 0) return undefined;
  return { namespace, name, key };
}

/** The reference that counts. */
export const usedSecretRef = (connection: Connection): SecretRef =>
  recordedSecretRef(connection) ?? connection.spec.kubeconfigSecretRef;

/** True when somebody changed the immutable reference on a server that let them. */
export const secretRefWasChanged = (connection: Connection): boolean =>
  secretRefText(usedSecretRef(connection)) !== secretRefText(connection.spec.kubeconfigSecretRef);
