import { isDeleting } from '../../model/crd.ts';
import type { Connection } from '../../model/kinds.ts';
import { CLEANUP_FINALIZER } from '../../model/markers.ts';
import { hasFinalizer } from '../object-writes.ts';
import { secretKeyOf, usedSecretRef } from '../../model/secret-ref.ts';
import { keyText } from '../../model/api.ts';

/** What a Connection that goes does with the finalizer on a Secret that others may use as well (spec §2, Deleting). Pure. */
export type SecretStep =
  | { readonly step: 'release it' }
  /** Another one keeps it: it lives on, or is a later one's to release. */
  | { readonly step: 'leave it'; readonly to: string }
  /** First by name among those that go: it releases the Secret when the others are gone. */
  | { readonly step: 'wait for the others'; readonly others: readonly string[] };

/** @param all every Connection, from a complete and fresh list. */
export function whoReleasesSecret(connection: Connection, all: readonly Connection[]): SecretStep {
  const secret = secretOf(connection);
  const others = all
    .filter(({ metadata }) => metadata.uid !== connection.metadata.uid)
    .filter((other) => hasFinalizer(other, CLEANUP_FINALIZER) && secretOf(other) === secret);
  const live = others.find((other) => !isDeleting(other));
  if (live !== undefined) return { step: 'leave it', to: live.metadata.name };
  const [first] = others.map(({ metadata }) => metadata.name).sort();
  if (first === undefined) return { step: 'release it' };
  if (first < connection.metadata.name) return { step: 'leave it', to: first };
  return { step: 'wait for the others', others: others.map(({ metadata }) => metadata.name).sort() };
}

const secretOf = (connection: Connection): string => keyText(secretKeyOf(usedSecretRef(connection)));
