import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson, printJson } from '../../../lib/kube/json.ts';
import { canBeDefined, schemaFromOpenApi, synthesizeCrd } from '../../../lib/schema/from-openapi.ts';
import { readOpenApiDocument, type OpenApiDocument, type OpenApiSchema } from '../../../lib/schema/openapi-document.ts';
import { toStructural } from '../../../lib/schema/structural.ts';
import { fidelityCrd } from '../../support/openapi/fidelity.ts';
import { documentOf, GVK, junk, oddities as api, oddity, OPEN } from '../../support/openapi/strangers.ts';
import { expectAccepted } from './structural-oracle.ts';

const folder = join(import.meta.dirname, '../../fixtures/openapi');
const read = (file: string): OpenApiDocument => {
  const document = readOpenApiDocument(parseJson(readFileSync(join(folder, file))));
  if (document === undefined) throw new Error(`${file} is no OpenAPI document`);
  return document;
};

const schemaOf = (crd: { readonly spec: OpenApiSchema }, version = 0): OpenApiSchema =>
  (crd.spec as unknown as { versions: { schema: { openAPIV3Schema: OpenApiSchema } }[] }).versions[version]?.schema
    .openAPIV3Schema ?? {};
const specOf = (spec: unknown, others?: Readonly<Record<string, unknown>>): unknown => {
  const crd = synthesizeCrd(api(documentOf(spec, others)));
  expectAccepted(crd.spec);
  return (schemaOf(crd)['properties'] as OpenApiSchema | undefined)?.['spec'];
};

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

