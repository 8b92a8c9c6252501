import { describe, expect, test } from 'vitest';
import { cleanText, refusalError, retryAfterSeconds, streamError, type Asked } from '../../../lib/kube/status.ts';
import type { ErrorClass } from '../../../lib/model/errors.ts';
import { status } from '../../support/kube/scripted-server.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const ref = { group: 'example.org', version: 'v1', resource: 'widgets', kind: 'Widget', namespaced: true };
const asked: Asked = { verb: 'get', ref, key: { namespace: 'ns', name: 'a' }, side: 'provider' };
const itself = { name: 'a', group: 'example.org', kind: 'widgets' };

const classOf = (code: number, body: unknown, about: Asked = asked): ErrorClass =>
  refusalError({ status: code, body: typeof body === 'string' ? body : JSON.stringify(body) }, about, NOW).errorClass;

describe('absent is only what the server calls absent', () => {
  test.each<[string, unknown, ErrorClass]>([
    ['a Status naming this object', status(404, 'NotFound', { details: itself }), 'absent'],
    ['plain text', '404 page not found', 'unserved'],
    ['HTML', '<html>nothing here</html>', 'unserved'],
    ['an empty body', '', 'unserved'],
    ['JSON of another kind', { error: 'not found' }, 'unserved'],
    ['a Status without details', status(404, 'NotFound'), 'unserved'],
    ['a Status of another reason', status(404, 'Gone', { details: itself }), 'unserved'],
    ['another name', status(404, 'NotFound', { details: { ...itself, name: 'b' } }), 'unserved'],
    ['another group', status(404, 'NotFound', { details: { ...itself, group: '' } }), 'unserved'],
    ['another resource', status(404, 'NotFound', { details: { ...itself, kind: 'gadgets' } }), 'unserved'],
    ['the kind instead of the plural', status(404, 'NotFound', { details: { ...itself, kind: 'Widget' } }), 'unserved'],
    ['the namespace', status(404, 'NotFound', { details: { name: 'ns', kind: 'namespaces' } }), 'namespace-missing'],
    ['another namespace', status(404, 'NotFound', { details: { name: 'other', kind: 'namespaces' } }), 'unserved'],
    ['a Status of another version', { ...status(404, 'NotFound', { details: itself }), apiVersion: 'v2' }, 'unserved'],
    ['a Status in a list', [status(404, 'NotFound', { details: itself })], 'unserved'],
  ])('%s', (_name, body, expected) => {
    expect(classOf(404, body)).toBe(expected);
  });

  test('of a core resource, without a group', () => {
    const secrets = { group: '', version: 'v1', resource: 'secrets', kind: 'Secret', namespaced: true };
    const body = status(404, 'NotFound', { details: { name: 'a', kind: 'secrets' } });
    expect(classOf(404, body, { ...asked, ref: secrets })).toBe('absent');
  });

  test('never of a list', () => {
    expect(classOf(404, status(404, 'NotFound', { details: itself }), { verb: 'list', ref })).toBe('unserved');
  });
});

const terminating = { ...itself, causes: [{ reason: 'NamespaceTerminating', message: 'ns is being terminated' }] };
const failedTest = status(422, 'Invalid', {
  message: 'the server rejected our request due to an error in our request',
});

describe('every status has its class', () => {
  test.each<[number, string, unknown, [verb: string, expected: ErrorClass]]>([
    [400, 'an unknown field', status(400, 'BadRequest'), ['create', 'invalid']],
    [401, 'no credential', status(401, 'Unauthorized'), ['get', 'unauthorized']],
    [403, 'RBAC', status(403, 'Forbidden', { details: itself }), ['create', 'forbidden']],
    [403, 'plain text of a proxy', 'forbidden', ['get', 'forbidden']],
    [
      403,
      'a terminating namespace',
      status(403, 'Forbidden', { details: terminating }),
      ['create', 'namespace-terminating'],
    ],
    [
      409,
      'a terminating namespace',
      status(409, 'Conflict', { details: terminating }),
      ['create', 'namespace-terminating'],
    ],
    [
      403,
      'a terminating CRD',
      status(403, 'Forbidden', { message: 'create not allowed while custom resource definition is terminating' }),
      ['create', 'unserved'],
    ],
    [405, 'a method that is not there', status(405, 'MethodNotAllowed'), ['create', 'unserved']],
    [406, 'a form that is not there', status(406, 'NotAcceptable'), ['list', 'unserved']],
    [408, 'a time limit', '', ['get', 'unavailable']],
    [409, 'a name that is taken', status(409, 'AlreadyExists', { details: itself }), ['create', 'conflict']],
    [409, 'a failed guard', status(409, 'Conflict', { details: itself }), ['apply', 'conflict']],
    [410, 'an old version', status(410, 'Expired'), ['list', 'expired']],
    [413, 'a large body', status(413, 'RequestEntityTooLarge'), ['create', 'invalid']],
    [415, 'a media type', status(415, 'UnsupportedMediaType'), ['apply', 'invalid']],
    [422, 'a failed test of a patch', failedTest, ['patch', 'conflict']],
    [422, 'the same words for another write', failedTest, ['apply', 'invalid']],
    [
      422,
      'a patched object that is refused',
      status(422, 'Invalid', { details: { ...itself, causes: [{ field: 'spec', message: 'bad' }] } }),
      ['patch', 'invalid'],
    ],
    [
      422,
      'a patch that a webhook refuses',
      status(422, 'Invalid', { message: 'admission webhook "x" denied the request: no' }),
      ['patch', 'invalid'],
    ],
    [
      422,
      'a uid that is another',
      status(422, 'Invalid', { details: { ...itself, causes: [{ field: 'metadata.uid', message: 'immutable' }] } }),
      ['apply', 'conflict'],
    ],
    [
      422,
      'a uid beside other causes',
      status(422, 'Invalid', { details: { ...itself, causes: [{ field: 'metadata.uid' }, { field: 'spec.a' }] } }),
      ['apply', 'invalid'],
    ],
    [422, 'the object', status(422, 'Invalid', { details: itself }), ['create', 'invalid']],
    [429, 'too many requests', status(429, 'TooManyRequests'), ['get', 'throttled']],
    [500, 'etcd’s limit', status(500, '', { message: 'etcdserver: request is too large' }), ['create', 'invalid']],
    [
      500,
      'gRPC’s limit',
      status(500, '', { message: 'rpc error: desc = trying to send message larger than max (3 vs. 2)' }),
      ['create', 'invalid'],
    ],
    [
      500,
      'a field that is not in the schema',
      status(500, '', { message: 'failed to create typed patch object: .spec.x: field not declared in schema' }),
      ['apply', 'invalid'],
    ],
    [500, 'anything else', status(500, 'InternalError'), ['get', 'unavailable']],
    [502, 'a proxy', '<html>bad gateway</html>', ['get', 'unavailable']],
    [503, 'no backend', status(503, 'ServiceUnavailable'), ['get', 'unavailable']],
    [504, 'a timeout', status(504, 'Timeout'), ['create', 'unavailable']],
    [307, 'a redirect', '', ['update', 'unavailable']],
  ])('%i for %s', (code, _name, body, [verb, expected]) => {
    expect(classOf(code, body, { ...asked, verb })).toBe(expected);
  });
});

