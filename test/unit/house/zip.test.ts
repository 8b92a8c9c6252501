import { describe, expect, it } from 'vitest';
import { zip } from '../../../scripts/zip.ts';
import { readZip } from '../../support/local/read-zip.ts';

describe('zip', () => {
  const files = [
    { name: 'functions/a.mjs', data: Buffer.from('export const a = 1;\n'.repeat(500)) },
    { name: 'ü.txt', data: Buffer.from('Grüße') },
    { name: 'empty', data: Buffer.alloc(0) },
  ];
  it('holds what was put in', () => expect(readZip(Buffer.from(zip(files)))).toEqual(files));

  it('is the same for the same content', () => expect(zip(files)).toEqual(zip(structuredClone(files))));

  it('lets everybody read the files: Lambda runs as another user', () => {
    const archive = Buffer.from(zip(files));
    const directory = archive.readUInt32LE(archive.length - 6);
    expect(archive.readUInt32LE(directory + 38) >>> 16).toBe(0o100644);
  });
});