describe('recorded documents of real API servers', () => {
  const kinds = (document: OpenApiDocument): { group: string; version: string; kind: string }[] =>
    [...document.byRef.values()].flatMap((schema) => (schema[GVK] as [] | undefined) ?? []);
  const cases = readdirSync(folder).flatMap((file) => kinds(read(file)).map((gvk) => ({ file, ...gvk })));
  const wanted = cases.filter(({ kind }) => ['Deployment', 'CustomResourceDefinition', 'Fidelity'].includes(kind));

  test.each(wanted)(
    '$file: $kind of $group/$version makes a CRD that is accepted',
    ({ file, group, version, kind }) => {
      const crd = synthesizeCrd(
        api(read(file), {
          group,
          kind,
          singular: kind.toLowerCase(),
          preferredVersion: version,
          versions: [{ name: version, status: true, document: read(file) }],
        }),
      );
      expect(crd.open).toEqual([]);
      expect(Object.keys(schemaOf(crd)['properties'] as object)).toEqual(expect.arrayContaining(['spec']));
      // Built-in groups have no dot, or need an approval: that is no question of the schema.
      expectAccepted({ ...crd.spec, group: 'odd.example.org' });
    },
  );

  test('a CRD comes back from version 3 as it was made, and its versions as one', () => {
    const versions = ['v1', 'v1beta1'].map((name) => ({
      name,
      status: true,
      document: read(`v1.37.2.odd.example.org.${name}.json`),
    }));
    const { resource, singular, kind } = { resource: 'fidelities', singular: 'fidelity', kind: 'Fidelity' };
    const crd = synthesizeCrd(
      api(undefined, { resource, singular, kind, versions, shortNames: ['fid'], categories: ['oddities'] }),
    );
    const { names, scope } = fidelityCrd.spec;
    expect(crd.spec).toMatchObject({ names, scope, conversion: { strategy: 'None' } });
    const stored = (crd.spec as { versions?: { name: string; storage: boolean }[] }).versions;
    expect(stored?.map(({ name, storage }) => [name, storage])).toEqual([
      ['v1', true],
      ['v1beta1', false],
    ]);
    const made = fidelityCrd.spec.versions[1]?.schema.openAPIV3Schema.properties;
    const got = schemaOf(crd)['properties'] as { spec: OpenApiSchema };
    // int-or-string says the same without its anyOf, and an untyped field may be anything.
    expect(printJson(got.spec['properties'])).toContain('"x-kubernetes-int-or-string":true');
    expect(Object.keys(got.spec['properties'] as object).sort()).toEqual(
      Object.keys(made?.spec.properties ?? {}).sort(),
    );
    expect(got.spec).toMatchObject({
      required: ['size'],
      properties: {
        size: { type: 'string', enum: ['small', 'large'] },
        replicas: { format: 'int32', minimum: 0, maximum: 1000, default: 1 },
        quota: { default: 9007199254740991 },
        matrix: { type: 'array', items: { type: 'array', items: { type: 'integer' } } },
        byName: { additionalProperties: { properties: { weight: { type: 'integer' } }, required: ['weight'] } },
        template: { 'x-kubernetes-embedded-resource': true, [OPEN]: true },
        source: { oneOf: [{ required: ['url'] }, { required: ['inline'] }] },
        ports: { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
      },
    });
    expect(got.spec['x-kubernetes-validations']).toHaveLength(1);
  });

  test('the same document gives the same hash', () => {
    const hash = () =>
      schemaFromOpenApi(api(documentOf({ type: 'object', properties: { a: { type: 'string' } } }))).hash;
    expect(hash()).toBe(hash());
    expect(hash()).toMatch(/^sha256:[0-9a-f]{16}$/);
  });
});

describe('documents that cannot be taken as they are', () => {
  test.each<[string, unknown, unknown, Record<string, unknown>?]>([
    ['a $ref to nowhere is open', ref('Nowhere'), { type: 'object', [OPEN]: true }],
    [
      'a cycle is cut where it closes',
      ref('Tree'),
      { type: 'object', properties: { child: { type: 'object', [OPEN]: true } } },
      { Tree: { type: 'object', properties: { child: ref('Tree') } } },
    ],
    ['a $ref to itself', ref('Self'), { type: 'object', [OPEN]: true }, { Self: ref('Self') }],
    ['no schema at all', 7, { [OPEN]: true }],
    ['an array without items', { type: 'array' }, { type: 'array', items: { [OPEN]: true } }],
    ['an array of tuples', { type: 'array', items: [{ type: 'string' }] }, { type: 'array', items: { [OPEN]: true } }],
    ['a bare object may hold anything', { type: 'object' }, { type: 'object', [OPEN]: true }],
    [
      'fields beside a map of values: others stay allowed',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'integer' } },
      { type: 'object', properties: { a: { type: 'string' } }, [OPEN]: true },
    ],
    [
      'required names that are no fields are dropped, also those that every object inherits',
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b', 'toString', 7, 'a'] },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    ],
    ['a default of another type', { type: 'string', default: 7 }, { type: 'string' }],
    [
      'a default that is not among the values',
      { type: 'string', enum: ['a'], default: '' },
      { type: 'string', enum: ['a'] },
    ],
    ['a default out of range', { type: 'integer', minimum: 1, default: 0 }, { type: 'integer', minimum: 1 }],
    [
      'a default under alternatives, patterns, formats and rules stays where it holds',
      {
        type: 'string',
        default: 'Legacy',
        format: 'hostname',
        pattern: '^[A-Z]',
        oneOf: [{ enum: ['Legacy'] }, { enum: ['New'] }],
        'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
      },
      {
        type: 'string',
        default: 'Legacy',
        format: 'hostname',
        pattern: '^[A-Z]',
        oneOf: [{ enum: ['Legacy'] }, { enum: ['New'] }],
        'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
      },
    ],
    [
      'a default that an alternative rules out goes',
      { type: 'string', default: 'b', not: { enum: ['b'] } },
      { type: 'string', not: { enum: ['b'] } },
    ],
    [
      'a default that its pattern does not match goes',
      { type: 'string', default: 'b', pattern: '^a' },
      { type: 'string', pattern: '^a' },
    ],
    [
      'a default with unknown fields',
      { type: 'object', properties: { a: { type: 'string' } }, default: { b: 1 } },
      { type: 'object', properties: { a: { type: 'string' } } },
    ],
    [
      'a default beside a reference',
      { allOf: [ref('Name')], default: {}, description: 'said' },
      { type: 'object', properties: { a: { type: 'string' } }, description: 'said' },
      { Name: { type: 'object', properties: { a: { type: 'string' } } } },
    ],
    ['an enum of objects', { type: 'object', enum: [{ a: 1 }] }, { type: 'object', [OPEN]: true, enum: [{ a: 1 }] }],
    ['an enum that is none', { type: 'string', enum: [] }, { type: 'string' }],
    [
      'members of wrong types',
      { type: 'string', description: {}, maxLength: '7', minLength: -1, nullable: 'yes', format: 3, pattern: ['a'] },
      { type: 'string' },
    ],
    ['a pattern that RE2 refuses', { type: 'string', pattern: '^(?!a)' }, { type: 'string' }],
    ['a pattern that does not compile', { type: 'string', pattern: '(' }, { type: 'string' }],
    ['a type of version 3.1', { type: ['string', 'null'] }, { type: 'string', nullable: true }],
    [
      'int-or-string by its format',
      { type: 'string', format: 'int-or-string' },
      { 'x-kubernetes-int-or-string': true },
    ],
    [
      'int-or-string by its alternatives',
      { anyOf: [{ type: 'string' }, { type: 'integer' }], default: '5%' },
      { 'x-kubernetes-int-or-string': true, default: '5%' },
    ],
    [
      'an embedded resource that says something of its metadata',
      {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        properties: { metadata: { type: 'object' }, kind: { type: 'integer' } },
      },
      { type: 'object', [OPEN]: true, 'x-kubernetes-embedded-resource': true },
    ],
    [
      'a list by keys that are not required',
      {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
        items: { type: 'object', properties: { a: { type: 'string' } } },
      },
      { type: 'array', items: { type: 'object', properties: { a: { type: 'string' } } } },
    ],
    [
      'alternatives about fields that there are not',
      { type: 'object', properties: { a: { type: 'string' } }, anyOf: [{ properties: { b: { minLength: 1 } } }] },
      { type: 'object', properties: { a: { type: 'string' } } },
    ],
    [
      'alternatives that say a type',
      { type: 'object', properties: { a: { type: 'string' } }, oneOf: [{ type: 'object' }] },
      { type: 'object', properties: { a: { type: 'string' } } },
    ],
    [
      'rules over what was opened up go',
      { type: 'object', properties: { a: ref('Nowhere') }, 'x-kubernetes-validations': [{ rule: 'self.a.b' }] },
      { type: 'object', properties: { a: { type: 'object', [OPEN]: true } } },
    ],
  ])('%s', (_name, spec, want, others) => {
    expect(specOf(spec, others)).toEqual(want);
  });

  test('a pattern of Go is kept: JavaScript, and the embedded server with it, has no flags in it', () => {
    const { schema } = toStructural({ type: 'string', pattern: '(?i)^a' }, documentOf({}));
    expect(schema).toEqual({ type: 'string', pattern: '(?i)^a' });
  });

  test('a field called __proto__ is a field like others', () => {
    const spec = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"a":{"type":"string"}}}',
    ) as unknown;
    expect(JSON.stringify(specOf(spec))).toContain('"__proto__":{"type":"string"}');
    expect(({} as { type?: string }).type).toBeUndefined();
  });

  test('deep nesting is cut, in schemas, alternatives and values', () => {
    const nested = (wrap: (inner: unknown) => unknown, levels: number): unknown =>
      Array.from({ length: levels }).reduce<unknown>((inner) => wrap(inner), { type: 'string' });
    const text = JSON.stringify(specOf(nested((a) => ({ type: 'object', properties: { a } }), 2_000)));
    expect(text.split('properties').length).toBeLessThan(70);
    expect(specOf({ type: 'string', not: nested((not) => ({ not }), 5_000) })).toEqual({ type: 'string' });
    expect(specOf({ type: 'string', enum: [nested((a) => [a], 5_000)] })).toEqual({ type: 'string' });
  });

  test('a few references that stand for billions of schemas come to an end', () => {
    const others = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [
        `N${index}`,
        { type: 'object', properties: { a: ref(`N${index + 1}`), b: ref(`N${index + 1}`) } },
      ]),
    );
    const { spec } = schemaFromOpenApi(api(documentOf(ref('N0'), others)));
    expect(JSON.stringify(spec).length).toBeLessThan(1_100_000);
  });

  test('what would be too large goes without descriptions, and if need be without a schema', () => {
    const field = { type: 'string', description: 'x'.repeat(200_000) };
    const described = {
      type: 'object',
      properties: Object.fromEntries('abcdefgh'.split('').map((name) => [name, field])),
    };
    expect(specOf(described)).toEqual({
      type: 'object',
      properties: Object.fromEntries('abcdefgh'.split('').map((name) => [name, { type: 'string' }])),
    });
    const large = { type: 'string', enum: Array.from({ length: 200_000 }, (_, index) => `value-${index}`) };
    const crd = synthesizeCrd(api(documentOf(large)));
    expect(crd.open).toEqual(['v1']);
    expect(schemaOf(crd)).toEqual({ type: 'object', [OPEN]: true });
  });

  test.each([
    ['no document', undefined],
    ['a document that does not know the kind', readOpenApiDocument({ definitions: { A: { type: 'object' } } })],
  ])('%s: the version is open, and that is told', (_name, document) => {
    const crd = synthesizeCrd(api(document));
    expect(crd.open).toEqual(['v1']);
    expectAccepted(crd.spec);
  });

  test.each([[undefined], [7], ['x'], [[]], [{}]])('%j is no document', (root) => {
    expect(readOpenApiDocument(root)).toBeUndefined();
  });

  test('nothing of metadata, nor rules about it, at the root', () => {
    const root = {
      type: 'object',
      [GVK]: oddity,
      nullable: true,
      required: ['metadata', 'spec'],
      properties: { apiVersion: { type: 'string' }, metadata: { type: 'object' }, spec: { type: 'string' } },
      anyOf: [{ properties: { metadata: { minProperties: 1 } } }],
      default: {},
    };
    const document = readOpenApiDocument({ components: { schemas: { A: root } } });
    const crd = synthesizeCrd(api(document));
    expectAccepted(crd.spec);
    expect(schemaOf(crd)).toEqual({ type: 'object', required: ['spec'], properties: { spec: { type: 'string' } } });
  });
});

