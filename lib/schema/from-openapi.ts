import { schemaOfKind, isRecord, type OpenApiDocument, type OpenApiSchema } from './openapi-document.ts';
import { toStructural } from './structural.ts';

/** What discovery tells of one API, with the documents of its versions. */
export interface DiscoveredApi {
  readonly group: string;
  /** Plural. */
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly versions: readonly DiscoveredVersion[];
  /** Name of the version that discovery prefers: it becomes the stored one. */
  readonly preferredVersion: string;
}

export interface DiscoveredVersion {
  readonly name: string;
  /** Whether discovery lists `<resource>/status`. */
  readonly status: boolean;
  /** Undefined where the server gives none: the version is then open. */
  readonly document: OpenApiDocument | undefined;
}

export interface SynthesizedCrd {
  /** `spec` of a CustomResourceDefinition. */
  readonly spec: OpenApiSchema;
  /** Versions whose schema could not be told and is left open. */
  readonly open: readonly string[];
}

const OPEN_ROOT: OpenApiSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/**
 * A CustomResourceDefinition for an API that is known by discovery and OpenAPI only (spec §3): all versions served, the
 * preferred one stored, schemas structural, apiVersion, kind and metadata left to the API server.
 */
export function synthesizeCrd(api: DiscoveredApi): SynthesizedCrd {
  const open: string[] = [];
  const versions = api.versions.map((version) => {
    const schema = rootSchema(api, version);
    if (schema === undefined) open.push(version.name);
    return {
      name: version.name,
      served: true,
      storage: version.name === api.preferredVersion,
      schema: { openAPIV3Schema: schema ?? OPEN_ROOT },
      ...(version.status ? { subresources: { status: {} } } : {}),
    };
  });
  return {
    spec: {
      group: api.group,
      scope: api.namespaced ? 'Namespaced' : 'Cluster',
      names: namesOf(api),
      versions,
      conversion: { strategy: 'None' },
    },
    open,
  };
}

function namesOf(api: DiscoveredApi): OpenApiSchema {
  return {
    plural: api.resource,
    singular: api.singular === '' ? api.kind.toLowerCase() : api.singular,
    kind: api.kind,
    listKind: `${api.kind}List`,
    ...(api.shortNames.length === 0 ? {} : { shortNames: api.shortNames }),
    ...(api.categories.length === 0 ? {} : { categories: api.categories }),
  };
}

function rootSchema(api: DiscoveredApi, version: DiscoveredVersion): OpenApiSchema | undefined {
  if (version.document === undefined) return undefined;
  const found = schemaOfKind(version.document, { group: api.group, version: version.name, kind: api.kind });
  if (found === undefined) return undefined;
  const { schema } = toStructural({ ...found, type: 'object' }, version.document);
  return { ...schema, ...withoutTypeMeta(schema) };
}

/** Drops what every object has: the API server refuses rules about it at the root. */
function withoutTypeMeta(schema: OpenApiSchema): OpenApiSchema {
  const fields = isRecord(schema['properties']) ? schema['properties'] : {};
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...properties } = fields;
  const required = Array.isArray(schema['required'])
    ? schema['required'].filter((name) => String(name) in properties)
    : [];
  if (Object.keys(properties).length === 0) return { ...OPEN_ROOT, properties: undefined, required: undefined };
  return { properties, required: required.length === 0 ? undefined : required };
}
