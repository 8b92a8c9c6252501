import { beforeAll, expect, it } from 'vitest';
import { installCrd, newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';
import type { Body, Reply } from '../../support/apiserver/api.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const configMaps = pathOf('', 'v1', 'configmaps');

function withoutSelf(fields: unknown): unknown {
  if (typeof fields !== 'object' || fields === null) return fields;
  const below = Object.entries(fields).filter(([element]) => element !== '.');
  return Object.fromEntries(below.map(([element, value]) => [element, withoutSelf(value)]));
}

onEveryServer('server-side apply', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    await installCrd(server(), widgetCrd());
    ns = await newNamespace(server());
  });

  const apply = (
    name: string,
    spec: object,
    manager = 'me',
    ...[query = {}, metadata = {}]: [Record<string, string>?, object?]
  ): Promise<Reply> => server().api.apply(widgetPath(ns, name), widget(name, spec, metadata), manager, query);
  const FORCE = { force: 'true' };
  // 1.20 says of more maps and lists that they are owned themselves, which means nothing for what is merged.
  const owned = (object: Body, manager: string, operation = 'Apply'): unknown =>
    withoutSelf(
      object.metadata.managedFields?.find((entry) => entry.manager === manager && entry.operation === operation)
        ?.fieldsV1,
    );

  it('creates what is not there, with 201', async () => {
    const { code, body } = await apply('created', { size: 'small' });
    expect(code).toBe(201);
    expect(body.spec).toEqual({ size: 'small', color: 'blue' });
    expect(body.metadata.managedFields).toMatchObject([
      {
        manager: 'me',
        operation: 'Apply',
        apiVersion: 'example.org/v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:spec': { 'f:size': {} } },
      },
    ]);
    expect(body.metadata.managedFields).toHaveLength(1);
  });

  it.skipIf(kind.minor < 22)(
    'claims labels, annotations and finalizers one by one (1.20 merges custom resources as if they had no schema)',
    async () => {
      const metadata = { labels: { a: '1' }, annotations: { 'x.y/z': '2' }, finalizers: ['example.org/a'] };
      const { body } = await apply('claims', {}, 'me', {}, metadata);
      expect(owned(body, 'me')).toEqual({
        'f:metadata': {
          'f:annotations': { 'f:x.y/z': {} },
          'f:finalizers': { 'v:"example.org/a"': {} },
          'f:labels': { 'f:a': {} },
        },
        'f:spec': {},
      });
    },
  );

  it('changes what it owns and counts the generation', async () => {
    await apply('changed', { size: 'small' });
    const { code, body } = await apply('changed', { size: 'large' });
    expect([code, body.spec['size'], body.metadata.generation]).toEqual([200, 'large', 2]);
  });

  it('leaves the resourceVersion alone when nothing changes', async () => {
    const first = await apply('noop', {
      size: 'small',
      granular: { a: '1' },
      tags: ['x'],
      ports: [{ name: 'http', port: 80 }],
    });
    const second = await apply('noop', {
      size: 'small',
      granular: { a: '1' },
      tags: ['x'],
      ports: [{ name: 'http', port: 80 }],
    });
    expect(second.body).toEqual(first.body);
  });

  it('leaves the resourceVersion alone after others wrote elsewhere', async () => {
    await apply('noop2', { size: 'small' });
    const patched = await server().api.patch(
      widgetPath(ns, 'noop2'),
      'merge',
      { metadata: { labels: { by: 'other' } } },
      { query: { fieldManager: 'other' } },
    );
    const again = await apply('noop2', { size: 'small' });
    expect(again.body).toEqual(patched.body);
  });

  it('removes fields that are no longer applied', async () => {
    await apply('shrinks', { size: 'small', replicas: 2, granular: { a: '1', b: '2' } });
    const { body } = await apply('shrinks', { size: 'small', granular: { a: '1' } });
    expect(body.spec).toEqual({ size: 'small', color: 'blue', granular: { a: '1' } });
    expect(owned(body, 'me')).toEqual({ 'f:spec': { 'f:granular': { 'f:a': {} }, 'f:size': {} } });
  });

  it('brings a default back when an applied field is removed', async () => {
    await apply('default', { color: 'red' });
    expect((await apply('default', { size: 'small' })).body.spec).toEqual({ size: 'small', color: 'blue' });
  });

  it('keeps a field that somebody else applied, too', async () => {
    await apply('shared', { size: 'small', replicas: 1 }, 'one');
    await apply('shared', { replicas: 1 }, 'two');
    const { body } = await apply('shared', { size: 'small' }, 'one');
    expect(body.spec['replicas']).toBe(1);
    expect(owned(body, 'two')).toEqual({ 'f:spec': { 'f:replicas': {} } });
  });

  it('refuses to change what another applier owns, with 409 and a cause each', async () => {
    await apply('contested', { size: 'small', replicas: 1 }, 'one');
    const { code, body } = await apply('contested', { size: 'large', replicas: 2 }, 'two');
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toBe('Apply failed with 2 conflicts: conflicts with "one":\n- .spec.replicas\n- .spec.size');
    expect(body.details?.causes).toEqual([
      { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.replicas' },
      { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.size' },
    ]);
  });

  it('names an updater with version and says one conflict in one line', async () => {
    const name = unique('w');
    await server().api.post(widgetPath(ns), widget(name, { size: 'small' }), { query: { fieldManager: 'maker' } });
    const { code, body } = await apply(name, { size: 'large' });
    expect(code).toBe(409);
    // 1.20 does not say how the other one wrote.
    const message = body.message?.replace(/ at \S+Z(?=:)/, '');
    expect(message).toBe('Apply failed with 1 conflict: conflict with "maker" using example.org/v1: .spec.size');
  });

  it('takes fields over when forced', async () => {
    await apply('forced', { size: 'small', replicas: 1 }, 'one');
    const { code, body } = await apply('forced', { size: 'large' }, 'two', FORCE);
    expect([code, body.spec['size']]).toEqual([200, 'large']);
    expect(owned(body, 'one')).toEqual({ 'f:spec': { 'f:replicas': {} } });
    expect(owned(body, 'two')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('shares a field that is applied with the same value', async () => {
    await apply('agreed', { size: 'small' }, 'one');
    const { code, body } = await apply('agreed', { size: 'small' }, 'two');
    expect(code).toBe(200);
    expect(owned(body, 'one')).toEqual({ 'f:spec': { 'f:size': {} } });
    expect(owned(body, 'two')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('takes ownership away from who is overwritten by an update', async () => {
    await apply('overwritten', { size: 'small', replicas: 1 }, 'one');
    const { body } = await server().api.patch(
      widgetPath(ns, 'overwritten'),
      'merge',
      { spec: { size: 'large' } },
      { query: { fieldManager: 'editor' } },
    );
    expect(owned(body, 'one')).toEqual({ 'f:spec': { 'f:replicas': {} } });
    expect(owned(body, 'editor', 'Update')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it.skipIf(kind.minor < 22)(
    'merges a set list by value (1.20 merges custom resources as if they had no schema)',
    async () => {
      await apply('set', { tags: ['a', 'b'] }, 'one');
      const both = await apply('set', { tags: ['c', 'b'] }, 'two');
      expect([...(both.body.spec['tags'] as string[])].sort()).toEqual(['a', 'b', 'c']);
      const less = await apply('set', { tags: ['a'] }, 'one');
      expect([...(less.body.spec['tags'] as string[])].sort()).toEqual(['a', 'b', 'c']);
      const least = await apply('set', { tags: ['c'] }, 'two');
      expect([...(least.body.spec['tags'] as string[])].sort()).toEqual(['a', 'c']);
    },
  );

  it.skipIf(kind.minor < 22)(
    'merges a map list by its keys (1.20 merges custom resources as if they had no schema)',
    async () => {
      await apply('map', { ports: [{ name: 'http', port: 80 }] }, 'one');
      const both = await apply('map', { ports: [{ name: 'https', port: 443 }] }, 'two');
      expect(both.body.spec['ports']).toEqual([
        { name: 'http', port: 80, protocol: 'TCP' },
        { name: 'https', port: 443, protocol: 'TCP' },
      ]);
      expect(owned(both.body, 'two')).toEqual({
        'f:spec': { 'f:ports': { 'k:{"name":"https"}': { 'f:name': {}, 'f:port': {} } } },
      });
      const conflict = await apply('map', { ports: [{ name: 'http', port: 81 }] }, 'two');
      expect(conflict.body.details?.causes?.[0]?.field).toBe('.spec.ports[name="http"].port');
      const left = await apply('map', {}, 'one');
      expect(left.body.spec['ports']).toEqual([{ name: 'https', port: 443, protocol: 'TCP' }]);
    },
  );

  it('owns an atomic list whole', async () => {
    await apply('atomic-list', { steps: ['a'] }, 'one');
    expect((await apply('atomic-list', { steps: ['b'] }, 'two')).code).toBe(409);
    const { body } = await apply('atomic-list', { steps: ['b'] }, 'two', FORCE);
    expect(body.spec['steps']).toEqual(['b']);
    expect(owned(body, 'two')).toEqual({ 'f:spec': { 'f:steps': {} } });
  });

  it.skipIf(kind.minor < 22)(
    'owns an atomic map whole (1.20 merges custom resources as if they had no schema)',
    async () => {
      await apply('atomic-map', { atomic: { a: '1' } }, 'one');
      const { body } = await apply('atomic-map', { atomic: { b: '2' } }, 'two', FORCE);
      expect(body.spec['atomic']).toEqual({ b: '2' });
      expect(owned(body, 'one')).toBeUndefined();
    },
  );

  it('merges what no schema describes: maps by key, lists whole', async () => {
    await apply('free', { free: { a: { x: 1, y: [1, 2] } } }, 'one');
    const { body } = await apply('free', { free: { a: { z: 3 }, b: 'text' } }, 'two');
    expect(body.spec['free']).toEqual({ a: { x: 1, y: [1, 2], z: 3 }, b: 'text' });
    expect(owned(body, 'two')).toEqual({
      'f:spec': { 'f:free': { 'f:a': { 'f:z': {} }, 'f:b': {} } },
    });
    const left = await apply('free', { free: { b: 'text' } }, 'two');
    expect(left.body.spec['free']).toEqual({ a: { x: 1, y: [1, 2] }, b: 'text' });
  });

  it('keeps every digit', async () => {
    const body = `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"digits"},"spec":{"big":9007199254740993,"free":{"n":-9223372036854775808}}}`;
    const reply = await server().api.apply(widgetPath(ns, 'digits'), body, 'me');
    expect(reply.code).toBe(201);
    expect(reply.text).toContain('9007199254740993');
    expect(reply.text).toContain('-9223372036854775808');
    const again = await server().api.apply(widgetPath(ns, 'digits'), body, 'me');
    expect(again.body.metadata.resourceVersion).toBe(reply.body.metadata.resourceVersion);
  });

  it('reads YAML', async () => {
    const yaml =
      'apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: yaml\nspec:\n  size: large\n  # a comment\n  steps: [a, "b"]\n';
    const { code, body } = await server().api.apply(widgetPath(ns, 'yaml'), yaml, 'me');
    expect([code, body.spec['steps']]).toEqual([201, ['a', 'b']]);
  });

  it('needs a field manager', async () => {
    const { code, body } = await server().api.patch(widgetPath(ns, 'nobody'), 'apply', widget('nobody'));
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('fieldManager: Required value: is required for apply patch');
  });

  it('refuses managedFields', async () => {
    const { code, body } = await apply('managed', {}, 'me', {}, { managedFields: [{ manager: 'x' }] });
    expect([code, body.reason, body.message]).toEqual([400, 'BadRequest', 'metadata.managedFields must be nil']);
  });

  it('refuses another version than that of the URL', async () => {
    const { code, body } = await server().api.apply(
      widgetPath(ns, 'v'),
      { ...widget('v'), apiVersion: 'example.org/v2' },
      'me',
    );
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain(
      kind.minor < 22
        ? 'Incorrect version specified in apply patch'
        : 'invalid object type: example.org/v2, Kind=Widget',
    );
  });

  it('refuses a name that differs from the URL', async () => {
    const { code, body } = await server().api.apply(widgetPath(ns, 'one-name'), widget('other-name'), 'me');
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
  });

  it('needs a name in the body', async () => {
    const body = { apiVersion: 'example.org/v1', kind: 'Widget', spec: {} };
    const reply = await server().api.apply(widgetPath(ns, 'from-url'), body, 'me');
    expect([reply.code, reply.body.reason]).toEqual([400, 'BadRequest']);
    expect(reply.body.message).toContain('name must be provided');
  });

  it('does not create under a uid', async () => {
    const { code, body } = await apply('uid-new', {}, 'me', FORCE, { uid: 'some-uid' });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toContain(
      'uid mismatch: the provided object specified uid some-uid, and no existing object was found',
    );
    expect((await server().api.get(widgetPath(ns, 'uid-new'))).code).toBe(404);
  });

  it('creates under a resourceVersion: that alone guards nothing', async () => {
    const { code } = await apply('rv-new', {}, 'me', FORCE, { resourceVersion: '5' });
    expect(code).toBe(201);
  });

  it('refuses another uid, forced or not, as a change of an immutable field', async () => {
    await apply('uid', { size: 'small' });
    const { code, body } = await apply('uid', { size: 'large' }, 'me', FORCE, { uid: 'other' });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('metadata.uid: Invalid value: "other": field is immutable');
    expect((await server().api.get(widgetPath(ns, 'uid'))).body.spec['size']).toBe('small');
  });

  it('refuses uid and resourceVersion of an object that was replaced as a conflict', async () => {
    const { body: before } = await apply('replaced', { size: 'small' });
    await server().api.delete(widgetPath(ns, 'replaced'));
    await apply('replaced', { size: 'small' });
    const { uid, resourceVersion } = before.metadata;
    const { code, body } = await apply('replaced', { size: 'large' }, 'me', FORCE, { uid, resourceVersion });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
  });

  it('refuses an old resourceVersion, forced or not', async () => {
    const first = await apply('rv', { size: 'small' });
    await apply('rv', { size: 'large' });
    const { code, body } = await apply('rv', { size: 'xlarge' }, 'me', FORCE, {
      resourceVersion: first.body.metadata.resourceVersion,
    });
    expect([code, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toContain(
      'the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  it('applies under the right uid and resourceVersion, and owns neither', async () => {
    const { body: before } = await apply('right', { size: 'small' });
    const { uid, resourceVersion } = before.metadata;
    const { code, body } = await apply('right', { size: 'large' }, 'me', FORCE, { uid, resourceVersion });
    expect([code, body.spec['size']]).toEqual([200, 'large']);
    expect(owned(body, 'me')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('stores nothing in a dry run', async () => {
    const { body: before } = await apply('dry', { size: 'small' });
    const { body } = await apply('dry', { size: 'large' }, 'me', { dryRun: 'All' });
    expect(body.spec['size']).toBe('large');
    expect((await server().api.get(widgetPath(ns, 'dry'))).body).toEqual(before);
    expect((await apply('dry-new', {}, 'me', { dryRun: 'All' })).code).toBe(201);
    expect((await server().api.get(widgetPath(ns, 'dry-new'))).code).toBe(404);
  });

  it.skipIf(kind.minor < 22)(
    'ignores the status of the main resource where that is a subresource (1.20 lets it be owned)',
    async () => {
      const { body } = await server().api.apply(
        widgetPath(ns, 'statusless'),
        { ...widget('statusless'), status: { a: 1 } },
        'me',
      );
      expect(body['status']).toBeUndefined();
      expect(owned(body, 'me')).toEqual({ 'f:spec': { 'f:size': {} } });
    },
  );

  it('applies a status through its subresource', async () => {
    await apply('status', { size: 'small' });
    const status = {
      apiVersion: 'example.org/v1',
      kind: 'Widget',
      metadata: { name: 'status' },
      status: { phase: 'A' },
    };
    const { code, body } = await server().api.apply(`${widgetPath(ns, 'status')}/status`, status, 'operator');
    expect([code, body['status']]).toEqual([200, { phase: 'A' }]);
    expect(body.metadata.managedFields?.find(({ manager }) => manager === 'operator')).toMatchObject({
      operation: 'Apply',
      // 1.20 does not tell subresources apart.
      ...(kind.minor >= 22 && { subresource: 'status' }),
      fieldsV1: { 'f:status': { 'f:phase': {} } },
    });
  });

  it('does not create through the status subresource', async () => {
    const { code } = await server().api.apply(`${widgetPath(ns, 'no-status')}/status`, widget('no-status'), 'operator');
    expect(code).toBe(404);
  });

  it('leaves what an update made before the first apply to its maker', async () => {
    const name = unique('w');
    await server().api.post(widgetPath(ns), widget(name, { size: 'small', replicas: 1 }), {
      query: { fieldManager: 'maker' },
    });
    const { body } = await apply(name, { size: 'small' });
    expect(owned(body, 'maker', 'Update')).toEqual({
      'f:spec': { 'f:color': {}, 'f:replicas': {}, 'f:size': {} },
    });
    expect((await apply(name, {})).body.spec['size']).toBe('small');
  });

  it('gives what nobody tracked to before-first-apply', async () => {
    const name = unique('w');
    const made = (await server().api.post(widgetPath(ns), widget(name, { size: 'small' }))).body;
    await server().api.put(widgetPath(ns, name), { ...made, metadata: { ...made.metadata, managedFields: [{}] } });
    const { body } = await apply(name, { replicas: 1 });
    expect(owned(body, 'before-first-apply', 'Update')).toEqual({ 'f:spec': { 'f:color': {}, 'f:size': {} } });
  });

  it('joins the first apply after a POST to the POST, when its entry is turned into Apply first', async () => {
    const name = unique('w');
    const made = (
      await server().api.post(widgetPath(ns), widget(name, { size: 'small', replicas: 1 }), {
        query: { fieldManager: 'me' },
      })
    ).body;
    const managedFields = (made.metadata.managedFields ?? []).map((entry) => ({ ...entry, operation: 'Apply' }));
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: made.metadata.resourceVersion },
      { op: 'replace', path: '/metadata/managedFields', value: managedFields },
    ];
    expect(
      (await server().api.patch(widgetPath(ns, name), 'json', steps, { query: { fieldManager: 'me' } })).code,
    ).toBe(200);
    const { body } = await apply(name, { size: 'small' });
    expect(body.spec['replicas']).toBeUndefined();
    expect(body.metadata.managedFields).toHaveLength(1);
  });

  it.skipIf(kind.minor < 22)(
    'refuses duplicate items of a map list (1.20 merges custom resources as if they had no schema)',
    async () => {
      const { code, body } = await apply('dup', {
        ports: [
          { name: 'a', port: 1 },
          { name: 'a', port: 2 },
        ],
      });
      expect(code).toBe(500);
      expect(body.message).toContain('duplicate entries for key [name="a"]');
    },
  );

  it.skipIf(kind.minor < 22)(
    'refuses a field that the schema does not declare with 500 (1.20 merges custom resources as if they had no schema)',
    async () => {
      const { code, body } = await apply('undeclared', { unknown: 1 });
      expect(code).toBe(500);
      expect(body.message).toContain('.spec.unknown: field not declared in schema');
    },
  );

  it('validates what it makes', async () => {
    const { code, body } = await apply('invalid', { size: 'huge' });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
  });

  it('folds the oldest of many updaters into ancient-changes', async () => {
    const name = unique('w');
    await server().api.post(widgetPath(ns), widget(name, {}), { query: { fieldManager: 'm0' } });
    for (let i = 1; i <= 12; i += 1) {
      await server().api.patch(
        widgetPath(ns, name),
        'merge',
        { metadata: { labels: { [`l${i}`]: 'x' } } },
        { query: { fieldManager: `m${i}` } },
      );
    }
    const { body } = await server().api.get(widgetPath(ns, name));
    expect(body.metadata.managedFields).toHaveLength(10);
    expect(body.metadata.managedFields?.map(({ manager }) => manager)).toContain('ancient-changes');
  });

  it('applies a built-in kind', async () => {
    const name = unique('cm');
    const map = (data: object): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
    expect((await server().api.apply(configMaps(ns, name), map({ a: '1', b: '2' }), 'one')).code).toBe(201);
    await server().api.apply(configMaps(ns, name), map({ c: '3' }), 'two');
    const { body } = await server().api.apply(configMaps(ns, name), map({ a: '1' }), 'one');
    expect(body['data']).toEqual({ a: '1', c: '3' });
    expect(owned(body, 'two')).toEqual({ 'f:data': { 'f:c': {} } });
  });

  it('escapes what YAML readers stumble over', async () => {
    const text = JSON.stringify(widget('escapes', { free: { text: 'a\u0085b\u2028c' } }))
      .replaceAll('\u0085', '\\u0085')
      .replaceAll('\u2028', '\\u2028');
    const { code, body } = await server().api.apply(widgetPath(ns, 'escapes'), text, 'me');
    expect([code, body.spec['free']]).toEqual([201, { text: 'a\u0085b\u2028c' }]);
  });

  it.skipIf(kind.minor < 27)('refuses a malformed body', async () => {
    const { code, body } = await server().api.apply(widgetPath(ns, 'malformed'), '{"apiVersion": [', 'me');
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
  });
});
