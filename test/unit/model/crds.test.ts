import { readFileSync } from 'node:fs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod/mini';
import { conditionReasons, type Condition } from '../../../lib/model/conditions.ts';
import {
  bindingSpecSchema,
  connectionSpecSchema,
  type BindingStatus,
  type BoundApi,
  type ConnectionStatus,
  type ExportedApi,
} from '../../../lib/model/kinds.ts';

/** The YAML under infra/crds/ and the vocabulary of lib/model must say the same. */

interface JsonSchema {
  readonly [keyword: string]: unknown;
}

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly plural: string; readonly kind: string; readonly categories: readonly string[] };
    readonly versions: readonly {
      readonly name: string;
      readonly subresources: unknown;
      readonly additionalPrinterColumns: readonly { readonly name: string; readonly priority?: number }[];
      readonly schema: { readonly openAPIV3Schema: { readonly properties: Readonly<Record<string, JsonSchema>> } };
    }[];
  };
}

const readCrd = (plural: string): Crd =>
  parse(readFileSync(new URL(`../../../infra/crds/core.kbind.io_${plural}.yaml`, import.meta.url), 'utf8')) as Crd;

const optionalText = z.optional(z.string());
const count = z.int();

const conditionSchema = z.object({
  type: z.string().check(z.minLength(1)),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().check(z.minLength(1)),
  message: z.string(),
  observedGeneration: z.optional(count),
  lastTransitionTime: z.string(),
});
const exportedApiSchema = z.object({
  name: z.string(),
  group: z.string(),
  resource: z.string(),
  scope: z.enum(['Namespaced', 'Cluster']),
  versions: z.array(z.string()),
});
const boundApiSchema = z.object({
  name: z.string(),
  crdHash: optionalText,
  conflictCount: count,
  instances: z.optional(count),
  synced: z.optional(count),
  pending: z.optional(count),
});
const connectionStatusSchema = z.object({
  remoteClusterUID: optionalText,
  localClusterUID: optionalText,
  activeSchemaSource: z.optional(z.enum(['CRD', 'OpenAPI'])),
  exportedAPIs: z.optional(z.array(exportedApiSchema)),
  exportsEmptySince: optionalText,
  secretVersion: optionalText,
  conditions: z.optional(z.array(conditionSchema)),
});
const bindingStatusSchema = z.object({
  boundAPIs: z.optional(z.array(boundApiSchema)),
  conditions: z.optional(z.array(conditionSchema)),
});

type Loose<T> = { -readonly [K in keyof T]-?: unknown };

/** What both dialects can say, in one form: no help, no CEL, no list types; `const` as an enum of one; defaults opened. */
function normal(schema: JsonSchema): JsonSchema {
  const { description: _d, format: _f, propertyNames: _n, $schema: _s, ...rest } = schema;
  const entries = Object.entries(rest)
    .filter(([keyword]) => !keyword.startsWith('x-kubernetes-') && keyword !== 'minimum' && keyword !== 'maximum')
    .filter(([keyword, value]) => !(keyword === 'additionalProperties' && value === false))
    .map(([keyword, value]): [string, unknown] => [keyword, normalKeyword(keyword, value)]);
  const result: Record<string, unknown> = Object.fromEntries(entries);
  if ('const' in result) {
    result['enum'] = [result['const']];
    delete result['const'];
  }
  // An empty list and an absent one are the same to every reader: the CRD does not store what nobody wrote.
  if (Array.isArray(result['default'])) delete result['default'];
  if (result['type'] === 'object' && result['default'] !== undefined) result['default'] = openDefault(result);
  return result;
}

function normalKeyword(keyword: string, value: unknown): unknown {
  if (keyword === 'properties') {
    const properties = Object.entries(value as Record<string, JsonSchema>);
    return Object.fromEntries(properties.map(([name, property]) => [name, normal(property)]));
  }
  if (keyword === 'items' || keyword === 'additionalProperties') return normal(value as JsonSchema);
  return keyword === 'required' ? [...(value as string[])].sort() : value;
}

