import { crc32, deflateRawSync } from 'node:zlib';

/** One file of an archive. */
export interface ZipEntry {
  readonly name: string;
  readonly data: Uint8Array;
}

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const UNIX = 3 << 8;
const DEFLATE = 8;
/** 1980-01-01 00:00, the first moment that a ZIP file can name: the same content is the same archive, whenever it is built. */
const DATE = 0x21;
/** A regular file that everybody may read: Lambda runs as another user. */
const MODE = (0o100644 << 16) >>> 0;

/** A ZIP archive of a few files, byte for byte the same for the same content, so that nothing changed deploys nothing. */
export function zip(entries: readonly ZipEntry[]): Uint8Array {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data } of entries) {
    const nameBytes = Buffer.from(name, 'utf8');
    const packed = deflateRawSync(data, { level: 9 });
    const shared = header({ crc: crc32(data), packed: packed.length, size: data.length, name: nameBytes.length });
    const local = Buffer.concat([uint32(LOCAL_HEADER), shared, nameBytes, packed]);
    const central = Buffer.alloc(14);
    central.writeUInt32LE(MODE, 6);
    central.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([uint32(CENTRAL_HEADER), uint16(VERSION | UNIX), shared, central, nameBytes]));
    files.push(local);
    offset += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, list, end]);
}

interface HeaderFacts {
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly name: number;
}

/** What the local and the central header have in common: from the version needed to the length of the extra field. */
function header({ crc, packed, size, name }: HeaderFacts): Buffer {
  const bytes = Buffer.alloc(26);
  bytes.writeUInt16LE(VERSION, 0);
  bytes.writeUInt16LE(DEFLATE, 4);
  bytes.writeUInt16LE(DATE, 8);
  bytes.writeUInt32LE(crc, 10);
  bytes.writeUInt32LE(packed, 14);
  bytes.writeUInt32LE(size, 18);
  bytes.writeUInt16LE(name, 22);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}
