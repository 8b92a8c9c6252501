import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, unique } from '../../support/apiserver/servers.ts';
import type { Reply } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

onEveryServer('validation', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const post = (spec: object, metadata: object = {}): Promise<Reply> =>
    server().api.post(widgetPath(ns), widget(unique('w'), spec, metadata));
  const causeAt = ({ body }: Reply, field: string): string | undefined =>
    body.details?.causes?.find((cause) => cause.field === field)?.message;

  it('answers 422 with a cause that names the field', async () => {
    const { code, body } = await server().api.post(widgetPath(ns), widget('shape', { size: 'huge' }));
    expect(code).toBe(422);
    expect(body).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      reason: 'Invalid',
      details: { name: 'shape', group: 'example.org', kind: 'Widget' },
    });
    expect(body.message).toContain('Widget.example.org "shape" is invalid: ');
    expect(body.details?.causes?.[0]).toEqual({
      reason: 'FieldValueNotSupported',
      message: 'Unsupported value: "huge": supported values: "small", "large", "xlarge"',
      field: 'spec.size',
    });
  });

  it.each([
    [
      'a string for a number',
      { replicas: '1' },
      'spec.replicas',
      /^Invalid value: "string": spec\.replicas in body must be of type integer: "string"$/,
    ],
    ['a number for a string', { note: 1 }, 'spec.note', /must be of type string: "integer"$/],
    ['a list for an object', { granular: [] }, 'spec.granular', /must be of type object: "array"$/],
    ['an object for a list', { steps: {} }, 'spec.steps', /must be of type array: "object"$/],
    ['a fraction for an integer', { replicas: 1.5 }, 'spec.replicas', /must be of type integer: "number"$/],
    [
      'a number that is too large',
      { replicas: 11 },
      'spec.replicas',
      /^Invalid value: 11: spec\.replicas in body should be less than or equal to 10$/,
    ],
    [
      'a number that is too small',
      { replicas: -1 },
      'spec.replicas',
      /^Invalid value: -1: spec\.replicas in body should be greater than or equal to 0$/,
    ],
    [
      'a text that does not match',
      { note: 'ABC' },
      'spec.note',
      /^Invalid value: "ABC": spec\.note in body should match '\^\[a-z \]\*\$'$/,
    ],
    [
      'a text that is too long',
      { note: 'a'.repeat(21) },
      'spec.note',
      /may not be more than 20 bytes|should be at most 20 chars long/,
    ],
    ['a list item without its key', { ports: [{ port: 1 }] }, 'spec.ports[0].name', /^Required value/],
    ['a wrong type in a list', { steps: ['a', 1] }, 'spec.steps[1]', /must be of type string: "integer"$/],
    ['a wrong type in a map', { atomic: { a: 1 } }, 'spec.atomic.a', /must be of type string: "integer"$/],
    ['a repeated item of a set', { tags: ['a', 'b', 'a'] }, 'spec.tags[2]', /^Duplicate value: "a"$/],
    [
      'a repeated key of a map list',
      { ports: [{ name: 'a' }, { name: 'a' }] },
      'spec.ports[1]',
      /^Duplicate value: (map\[.*\]|\{"name":"a"\})$/,
    ],
  ])('refuses %s', async (_title, spec, field, message) => {
    const reply = await post(spec);
    expect([reply.code, reply.body.reason]).toEqual([422, 'Invalid']);
    // 1.20 places some causes elsewhere and words them another way.
    expect(kind.minor < 22 ? 'worded another way' : causeAt(reply, field)).toMatch(kind.minor < 22 ? /./ : message);
  });

  it('names every field that is wrong', async () => {
    const { body } = await post({ size: 'huge', replicas: 11 });
    expect((body.details?.causes ?? []).map(({ field }) => field)).toEqual(
      expect.arrayContaining(['spec.size', 'spec.replicas']),
    );
  });

  it('takes integers and strings where either may be', async () => {
    expect((await post({ port: 80 })).body.spec['port']).toBe(80);
    expect((await post({ port: '80%' })).body.spec['port']).toBe('80%');
    expect((await post({ port: true })).code).toBe(422);
  });

  it('keeps null where it is allowed and drops it elsewhere', async () => {
    const { code, body } = await post({ nothing: null, note: null, color: null });
    expect(code).toBe(201);
    expect(body.spec).toEqual({ nothing: null, color: 'blue' });
  });

  it('keeps empty values', async () => {
    const { body } = await post({ note: '', granular: {}, steps: [], ratio: 0 });
    expect(body.spec).toMatchObject({ note: '', granular: {}, steps: [], ratio: 0 });
  });

  it.skipIf(kind.minor < 25)('enforces a transition rule (since 1.25)', async () => {
    const { body } = await post({ frozen: 'a' });
    const path = widgetPath(ns, body.metadata.name);
    const reply = await server().api.patch(path, 'merge', { spec: { frozen: 'b' } });
    expect([reply.code, reply.body.reason]).toEqual([422, 'Invalid']);
    expect(causeAt(reply, 'spec.frozen')).toBe('Invalid value: "b": frozen is immutable');
    expect((await server().api.patch(path, 'merge', { spec: { frozen: 'a', size: 'large' } })).code).toBe(200);
  });

  it.skipIf(kind.minor < 25)('does not ask a transition rule of a new field (since 1.25)', async () => {
    const { body } = await post({});
    expect(
      (await server().api.patch(widgetPath(ns, body.metadata.name), 'merge', { spec: { frozen: 'first' } })).code,
    ).toBe(200);
  });

  it.skipIf(kind.minor < 30)('enforces comparisons, macros and messages of rules (since 1.30)', async () => {
    const spec = {
      type: 'object',
      'x-kubernetes-validations': [
        { rule: 'self.min <= self.max', message: 'min must not exceed max' },
        {
          rule: '!has(self.names) || self.names.all(n, n.startsWith("a") || n.size() > 3)',
          messageExpression: '"bad names: " + self.mode',
        },
        {
          rule: '(self.mode == "on") == has(self.level)',
          fieldPath: '.level',
          reason: 'FieldValueRequired',
          message: 'level goes with mode on',
        },
      ],
      required: ['min', 'max', 'mode'],
      properties: {
        min: { type: 'integer' },
        max: { type: 'integer' },
        mode: { type: 'string', maxLength: 9 },
        level: { type: 'integer' },
        names: { type: 'array', maxItems: 10, items: { type: 'string', maxLength: 20 } },
      },
    };
    await installCrd(server(), widgetCrd({ plural: 'ruleds', kind: 'Ruled', spec }));
    const path = `/apis/example.org/v1/namespaces/${ns}/ruleds`;
    const ruled = (each: object) =>
      server().api.post(path, {
        apiVersion: 'example.org/v1',
        kind: 'Ruled',
        metadata: { generateName: 'r-' },
        spec: { min: 1, max: 2, mode: 'off', ...each },
      });
    expect((await ruled({})).code).toBe(201);
    expect((await ruled({ names: ['abc', 'long'] })).code).toBe(201);
    expect(causeAt(await ruled({ min: 3 }), 'spec')).toMatch(/: min must not exceed max$/);
    expect(causeAt(await ruled({ names: ['b'] }), 'spec')).toMatch(/: bad names: off$/);
    expect(causeAt(await ruled({ mode: 'on' }), 'spec.level')).toMatch(/level goes with mode on$/);
    expect((await ruled({ mode: 'on', level: 1 })).code).toBe(201);
  });

  it.each([
    ['Bad_Name', SUBDOMAIN],
    ['-a', SUBDOMAIN],
    ['a..b', SUBDOMAIN],
    ['a/b', SUBDOMAIN],
  ])('refuses the name %s', async (name, message) => {
    const reply = await server().api.post(widgetPath(ns), widget(name));
    expect(reply.code).toBe(422);
    expect(causeAt(reply, 'metadata.name')).toContain(message);
  });

  it('refuses a name that is too long', async () => {
    expect((await server().api.post(widgetPath(ns), widget('a'.repeat(253)))).code).toBe(201);
    const reply = await server().api.post(widgetPath(ns), widget('a'.repeat(254)));
    expect(reply.code).toBe(422);
    expect(causeAt(reply, 'metadata.name')).toMatch(/must be no more than 253 (bytes|characters)/);
  });

  it.each([
    ['a key with a bad start', { '-a': 'b' }, /name part must consist of alphanumeric characters/],
    ['an empty prefix', { '/a': 'b' }, /prefix part must be non-empty/],
    ['two slashes', { 'a/b/c': 'd' }, /a (qualified name|valid label key) must consist of alphanumeric characters/],
    [
      'a value with a space',
      { a: 'b c' },
      /a valid label must be an empty string or consist of alphanumeric characters/,
    ],
    ['a value that is too long', { a: 'b'.repeat(64) }, /must be no more than 63 (bytes|characters)/],
  ])('refuses a label with %s', async (_title, labels, message) => {
    const reply = await post({}, { labels });
    expect(reply.code).toBe(422);
    expect(causeAt(reply, 'metadata.labels')).toMatch(message);
  });

  it('refuses an annotation with a bad key', async () => {
    expect(causeAt(await post({}, { annotations: { 'a b': 'c' } }), 'metadata.annotations')).toMatch(
      /name part must consist of/,
    );
  });

  it('refuses annotations of more than 256 KiB', async () => {
    const reply = await post({}, { annotations: { a: 'x'.repeat(262_145) } });
    expect(reply.code).toBe(422);
    expect(causeAt(reply, 'metadata.annotations')).toMatch(
      /^Too long: (may not be more than 262144 bytes|must have at most 262144 bytes)/,
    );
  });

  it('refuses a label that is no text with 400', async () => {
    const { code, body } = await post({}, { labels: { a: 1 } });
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
  });

  it('takes a finalizer without a domain on a custom resource, not on a built-in one', async () => {
    expect((await post({}, { finalizers: ['plain'] })).code).toBe(201);
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: unique('s'), finalizers: ['plain'] } };
    expect((await server().api.post(`/api/v1/namespaces/${ns}/secrets`, secret)).code).toBe(kind.embedded ? 422 : 422);
  });

  it('refuses an owner without uid', async () => {
    const { code } = await post({}, { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '' }] });
    expect(code).toBe(422);
  });

  it('refuses two controllers', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', controller: true };
    const { code } = await post(
      {},
      {
        ownerReferences: [
          { ...owner, name: 'a', uid: '1' },
          { ...owner, name: 'b', uid: '2' },
        ],
      },
    );
    expect(code).toBe(422);
  });

  it('refuses to change a uid', async () => {
    const { body } = await post({});
    const reply = await server().api.patch(widgetPath(ns, body.metadata.name), 'merge', { metadata: { uid: 'other' } });
    expect([409, 422]).toContain(reply.code);
  });

  it('judges the status, too', async () => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object' }, status: { type: 'object', properties: { count: { type: 'integer' } } } },
    };
    const crd = widgetCrd({ plural: 'counteds', kind: 'Counted' });
    await installCrd(server(), {
      ...crd,
      spec: {
        ...crd.spec,
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: schema },
          },
        ],
      },
    });
    const path = `/apis/example.org/v1/namespaces/${ns}/counteds`;
    await server().api.post(path, { apiVersion: 'example.org/v1', kind: 'Counted', metadata: { name: 'a' }, spec: {} });
    const reply = await server().api.patch(`${path}/a/status`, 'merge', { status: { count: 'many', other: 1 } });
    expect(causeAt(reply, 'status.count')).toMatch(/must be of type integer/);
    expect(
      (await server().api.patch(`${path}/a/status`, 'merge', { status: { count: 1, other: 1 } })).body['status'],
    ).toEqual({ count: 1 });
  });

  it.each([
    ['date-time', '2026-01-02T03:04:05Z', 'yesterday'],
    ['byte', 'YWJj', '%%%'],
    ['ipv4', '10.0.0.1', '300.1.1.1'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', 'nonsense'],
    ['duration', '5m', 'soon'],
  ])('checks the format %s', async (format, good, bad) => {
    const plural = `f${format.replaceAll('-', '')}s`;
    const spec = { type: 'object', properties: { value: { type: 'string', format } } };
    await installCrd(server(), widgetCrd({ plural, kind: `F${format.replaceAll('-', '')}`, spec }));
    const send = (value: string) =>
      server().api.post(`/apis/example.org/v1/namespaces/${ns}/${plural}`, {
        apiVersion: 'example.org/v1',
        kind: `F${format.replaceAll('-', '')}`,
        metadata: { generateName: 'x-' },
        spec: { value },
      });
    expect((await send(good)).code).toBe(201);
    expect((await send(bad)).code).toBe(422);
  });

  it('prunes and defaults inside embedded resources, and keeps their metadata', async () => {
    const template = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: { spec: { type: 'object', properties: { a: { type: 'string', default: 'b' } } } },
    };
    await installCrd(
      server(),
      widgetCrd({ plural: 'templates', kind: 'Template', spec: { type: 'object', properties: { template } } }),
    );
    const path = `/apis/example.org/v1/namespaces/${ns}/templates`;
    const inner = {
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: { name: 'x', labels: { a: 'b' } },
      spec: { unknown: 1 },
      extra: 1,
    };
    const { code, body } = await server().api.post(path, {
      apiVersion: 'example.org/v1',
      kind: 'Template',
      metadata: { name: 'a' },
      spec: { template: inner },
    });
    expect(code).toBe(201);
    expect(body.spec['template']).toMatchObject({
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: { name: 'x', labels: { a: 'b' } },
      spec: { a: 'b' },
    });
    expect(body.spec['template']).not.toHaveProperty('extra');
  });
});
