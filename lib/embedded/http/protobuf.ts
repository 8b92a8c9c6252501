import { badRequest } from '../api/status.ts';
import { put, type Obj } from '../json/json.ts';
import { MESSAGES, type Field, type Message } from './messages.ts';

/** What kubectl and client-go send for built-in kinds, unless they are told to send JSON. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

const MAGIC = Buffer.from('k8s\u0000');
const decoder = new TextDecoder();

/** Decodes a body in Kubernetes' protobuf envelope. */
export function parseProtobuf(body: Buffer): Obj {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC))
    throw badRequest('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]');
  const envelope = readMessage(body.subarray(MAGIC.length), ENVELOPE);
  const { apiVersion, kind } = envelope['typeMeta'] as { apiVersion: string; kind: string };
  const message = MESSAGES[kind];
  if (!message) throw badRequest(`the embedded API server does not read protobuf of kind ${kind}: send JSON`);
  return { kind, apiVersion, ...readMessage(envelope['raw'] as Uint8Array, message) };
}

const ENVELOPE: Message = {
  1: { name: 'typeMeta', type: { 1: { name: 'apiVersion', type: 'string' }, 2: { name: 'kind', type: 'string' } } },
  2: { name: 'raw', type: 'raw' },
};

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

class Reader {
  readonly #bytes: Uint8Array;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#position >= this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#bytes[this.#position];
      if (byte === undefined) throw badRequest('unexpected EOF');
      this.#position += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
  }

  take(length: number): Uint8Array {
    if (this.#position + length > this.#bytes.length) throw badRequest('unexpected EOF');
    this.#position += length;
    return this.#bytes.subarray(this.#position - length, this.#position);
  }
}

function readMessage(bytes: Uint8Array, message: Message): Obj {
  const reader = new Reader(bytes);
  const result: Obj = {};
  while (!reader.done) {
    const tag = Number(reader.varint());
    const value = readValue(reader, tag & 7);
    const field = message[tag >> 3];
    if (field) store(result, field, value);
  }
  return result;
}

function readValue(reader: Reader, wire: number): bigint | Uint8Array {
  if (wire === VARINT) return reader.varint();
  if (wire === BYTES) return reader.take(Number(reader.varint()));
  return reader.take(wire === FIXED64 ? 8 : 4);
}

function store(result: Obj, field: Field, value: bigint | Uint8Array): void {
  const read = (): unknown => convert(field, value);
  if (field.repeated) result[field.name] = [...((result[field.name] as unknown[] | undefined) ?? []), read()];
  else if (field.map) {
    const entry = readMessage(value as Uint8Array, {
      1: { name: 'key', type: 'string' },
      2: { name: 'value', type: field.type },
    });
    const map = (result[field.name] as Obj | undefined) ?? {};
    put(map, (entry['key'] as string | undefined) ?? '', entry['value'] ?? '');
    result[field.name] = map;
  } else {
    const converted = read();
    // Go's encoder writes empty strings of optional fields; JSON leaves them out.
    if (converted !== '' && converted !== undefined) result[field.name] = converted;
  }
}

function convert({ type }: Field, value: bigint | Uint8Array): unknown {
  if (typeof value === 'bigint') return type === 'bool' ? value !== 0n : Number(value);
  switch (type) {
    case 'string':
      return decoder.decode(value);
    case 'raw':
      return value;
    case 'bytes':
      return Buffer.from(value).toString('base64');
    case 'json':
      return JSON.parse(decoder.decode(value)) as unknown;
    case 'time':
    case 'microtime':
      return readTime(value, type);
    default:
      return typeof type === 'object' ? readMessage(value, type) : undefined;
  }
}

function readTime(bytes: Uint8Array, type: 'time' | 'microtime'): string | undefined {
  const { seconds = 0, nanos = 0 } = readMessage(bytes, {
    1: { name: 'seconds', type: 'int' },
    2: { name: 'nanos', type: 'int' },
  }) as { seconds?: number; nanos?: number };
  // The zero time of Go, which JSON shows as null.
  if (seconds <= 0) return undefined;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  return type === 'time' ? `${whole}Z` : `${whole}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}