/** The API server fills a defaulted object with its members' defaults. */
function openDefault({ default: given, properties = {} }: JsonSchema): unknown {
  const members = Object.entries(properties as Record<string, JsonSchema>).filter(
    ([, { default: d }]) => d !== undefined,
  );
  return { ...Object.fromEntries(members.map(([name, { default: d }]) => [name, d])), ...(given as object) };
}

const inZod = (schema: z.ZodMiniType): JsonSchema => normal(z.toJSONSchema(schema, { io: 'input' }));

const kinds = [
  {
    plural: 'connections',
    kind: 'Connection',
    scope: 'Cluster',
    columns: ['Ready', 'Secret', 'Age'],
    spec: connectionSpecSchema,
    status: connectionStatusSchema,
  },
  {
    plural: 'clusterbindings',
    kind: 'ClusterBinding',
    scope: 'Cluster',
    columns: ['Ready', 'Connection', 'Age'],
    spec: bindingSpecSchema,
    status: bindingStatusSchema,
  },
  {
    plural: 'bindings',
    kind: 'Binding',
    scope: 'Namespaced',
    columns: ['Ready', 'Connection', 'Age'],
    spec: bindingSpecSchema,
    status: bindingStatusSchema,
  },
] as const;

const isShortText = (text: unknown): boolean => typeof text === 'string' && text !== '' && text.length <= 120;

describe.each(kinds)('the CRD of $kind', ({ plural, kind, scope, columns, spec, status }) => {
  const crd = readCrd(plural);
  const [version] = crd.spec.versions;
  const properties = version?.schema.openAPIV3Schema.properties ?? {};

  it('names the kind, its scope, its category and its columns as spec §1 does', () => {
    expect(crd.metadata.name).toBe(`${plural}.core.kbind.io`);
    expect(crd.spec).toMatchObject({ group: 'core.kbind.io', scope, names: { plural, kind, categories: ['kbind'] } });
    expect(crd.spec.versions.map(({ name }) => name)).toEqual(['v1alpha1']);
    expect(version?.subresources).toEqual({ status: {} });
    const shown = version?.additionalPrinterColumns.filter(({ priority = 0 }) => priority === 0);
    expect(shown?.map(({ name }) => name)).toEqual(columns);
  });

  it('has the types, enums, required fields, limits and defaults of the spec that controllers parse', () => {
    expect(normal(properties['spec'] ?? {})).toEqual(inZod(spec));
  });

  it('has the types, enums and required fields of the status that controllers write', () => {
    expect(normal(properties['status'] ?? {})).toEqual(inZod(status));
  });

  it('explains every field in one short sentence', () => {
    const walk = (schema: JsonSchema, path: string): string[] => [
      // The API server forbids one on `metadata`.
      ...(path === `${kind}.metadata` || isShortText(schema['description']) ? [] : [path]),
      ...Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>).flatMap(([name, property]) =>
        walk(property, `${path}.${name}`),
      ),
      ...(schema['items'] === undefined ? [] : walk(schema['items'] as JsonSchema, `${path}[]`)),
    ];
    expect(walk({ ...version?.schema.openAPIV3Schema }, kind)).toEqual([]);
  });
});

describe('the status vocabulary', () => {
  it('is the one that the schemas of this test describe', () => {
    expectTypeOf<Loose<z.infer<typeof connectionStatusSchema>>>().toEqualTypeOf<Loose<ConnectionStatus>>();
    expectTypeOf<Loose<z.infer<typeof bindingStatusSchema>>>().toEqualTypeOf<Loose<BindingStatus>>();
    expectTypeOf<Loose<z.infer<typeof exportedApiSchema>>>().toEqualTypeOf<Loose<ExportedApi>>();
    expectTypeOf<Loose<z.infer<typeof boundApiSchema>>>().toEqualTypeOf<Loose<BoundApi>>();
    expectTypeOf<Loose<z.infer<typeof conditionSchema>>>().toEqualTypeOf<Loose<Condition>>();
    expect(conditionReasons).toContain('AsExpected');
  });
});
