import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { parseJson, printJson } from '../../../lib/kube/json.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { toList, toObject } from '../../../lib/kube/objects.ts';
import { refusalError } from '../../../lib/kube/status.ts';
import { resources } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';

/** What others wrote: Secrets with kubeconfigs, answers of servers. */

const SECRET = 'tok-s3cr3t-tok';
const egress = { allowLoopback: false };
const asked = { verb: 'get', ref: resources.secrets, key: { namespace: 'n', name: 's' } };

/** What a read answered, or our own error; anything else that is thrown is a bug. */
function outcome<T>(read: () => T): { readonly value?: T; readonly error?: KbindError } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof KbindError) return { error };
    throw error;
  }
}

describe('kubeconfigs', () => {
  const hostile = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(SECRET, `https://${SECRET}@a`, 'file:///etc/passwd', '/etc/passwd', '\u0000', 'https://[::1]', {
      exec: SECRET,
    }),
  );
  const fields = [
    'server',
    'token',
    'tokenFile',
    'exec',
    'proxy-url',
    'username',
    'client-key',
    'extra\nfield',
  ] as const;
  const part = fc.dictionary(fc.constantFrom(...fields), hostile);
  const config = fc
    .record({ cluster: part, user: part, context: part, top: fc.dictionary(fc.string(), hostile) })
    .map(({ cluster, user, context, top }) => ({
      'current-context': 'x',
      clusters: [{ name: 'c', cluster: { server: 'https://api.example.org', ...cluster } }],
      users: [{ name: 'u', user: { token: SECRET, ...user } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
      ...top,
    }));

  test('are taken whole or refused as credentials, and never quoted', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          config.map((each) => stringify(each)),
          fc.string(),
          fc.json(),
        ),
        (text) => {
          const { value, error } = outcome(() => parseForeignKubeconfig(text, egress));
          expect(value === undefined ? 'https:' : new URL(value.server).protocol).toBe('https:');
          expect(error?.errorClass ?? 'credential').toBe('credential');
          expect(error?.message ?? '').not.toContain(SECRET);
          expect(error?.message ?? '').not.toMatch(/\p{Cc}/u);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('answers', () => {
  test('that refuse become one error of ours with one line, whatever they say', () => {
    const body = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc
        .record({
          message: fc.string({ unit: 'binary' }),
          reason: fc.oneof(fc.string(), fc.constantFrom('NotFound', 'Invalid', 'Expired')),
          details: fc.jsonValue(),
          code: fc.oneof(fc.integer(), fc.string()),
        })
        .map((status) => JSON.stringify({ kind: 'Status', apiVersion: 'v1', ...status })),
    );
    const header = fc.option(fc.oneof(fc.string(), fc.nat(10_000).map(String)), { nil: undefined });
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 599 }), body, header, (status, text, retryAfter) => {
        const error = refusalError(
          { status, body: text, ...(retryAfter === undefined ? {} : { retryAfter }) },
          asked,
          0,
        );
        expect(error).toBeInstanceOf(KbindError);
        expect(error.message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
        expect(error.message.length).toBeLessThan(2_000);
        expect(error.details.retryAfterSeconds ?? 0).toBeGreaterThanOrEqual(0);
        // Only a Status that names this very Secret says that it is absent.
        expect(error.errorClass !== 'absent' || text.includes('"name":"s"')).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('of any JSON are objects and lists, or no answer', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (metadata, items) => {
        const reads = [
          outcome(() => toObject({ metadata }, asked)),
          outcome(() => toList({ metadata, items }, asked)),
          outcome(() => toObject(metadata, asked)),
        ];
        expect(reads.filter(({ error }) => error !== undefined && error.errorClass !== 'unavailable')).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('with numbers of any spelling beside strings that look like them come back as they were', () => {
    const tricky = fc.oneof(
      fc.string(),
      fc.constantFrom('number0:1.5', '":1.0', '\\', '\\"', '[1.0,', '{"a":1e5', 'number0:', '\\u006eumber0:1.0'),
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 4 }, tricky, fc.constantFrom(1, 0.5, null, true), tie('list'), tie('map')),
      list: fc.array(tie('any'), { maxLength: 4 }),
      map: fc.dictionary(tricky, tie('any'), { maxKeys: 4 }),
    })).any;
    fc.assert(
      fc.property(value, (inside) => {
        const text = `{"first":1.0,"inside":${JSON.stringify(inside)},"last":[9007199254740993]}`;
        expect(printJson(parseJson(text))).toBe(
          printJson(JSON.parse(text))
            .replace('{"first":1', '{"first":1.0')
            .replace(/\[9007199254740992\]\}$/, '[9007199254740993]}'),
        );
      }),
      { numRuns: 500 },
    );
  });
});
