import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/**
 * What a forwarder without cloud credentials and the ingest function agree on: a request is signed over the cluster that it
 * speaks for, the time, and the hash of its body. A copy that is sent again within the window only names the same keys
 * again, which is harmless (design.md, rule 1).
 */

export const CLUSTER_HEADER = 'x-kbind-cluster';
/** Whole seconds since the epoch. */
export const TIMESTAMP_HEADER = 'x-kbind-timestamp';
/** SHA-256 of the body's bytes, hex: tells a body that was altered from a key that is wrong. */
export const DIGEST_HEADER = 'x-kbind-content-sha256';
/** `v1=` and HMAC-SHA256, hex. */
export const SIGNATURE_HEADER = 'x-kbind-signature';

/** A request is taken when its time differs from ours by at most this, ms. */
export const TIMESTAMP_WINDOW_MS = 300_000;
/** Bytes of the longest body that is taken: more than a hundred messages with the longest names. */
export const MAX_INGEST_BODY_BYTES = 256 * 1024;
/** Messages of one request. */
export const MAX_INGEST_MESSAGES = 100;

const VERSION = 'v1';

export const bodyDigest = (body: Uint8Array): string => createHash('sha256').update(body).digest('hex');

/** Line feeds separate: no part can hold one. */
function signature(key: Uint8Array, parts: SignedParts): string {
  const text = [VERSION, parts.cluster, parts.timestamp, parts.digest].join('\n');
  return `${VERSION}=${createHmac('sha256', key).update(text).digest('hex')}`;
}

export interface SignedParts {
  readonly cluster: string;
  readonly timestamp: string;
  readonly digest: string;
}

/** The headers that sign a body. */
export function signedHeaders(
  key: Uint8Array,
  { cluster, body, now }: { readonly cluster: string; readonly body: Uint8Array; readonly now: number },
): Readonly<Record<string, string>> {
  const parts = { cluster, timestamp: String(Math.floor(now / 1000)), digest: bodyDigest(body) };
  return {
    [CLUSTER_HEADER]: parts.cluster,
    [TIMESTAMP_HEADER]: parts.timestamp,
    [DIGEST_HEADER]: parts.digest,
    [SIGNATURE_HEADER]: signature(key, parts),
  };
}

/** Compares in a time that does not depend on where two texts differ. */
export function sameText(a: string, b: string): boolean {
  // Hashes have one length, whatever is sent.
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** True when one of the keys made that signature. All are tried, so that time tells nothing of which. */
export function isSignedWith(keys: readonly Uint8Array[], parts: SignedParts, given: string): boolean {
  return keys.map((key) => sameText(signature(key, parts), given)).includes(true);
}
