import { createHash, createHmac } from 'node:crypto';

/** AWS Signature Version 4 from its specification, for checking what was signed: shares no code with the signer. */

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: Uint8Array | string, data: string): Buffer => createHmac('sha256', key).update(data).digest();

/** RFC 3986, as SigV4 wants it. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

export interface SignedRequest {
  readonly method: string;
  readonly path: string;
  /** Decoded pairs; without the signature itself, where that is one of them. */
  readonly query: readonly (readonly [string, string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly signedHeaders: readonly string[];
  readonly payloadHash: string;
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly date: string;
  /** `YYYYMMDD/region/service/aws4_request`. */
  readonly scope: string;
}

/** The signature that this request must carry. */
export function signatureOf(request: SignedRequest, secretAccessKey: string): string {
  const query = request.query
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const headers = request.signedHeaders.map((name) => `${name}:${(request.headers[name] ?? '').trim()}\n`).join('');
  const canonical = [
    request.method,
    request.path,
    query,
    headers,
    request.signedHeaders.join(';'),
    request.payloadHash,
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', request.date, request.scope, sha256(canonical)].join('\n');
  const key = request.scope
    .split('/')
    .reduce<Uint8Array | string>((so, part) => hmac(so, part), `AWS4${secretAccessKey}`);
  return hmac(key, text).toString('hex');
}

export const EMPTY_HASH = sha256('');
export const hashOf = sha256;
