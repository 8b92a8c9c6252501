import { crc32, inflateRawSync } from 'node:zlib';

/** Reads an archive by its directory, as unzip does, and checks each file's sum and both of its headers. */
export function readZip(archive: Buffer): { readonly name: string; readonly data: Buffer }[] {
  const end = archive.lastIndexOf(Buffer.from('504b0506', 'hex'));
  if (end < 0) throw new Error('no end of a directory');
  const count = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  return Array.from({ length: count }, () => {
    if (archive.readUInt32LE(at) !== 0x02014b50) throw new Error('no directory entry');
    const nameLength = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    const local = archive.readUInt32LE(at + 42);
    const data = readEntry(archive, local, {
      packed: archive.readUInt32LE(at + 20),
      crc: archive.readUInt32LE(at + 16),
    });
    if (archive.readUInt32LE(at + 24) !== data.length) throw new Error(`${name}: wrong size`);
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
    return { name, data };
  });
}

function readEntry(archive: Buffer, at: number, entry: { readonly packed: number; readonly crc: number }): Buffer {
  if (archive.readUInt32LE(at) !== 0x04034b50) throw new Error('no file header');
  const start = at + 30 + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28);
  const data = inflateRawSync(archive.subarray(start, start + entry.packed));
  if (crc32(data) !== entry.crc || archive.readUInt32LE(at + 14) !== entry.crc) throw new Error('wrong sum');
  return data;
}
