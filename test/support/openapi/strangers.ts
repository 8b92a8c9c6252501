import fc from 'fast-check';
import type { DiscoveredApi } from '../../../lib/schema/from-openapi.ts';
import { readOpenApiDocument, type OpenApiDocument } from '../../../lib/schema/openapi-document.ts';

/** Documents that no friend has written. */

export const OPEN = 'x-kubernetes-preserve-unknown-fields';

/** An API `oddities.odd.example.org` of one version. */
export const oddities = (
  document: OpenApiDocument | undefined,
  change: Partial<DiscoveredApi> = {},
): DiscoveredApi => ({
  group: 'odd.example.org',
  resource: 'oddities',
  singular: 'oddity',
  kind: 'Oddity',
  shortNames: [],
  categories: [],
  namespaced: true,
  preferredVersion: 'v1',
  versions: [{ name: 'v1', status: true, document }],
  ...change,
});

export const GVK = 'x-kubernetes-group-version-kind';
export const oddity = [{ group: 'odd.example.org', version: 'v1', kind: 'Oddity' }];

/** A document whose Oddity has the spec, beside other schemas. */
export function documentOf(spec: unknown, others: Readonly<Record<string, unknown>> = {}): OpenApiDocument {
  const root = { type: 'object', [GVK]: oddity, properties: { metadata: { type: 'object' }, spec } };
  const document = readOpenApiDocument({ components: { schemas: { Oddity: root, ...others } } });
  if (document === undefined) throw new Error('no document');
  return document;
}

/** Schemas of strangers: known words in all the wrong places. */
const word = fc.constantFrom(
  'type',
  'properties',
  'items',
  'additionalProperties',
  'required',
  'enum',
  'default',
  'format',
  'pattern',
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'nullable',
  'minimum',
  'maxLength',
  'multipleOf',
  'description',
  OPEN,
  'x-kubernetes-int-or-string',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
  'metadata',
  'kind',
  'apiVersion',
  'a',
  '__proto__',
);
const leaf = fc.oneof(
  fc.constantFrom('object', 'array', 'string', 'integer', 'number', 'boolean', 'map', 'set', 'atomic', 'int-or-string'),
  fc.constantFrom('#/components/schemas/A', '#/components/schemas/B', '(', '^a', true, false, null, 0, 1, -1, 1.5),
);
export const junk = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    leaf,
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(word, tie('node'), { maxKeys: 6 }),
    fc.record({ type: leaf, properties: fc.dictionary(word, tie('node'), { maxKeys: 4 }) }, { requiredKeys: [] }),
    fc.record({ type: fc.constant('array'), items: tie('node'), 'x-kubernetes-list-type': leaf }),
  ),
})).node;
