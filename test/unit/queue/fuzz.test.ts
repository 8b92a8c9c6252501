import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWatchPlan, printWatchPlan, type WatchPlan } from '../../../lib/model/watch-plan.ts';
import { KbindError } from '../../../lib/model/errors.ts';
import type { Request } from '../../../lib/model/request.ts';
import { encodeMessage, parseMessage } from '../../../lib/queue/codec.ts';
import { parseDeadLetter } from '../../../lib/queue/dead-letters.ts';
import { encodeIngestBody, parseIngestBody } from '../../../lib/queue/ingest-codec.ts';
import { readEntry } from '../../../lib/replay/entry.ts';
import { instanceRequest } from '../../support/queue/events.ts';
import { letter } from '../../support/queue/letters.ts';

/** Bodies that were good once: somebody else's release, a hand at the console, somebody who means harm. */

const hostile = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    '__proto__',
    'constructor',
    '../../etc/passwd',
    'a/b',
    '%2e%2e',
    '\u0000',
    'x'.repeat(300),
    1e308,
    -0,
    null,
    [],
  ),
);
const step = fc.record({ at: fc.nat(1_000), with: hostile, how: fc.constantFrom('replace', 'remove', 'add') });

type Tree = Record<string, unknown>;

/** Every map of a document, itself included. */
function mapsOf(value: unknown): Tree[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.values(value).flatMap(mapsOf);
  return Array.isArray(value) ? inside : [value as Tree, ...inside];
}

/** A good body with something in it replaced, left out or added. */
function mutate(body: string, steps: readonly { at: number; with: unknown; how: string }[]): string {
  const document = JSON.parse(body) as unknown;
  for (const { at, with: value, how } of steps) {
    const maps = mapsOf(document);
    const map = maps[at % maps.length];
    const names = Object.keys(map ?? {});
    const name = names[at % Math.max(1, names.length)] ?? 'v';
    if (map === undefined) continue;
    if (how === 'remove') delete map[name];
    else Object.defineProperty(map, how === 'add' ? newName(value) : name, define(value));
  }
  return JSON.stringify(document);
}

/** Now and then a name that reaches a prototype. */
const newName = (value: unknown): string => (typeof value === 'string' ? value : 'x');

const define = (value: unknown): PropertyDescriptor => ({
  value,
  enumerable: true,
  configurable: true,
  writable: true,
});

/** What the reader answered, or the class of what it threw. */
function outcome(read: () => unknown): { readonly value?: unknown; readonly refused?: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof KbindError) return { refused: error.errorClass };
    throw error;
  }
}

const bodies = {
  instance: JSON.stringify(instanceRequest('w', { firstFailure: 3, waited: 4 })),
  due: JSON.stringify({ v: 1, type: 'due', request: instanceRequest('w'), dueAt: 5, delaySeconds: 2 }),
  sweep: JSON.stringify({
    v: 1,
    type: 'sweep',
    cluster: 'c',
    id: 's',
    retry: true,
    apis: ['widgets.example.org'],
    cursor: { api: 'widgets.example.org', consumer: 't', provider: null, after: 'a/b' },
  }),
  heartbeat: JSON.stringify({ v: 1, type: 'heartbeat', cluster: 'c', at: 1, watches: 2 }),
  refresh: JSON.stringify({ v: 1, type: 'refresh', cluster: 'c', id: 'r' }),
};

const mutated = (body: string): fc.Arbitrary<string> =>
  fc.array(step, { minLength: 1, maxLength: 4 }).map((steps) => mutate(body, steps));

describe('a body that is not as it was sent', () => {
  it.each(Object.entries(bodies))(
    '%s: is refused as malformed, or reads as what is written again alike',
    (_name, body) => {
      fc.assert(
        fc.property(mutated(body), (text) => {
          const { value, refused } = outcome(() => parseMessage(text));
          const again = refused === undefined ? parseMessage(encodeMessage(value as Request)) : value;
          expect(again).toEqual(value);
          expect(refused ?? 'malformed').toBe('malformed');
          expect(({} as Tree)['retry']).toBeUndefined();
        }),
        { numRuns: 400 },
      );
    },
  );

  it('of the webhook is refused as malformed, or holds first requests only', () => {
    const body = encodeIngestBody([{ message: { ...instanceRequest('w') }, change: 'u/1' }]);
    fc.assert(
      fc.property(fc.oneof(mutated(body), fc.json(), fc.string()), (text) => {
        const { value = [], refused } = outcome(() => parseIngestBody(text));
        const messages = (value as ReturnType<typeof parseIngestBody>).map(({ message }) => message);
        expect(refused ?? 'malformed').toBe('malformed');
        expect(messages.filter((message) => 'firstFailure' in message || 'cursor' in message)).toEqual([]);
      }),
      { numRuns: 600 },
    );
  });

  it('of a dead letter is an entry all the same: one with a request that can be sent, or one that says what it is', () => {
    fc.assert(
      fc.property(fc.oneof(mutated(letter('w')), mutated(bodies.instance), fc.json(), fc.string()), (body) => {
        const { request, unfit } = readEntry({ queue: 'deadLetters', id: 'm', receipt: 'r', body, sentAt: 1 });
        expect(request === undefined).toBe(unfit !== undefined);
        expect(request === undefined ? undefined : parseMessage(encodeMessage(request))).toEqual(request);
        expect(outcome(() => parseDeadLetter(body)).refused ?? 'malformed').toBe('malformed');
      }),
      { numRuns: 600 },
    );
  });

  it('of a watch plan is none, or one that is written alike', () => {
    const plan: WatchPlan = {
      v: 1,
      generation: 1,
      version: 'v1',
      scope: 'Namespaced',
      connection: 'c',
      cluster: 'u',
      epoch: 'e',
      provider: true,
    };
    fc.assert(
      fc.property(fc.oneof(mutated(printWatchPlan(plan)), fc.json(), fc.string()), (text) => {
        const read = parseWatchPlan(text);
        expect(read === undefined ? undefined : parseWatchPlan(printWatchPlan(read))).toEqual(read);
      }),
      { numRuns: 600 },
    );
  });
});
