import type { Readable } from 'node:stream';

/** More bytes than were to be taken. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/**
 * Reads a body up to a number of bytes. Beyond, the connection is given up and {@link TooLarge} thrown, or with `cut` the
 * beginning answered.
 */
export async function readBody(body: Readable, maxBytes: number, beyond: 'throw' | 'cut' = 'throw'): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    chunks.push(chunk);
    if (bytes <= maxBytes) continue;
    if (beyond === 'cut') break; // leaving the loop destroys the body
    throw new TooLarge(`more than ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}
