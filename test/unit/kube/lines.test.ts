import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TooLarge } from '../../../lib/kube/body.ts';
import { splitLines } from '../../../lib/kube/lines.ts';

async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const linesOf = async (source: AsyncIterable<Uint8Array>, max = 1e6): Promise<string[]> => {
  const lines: string[] = [];
  for await (const line of splitLines(source, max)) lines.push(new TextDecoder('utf-8', { fatal: true }).decode(line));
  return lines;
};

test('lines come whole, however the bytes were cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'binary' }).map((line) => line.replaceAll('\n', ' ').toWellFormed())),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
      async (lines, sizes) => {
        const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''));
        expect(await linesOf(pieces(bytes, sizes))).toStrictEqual(lines.filter((line) => line !== ''));
      },
    ),
  );
});

test('U+2028 ends no line', async () => {
  expect(await linesOf(pieces(new TextEncoder().encode('{"a":"x\u2028y"}\n'), [1]))).toStrictEqual([
    '{"a":"x\u2028y"}',
  ]);
});

test('a line that was cut off is no line', async () => {
  expect(await linesOf(pieces(new TextEncoder().encode('{"a":1}\n{"b":'), [3]))).toStrictEqual(['{"a":1}']);
});

test('a line without end is given up', async () => {
  await expect(linesOf(pieces(new Uint8Array(100), [10]), 50)).rejects.toThrow(TooLarge);
  await expect(linesOf(pieces(new TextEncoder().encode(`${'x'.repeat(60)}\n`), [100]), 50)).rejects.toThrow(TooLarge);
});
