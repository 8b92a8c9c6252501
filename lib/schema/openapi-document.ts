import { isMap } from '../kube/json.ts';

/**
 * Reads an OpenAPI document of an API server, of either version, as a source of schemas by group/version/kind.
 * Pure: fetching and size limits are lib/kube's.
 */

/** A schema object as documents hold it; every member is checked before use, because documents come from strangers. */
export type OpenApiSchema = Readonly<Record<string, unknown>>;

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The schemas of one document, by the names that its `$ref`s use. */
export interface OpenApiDocument {
  /** Key of a `$ref` → schema. */
  readonly byRef: ReadonlyMap<string, OpenApiSchema>;
}

const SECTIONS = [
  {
    prefix: '#/components/schemas/',
    of: (root: OpenApiSchema) => (isMap(root['components']) ? root['components']['schemas'] : undefined),
  },
  { prefix: '#/definitions/', of: (root: OpenApiSchema) => root['definitions'] },
] as const;

/** Indexes a parsed document. Answers undefined for what is no OpenAPI document. */
export function readOpenApiDocument(root: unknown): OpenApiDocument | undefined {
  if (!isMap(root)) return undefined;
  const byRef = new Map<string, OpenApiSchema>();
  for (const { prefix, of } of SECTIONS) {
    const section = of(root);
    if (!isMap(section)) continue;
    for (const [name, schema] of Object.entries(section)) if (isMap(schema)) byRef.set(prefix + name, schema);
  }
  return byRef.size === 0 && !('paths' in root) ? undefined : { byRef };
}

const matches = (candidate: unknown, wanted: GroupVersionKind): boolean =>
  isMap(candidate) &&
  candidate['group'] === wanted.group &&
  candidate['version'] === wanted.version &&
  candidate['kind'] === wanted.kind;

/**
 * The schema that the document ties to a kind by `x-kubernetes-group-version-kind`: one that is of this kind alone, else the
 * first that is of this one among others.
 */
export function schemaOfKind(document: OpenApiDocument, wanted: GroupVersionKind): OpenApiSchema | undefined {
  let shared: OpenApiSchema | undefined;
  for (const schema of document.byRef.values()) {
    const kinds = schema['x-kubernetes-group-version-kind'];
    if (!Array.isArray(kinds) || !kinds.some((kind) => matches(kind, wanted))) continue;
    if (kinds.length === 1) return schema;
    shared ??= schema;
  }
  return shared;
}