describe('names', () => {
  const names = { group: 'a.io', version: 'v1', resource: 'things', kind: 'Thing' };
  test.each([
    [{}, true],
    [{ resource: 'Things' }, false],
    [{ resource: '__proto__' }, false],
    [{ resource: 'a'.repeat(64) }, false],
    [{ group: 'a' }, false],
    [{ group: 'a..io' }, false],
    [{ version: '1' }, false],
    [{ kind: 'My_Kind' }, false],
    [{ group: `${'a'.repeat(250)}.io` }, false],
  ])('%j → %s', (change, want) => {
    expect(canBeDefined({ ...names, ...change })).toBe(want);
  });

  test('short names and categories that no CRD may have are left out, an unusable singular is made', () => {
    const crd = synthesizeCrd(api(undefined, { shortNames: ['ok', 'No'], categories: ['a b'], singular: '' }));
    expect(crd.spec['names']).toEqual({
      plural: 'oddities',
      singular: 'oddity',
      kind: 'Oddity',
      listKind: 'OddityList',
      shortNames: ['ok'],
    });
  });
});

test('whatever a document says, the CRD is one that an API server accepts, and a second pass changes nothing', () => {
  fc.assert(
    fc.property(junk, junk, junk, (spec, a, b) => {
      const document = documentOf(spec, { A: a, B: b });
      const crd = synthesizeCrd(api(document));
      expectAccepted(crd.spec);
      const once = toStructural(spec, document).schema;
      const twice = toStructural(once, document).schema;
      expectAccepted(synthesizeCrd(api(documentOf(twice))).spec);
    }),
    { numRuns: 1_000 },
  );
});
