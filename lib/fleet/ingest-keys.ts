import { KbindError } from '../model/errors.ts';

/** Keys of clusters whose forwarders sign what they send, because they hold no cloud credentials. */

export type KeysLookup =
  | { readonly found: 'keys'; readonly keys: readonly Uint8Array[] }
  /** The cluster is in the fleet and has no key: its forwarder sends to the queues itself. */
  | { readonly found: 'none' | 'unknown' | 'removed' }
  | { readonly found: 'unresolved'; readonly reason: string };

export interface IngestKeyring {
  /** The keys that a request of that cluster may be signed with. */
  keysOf(uid: string): Promise<KeysLookup>;
}

/** Shorter ones can be guessed. Bytes. */
export const MIN_KEY_BYTES = 32;
/** The one that is in use and the one that replaces it. */
const MAX_KEYS = 2;

/**
 * The keys in a file or secret: one or two lines of at least 32 characters, so that a key can be replaced while both hold.
 * @throws KbindError class `credential`, without any of the text
 */
export function parseIngestKeys(text: string): readonly Uint8Array[] {
  const keys = text
    .split('\n')
    .map((line) => Buffer.from(line.trim()))
    .filter((key) => key.length > 0);
  if (keys.length === 0 || keys.length > MAX_KEYS) {
    throw new KbindError('credential', `an ingest key is one line, or two while it is replaced: ${keys.length} found`);
  }
  if (keys.some((key) => key.length < MIN_KEY_BYTES)) {
    throw new KbindError('credential', `an ingest key has at least ${MIN_KEY_BYTES} characters`);
  }
  return keys;
}
