import { isMap, hashJson } from '../kube/json.ts';
import type { Json } from '../model/api.ts';
import type { ConsumerSchema } from './from-crd.ts';
import { schemaOfKind, type OpenApiDocument, type OpenApiSchema } from './openapi-document.ts';
import { PRESERVE } from './structural-members.ts';
import { MAX_SCHEMAS, toStructural, withoutTypeMeta, type StructuralOptions } from './structural.ts';

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

/** An API server stores objects of up to about 1.5 MiB; a CRD is stored beside its status and managedFields. */
const MAX_SPEC_CHARACTERS = 1_000_000;
const OPEN_ROOT: OpenApiSchema = { type: 'object', [PRESERVE]: true };

const LABEL = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+$/;
const MAX_NAME = 253;

/** Whether a CustomResourceDefinition may bear these names at all: an aggregated API is free to use others. */
export const canBeDefined = (api: {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
}): boolean =>
  [api.version, api.resource, api.kind.toLowerCase()].every((name) => LABEL.test(name)) &&
  SUBDOMAIN.test(api.group) &&
  api.resource.length + 1 + api.group.length <= MAX_NAME;

/** The consumer form of an API of the OpenAPI source, with the hash of what is sent. */
export function schemaFromOpenApi(api: DiscoveredApi): ConsumerSchema & Pick<SynthesizedCrd, 'open'> {
  const { spec, open } = synthesizeCrd(api);
  return {
    name: `${api.resource}.${api.group}`,
    spec: spec as unknown as Json,
    hash: hashJson(spec),
    version: storedVersion(api),
    scope: api.namespaced ? 'Namespaced' : 'Cluster',
    droppedVersions: [],
    annotations: {},
    open,
  };
}

const storedVersion = ({ versions, preferredVersion }: DiscoveredApi): string =>
  versions.some(({ name }) => name === preferredVersion) ? preferredVersion : (versions[0]?.name ?? '');

/**
 * A CustomResourceDefinition for an API that is known by discovery and OpenAPI only (spec §3): all versions served, the
 * preferred one stored, schemas structural, apiVersion, kind and metadata left to the API server. One that would be too
 * large to be stored goes without descriptions, and if that is not enough without schemas.
 */
export function synthesizeCrd(api: DiscoveredApi): SynthesizedCrd {
  const whole = crdOf(api, {});
  if (isSmallEnough(whole)) return whole;
  const bare = crdOf(api, { descriptions: false });
  if (isSmallEnough(bare)) return bare;
  return crdOf({ ...api, versions: api.versions.map((version) => ({ ...version, document: undefined })) }, {});
}

const isSmallEnough = ({ spec }: SynthesizedCrd): boolean => JSON.stringify(spec).length <= MAX_SPEC_CHARACTERS;

function crdOf(api: DiscoveredApi, options: StructuralOptions): SynthesizedCrd {
  const open: string[] = [];
  const stored = storedVersion(api);
  const shared = { ...options, budget: { left: MAX_SCHEMAS } };
  const versions = api.versions.map((version) => {
    const schema = rootSchema(api, version, shared);
    if (schema === undefined) open.push(version.name);
    return {
      name: version.name,
      served: true,
      storage: version.name === stored,
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
  const shortNames = api.shortNames.filter((name) => LABEL.test(name));
  const categories = api.categories.filter((name) => LABEL.test(name));
  return {
    plural: api.resource,
    singular: LABEL.test(api.singular) ? api.singular : api.kind.toLowerCase(),
    kind: api.kind,
    listKind: `${api.kind}List`,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
}

/** What the root of a CRD's schema may hold; anything else the API server refuses there. */
const ROOT_MEMBERS = ['description', PRESERVE, 'x-kubernetes-validations'];
const ROOT_JUNCTORS = ['allOf', 'anyOf', 'oneOf', 'not'];

function rootSchema(
  api: DiscoveredApi,
  version: DiscoveredVersion,
  options: StructuralOptions,
): OpenApiSchema | undefined {
  if (version.document === undefined) return undefined;
  const found = schemaOfKind(version.document, { group: api.group, version: version.name, kind: api.kind });
  if (found === undefined) return undefined;
  const { schema } = toStructural({ ...withoutTypeMeta(found), type: 'object' }, version.document, options);
  // Behind a reference the three are still there, and junctors may speak of them.
  const root = withoutTypeMeta(schema);
  const fields = isMap(root['properties']) ? root['properties'] : {};
  const kept = isMap(found['properties']) ? [...ROOT_MEMBERS, ...ROOT_JUNCTORS] : ROOT_MEMBERS;
  const members = Object.fromEntries(
    kept.filter((member) => root[member] !== undefined).map((member) => [member, root[member]]),
  );
  if (Object.keys(fields).length === 0) return { ...pickText(members), ...OPEN_ROOT };
  return { ...members, ...requiredOf(root, fields), type: 'object', properties: fields };
}

const pickText = ({ description }: OpenApiSchema): OpenApiSchema => (description === undefined ? {} : { description });

function requiredOf({ required }: OpenApiSchema, fields: OpenApiSchema): OpenApiSchema {
  const names = Array.isArray(required) ? required.filter((name) => Object.hasOwn(fields, String(name))) : [];
  return names.length === 0 ? {} : { required: names };
}
