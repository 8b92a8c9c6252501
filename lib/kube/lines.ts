import { TooLarge } from './body.ts';

const NEWLINE = 0x0a;

/**
 * Splits a stream into lines at 0x0A bytes, before anything is decoded: characters of several bytes may lie across pieces,
 * and U+2028 is no line end. Empty lines are left out, and so is an unfinished line at the end: its stream was cut.
 * Throws {@link TooLarge} for a line beyond `maxBytes`.
 */
export async function* splitLines(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (held + piece.byteLength > maxBytes) throw new TooLarge(`a line of more than ${maxBytes} bytes`);
      const line = pieces.length === 0 ? piece : Buffer.concat([...pieces, piece]);
      pieces = [];
      held = 0;
      if (line.byteLength > 0) yield line;
    }
    const rest = chunk.subarray(start);
    held += rest.byteLength;
    if (held > maxBytes) throw new TooLarge(`a line of more than ${maxBytes} bytes`);
    if (rest.byteLength > 0) pieces.push(rest);
  }
}
