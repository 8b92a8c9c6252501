import { describe, expect, it } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import {
  encodeDeadLetter,
  errorRecord,
  MAX_DEAD_LETTER_BYTES,
  parseDeadLetter,
  plainText,
  unreadableMessage,
  type DeadLetter,
} from '../../../lib/queue/dead-letters.ts';
import { instanceRequest } from '../../support/queue/events.ts';

const letter = (extra: Partial<DeadLetter>): DeadLetter => ({
  v: 1,
  type: 'dead-letter',
  request: instanceRequest('n'.repeat(253)),
  firstFailure: 1,
  lastFailure: 2,
  attempts: 10,
  error: errorRecord(new KbindError('internal', 'x')),
  trace: [],
  versions: {},
  ...extra,
});

describe('the size cap', () => {
  it('cuts a long trace from its middle, and never the identity', () => {
    const trace = Array.from({ length: 2000 }, (_, n) => `node ${n} → yes`);
    const body = encodeDeadLetter(letter({ trace }));
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(MAX_DEAD_LETTER_BYTES);
    const read = parseDeadLetter(body);
    expect(read.request).toEqual(instanceRequest('n'.repeat(253)));
    expect(read.trace[0]).toBe('node 0 → yes');
    expect(read.trace.at(-1)).toBe('node 1999 → yes');
    expect(read.trace.some((line) => /^… \d+ steps …$/.test(line))).toBe(true);
  });

  it('cuts long lines of it', () => {
    const read = parseDeadLetter(encodeDeadLetter(letter({ trace: ['x'.repeat(5000)] })));
    expect(read.trace[0]?.length).toBeLessThan(250);
  });

  it('leaves a short one whole', () => {
    const trace = ['Binding exists? → yes', 'Persist changed status'];
    expect(parseDeadLetter(encodeDeadLetter(letter({ trace }))).trace).toEqual(trace);
  });
});

describe('foreign text', () => {
  it('loses control characters, line breaks and what turns text around', () => {
    expect(plainText('a\u0000b\r\nc\u2028d\u202Ee', 100)).toBe('a b c d e');
  });

  it('is cut', () => {
    expect(plainText('x'.repeat(20), 5)).toBe('xxxxx…');
  });

  it('of an error is cut and cleaned, its cause left out', () => {
    const error = new KbindError(
      'invalid',
      `no\n${'x'.repeat(5000)}`,
      { reason: 'In\u0000valid' },
      new Error('token=secret'),
    );
    const record = errorRecord(error);
    expect(record.message.length).toBeLessThan(600);
    expect(record.reason).toBe('In valid');
    expect(JSON.stringify(record)).not.toContain('secret');
  });
});

describe('an unreadable message', () => {
  it('keeps the start of its body, and one id per message', () => {
    const record = { messageId: 'm1', body: `{"x":"${'y'.repeat(100_000)}"}`, sentAt: 3 };
    const context = { now: 9, versions: {} };
    const message = unreadableMessage(record, new KbindError('malformed', 'unknown'), context);
    expect(Buffer.byteLength(message.body)).toBeLessThan(MAX_DEAD_LETTER_BYTES);
    expect(parseDeadLetter(message.body).body?.startsWith('{"x":"yyy')).toBe(true);
    expect(unreadableMessage(record, new KbindError('malformed', 'unknown'), context).deduplicationId).toBe(
      message.deduplicationId,
    );
  });
});

describe('reading', () => {
  it.each(['', '{}', '{"v":1,"type":"reconcile"}', JSON.stringify(instanceRequest('w'))])('refuses %s', (body) => {
    expect(() => parseDeadLetter(body)).toThrow(KbindError);
  });
});
