import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import { controllers, type ReconcileRequest, type Request } from '../../../lib/model/request.ts';
import { encodeMessage, MAX_MESSAGE_BYTES, parseMessage } from '../../../lib/queue/codec.ts';
import { CLUSTER, instanceRequest } from '../../support/queue/events.ts';

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/);
const epoch = fc.integer({ min: 0, max: 4_000_000_000_000 });
const withOptional = <T extends object>(base: fc.Arbitrary<T>, extra: fc.Arbitrary<object>): fc.Arbitrary<T> =>
  fc.tuple(base, extra).map(([a, b]) => ({ ...a, ...b }));
const chain = fc.record({ firstFailure: epoch, waited: fc.integer({ min: 0, max: 900 }) }, { requiredKeys: [] });

const reconcile: fc.Arbitrary<ReconcileRequest> = withOptional(
  fc
    .record({
      controller: fc.constantFrom(...controllers),
      namespace: label,
      name: label,
      group: label,
      retry: fc.boolean(),
      attempt: fc.nat(50),
    })
    .map(({ controller, namespace, name, group, retry, attempt }): ReconcileRequest => ({
      v: 1,
      type: 'reconcile',
      cluster: CLUSTER,
      controller,
      ...(controller === 'instance' ? { api: `widgets.${group}` } : {}),
      ...(controller === 'binding' || controller === 'instance' ? { namespace } : {}),
      name,
      retry,
      attempt,
    })),
  chain,
);
const sweep = withOptional(
  fc.record({
    v: fc.constant(1),
    type: fc.constant('sweep'),
    cluster: fc.constant(CLUSTER),
    id: label,
    retry: fc.boolean(),
  }),
  fc.record(
    {
      apis: fc.array(
        label.map((group) => `things.${group}`),
        { maxLength: 3 },
      ),
      namespace: label,
      attempt: fc.nat(9),
    },
    { requiredKeys: [] },
  ),
) as fc.Arbitrary<Request>;
const others = fc.oneof(
  fc.record({
    v: fc.constant(1),
    type: fc.constant('heartbeat'),
    cluster: fc.constant(CLUSTER),
    at: epoch,
    watches: fc.nat(1000),
  }),
  fc.record({ v: fc.constant(1), type: fc.constant('refresh'), cluster: fc.constant(CLUSTER), id: label }),
  fc.record({
    v: fc.constant(1),
    type: fc.constant('due'),
    request: reconcile,
    dueAt: epoch,
    delaySeconds: fc.integer({ min: 0, max: 900 }),
  }),
) as fc.Arbitrary<Request>;

const refusal = (body: string): KbindError => {
  try {
    parseMessage(body);
  } catch (error) {
    if (error instanceof KbindError) return error;
    throw error;
  }
  throw new Error(`was taken: ${body.slice(0, 100)}`);
};

describe('codec', () => {
  it('reads back every request that it writes', () => {
    fc.assert(
      fc.property(fc.oneof(reconcile, sweep, others), (request) => {
        expect(parseMessage(encodeMessage(request))).toEqual(request);
      }),
    );
  });

  it('refuses anything else as malformed, and throws nothing but that', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
        expect(refusal(body).errorClass).toBe('malformed');
      }),
    );
  });

  const good = instanceRequest('w1');
  it.each<[string, unknown, RegExp]>([
    ['another version', { ...good, v: 2 }, /^v: /],
    ['no version', { ...good, v: undefined }, /^v: /],
    ['an unknown type', { ...good, type: 'delete' }, /type/],
    ['an unknown field', { ...good, object: { spec: {} } }, /object/],
    ['an unknown controller', { ...good, controller: 'secrets' }, /^controller: /],
    ['an instance without API', { ...good, api: undefined }, /does not fit the controller/],
    ['a Connection with an API', { ...good, controller: 'connection' }, /does not fit the controller/],
    [
      'a Binding without namespace',
      { ...good, controller: 'binding', api: undefined, namespace: undefined },
      /does not fit/,
    ],
    ['a ClusterBinding with namespace', { ...good, controller: 'clusterbinding', api: undefined }, /does not fit/],
    ['a name with a slash', { ...good, name: 'a/b' }, /^name: /],
    ['a name that climbs', { ...good, name: '..' }, /^name: /],
    ['a name with a line break', { ...good, name: 'a\nb' }, /^name: /],
    ['an empty name', { ...good, name: '' }, /^name: /],
    ['a name of 254 characters', { ...good, name: 'a'.repeat(254) }, /^name: /],
    ['a namespace in capitals', { ...good, namespace: 'Default' }, /^namespace: /],
    ['an API without group', { ...good, api: 'secrets' }, /^api: /],
    ['an API that climbs', { ...good, api: 'a.b/../c' }, /^api: /],
    ['a negative attempt', { ...good, attempt: -1 }, /^attempt: /],
    ['an attempt that is no whole number', { ...good, attempt: 0.5 }, /^attempt: /],
    ['a retry that is text', { ...good, retry: 'false' }, /^retry: /],
    [
      'a due request around a sweep',
      { v: 1, type: 'due', request: { type: 'sweep' }, dueAt: 1, delaySeconds: 1 },
      /^request/,
    ],
    ['a list', [good], /message: /],
    ['null', null, /message: /],
  ])('refuses %s and says why', (_name, message, reason) => {
    expect(refusal(JSON.stringify(message)).message).toMatch(reason);
  });

  it('takes names of 253 characters', () => {
    const request = instanceRequest('a'.repeat(253));
    expect(parseMessage(JSON.stringify(request))).toEqual(request);
  });

  it.each(['__proto__', 'constructor', 'prototype'])('refuses the key %s wherever it stands', (key) => {
    const nested = `{"v":1,"type":"due","request":{"${key}":{"retry":true}},"dueAt":1,"delaySeconds":1}`;
    expect(refusal(nested).message).toBe(`message has the forbidden key ${key}`);
    expect(({} as Record<string, unknown>)['retry']).toBeUndefined();
  });

  it('refuses bodies over the limit before it parses them', () => {
    expect(refusal(`"${'é'.repeat(MAX_MESSAGE_BYTES / 2)}"`).message).toMatch(/more than/);
  });

  it('bears deep nesting', () => {
    expect(refusal(`${'['.repeat(50_000)}${']'.repeat(50_000)}`).errorClass).toBe('malformed');
  });

  it('does not quote what it refuses', () => {
    const error = refusal(JSON.stringify({ ...good, name: 'token/s3cr3t' }));
    expect(error.message).not.toContain('s3cr3t');
  });

  it('does not write what it could not read', () => {
    expect(() => encodeMessage(instanceRequest('a/b'))).toThrow(/unreadable message: name/);
  });
});