test('an error says what was asked, of whom, and what the server said', () => {
  const body = status(422, 'Invalid', { message: 'no', details: { causes: [{ field: 'spec.a', message: 'is odd' }] } });
  const refusal = { status: 422, body: JSON.stringify(body), retryAfter: '7' };
  const error = refusalError(refusal, { ...asked, key: { ...asked.key, name: 'a', labels: 'x' } as never }, NOW);
  expect(error.message).toBe('get widgets.example.org ns/a: no');
  expect(error.details).toStrictEqual({
    verb: 'get',
    api: 'widgets.example.org',
    key: { namespace: 'ns', name: 'a' },
    side: 'provider',
    status: 422,
    reason: 'Invalid',
    retryAfterSeconds: 7,
    causes: ['spec.a: is odd'],
    continueToken: undefined,
    fillsItsCache: undefined,
  });
});

test('the token of an expired list is kept', () => {
  const body = status(410, 'Expired', { metadata: { continue: 'go-on' } });
  const error = refusalError({ status: 410, body: JSON.stringify(body) }, { verb: 'list', ref }, NOW);
  expect(error.details.continueToken).toBe('go-on');
});

test.each<[string | undefined, number | undefined]>([
  ['5', 5],
  [' 5 ', 5],
  ['0', 0],
  ['Mon, 30 Nov 2026 12:00:30 GMT', 30],
  ['Mon, 30 Nov 2026 11:00:00 GMT', 0],
  ['soon', undefined],
  ['', undefined],
  ['-5', undefined],
  ['99999999999999', undefined],
  ['999999999', 86_400],
  [undefined, undefined],
])('Retry-After %j is %j seconds', (header, seconds) => {
  expect(retryAfterSeconds(header, NOW)).toBe(seconds);
});

describe('what a server says is made harmless', () => {
  test('control, format and line characters become blanks', () => {
    expect(cleanText('a\r\nb\u0000c\u001b[31md\u202ee\u2028f\u0085g')).toBe('a b c [31md e f g');
  });

  test('long texts are cut', () => {
    expect(cleanText('x'.repeat(10_000))).toHaveLength(512);
  });

  test('a refused object that the server quotes is not shown', () => {
    const message = String.raw`"" is invalid: patch: Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": wrong type`;
    const body = status(422, 'Invalid', { message, details: { causes: [{ field: 'patch', message }] } });
    const { message: shown, details } = refusalError({ status: 422, body: JSON.stringify(body) }, asked, NOW);
    expect(shown).toBe('get widgets.example.org ns/a: "" is invalid: patch: Invalid value: (not shown): wrong type');
    expect(JSON.stringify(details)).not.toContain('c2VjcmV0');
  });

  test('of a Secret no value is shown at all, also when the quote never ends', () => {
    const secrets = { group: '', version: 'v1', resource: 'secrets', kind: 'Secret', namespaced: true };
    for (const quoted of ['"hunter2"', '"hunter2']) {
      const body = status(422, 'Invalid', { message: `data[a]: Invalid value: ${quoted}` });
      const error = refusalError({ status: 422, body: JSON.stringify(body) }, { ...asked, ref: secrets }, NOW);
      expect(error.message).toContain('(not shown)');
      expect(error.message).not.toContain('hunter2');
    }
  });
});

describe('ERROR events of a watch', () => {
  test('a Status has the class of its code', () => {
    expect(streamError(status(410, 'Expired'), { verb: 'watch', ref }).errorClass).toBe('expired');
    expect(streamError(status(500, 'InternalError'), { verb: 'watch', ref }).errorClass).toBe('unavailable');
  });

  test('anything else is a broken stream', () => {
    for (const value of [undefined, null, {}, 'gone', { kind: 'Status', apiVersion: 'v1' }]) {
      expect(streamError(value, { verb: 'watch', ref }).errorClass).toBe('unavailable');
    }
  });
});
