import type { Json, KubeObject } from '../model/api.ts';
import { crdSpec, type CrdScope, type CrdVersion } from '../model/crd.ts';
import { KbindError } from '../model/errors.ts';
import { API_APPROVED_ANNOTATION } from '../model/markers.ts';
import { hashJson } from '../kube/json.ts';
import { byVersionPriority } from './version-priority.ts';

/** A provider's API in the form in which a consumer installs it (spec §3): one version, no conversion, nothing foreign. */
export interface ConsumerSchema {
  /** `<plural>.<group>`. */
  readonly name: string;
  /** What is sent as the consumer CRD's `spec`. */
  readonly spec: Json;
  /** `sha256:` and 16 hex digits over the canonical form of {@link spec}: of what is sent, never of what a server stored. */
  readonly hash: string;
  /** The version that is kept. */
  readonly version: string;
  readonly scope: CrdScope;
  /** The provider's other versions, which the consumer will not see. */
  readonly droppedVersions: readonly string[];
  /** Annotations that travel: the approval that the API server demands of protected groups, and no other. */
  readonly annotations: Readonly<Record<string, string>>;
}

/**
 * The consumer form of a provider CRD.
 * @throws KbindError `misconfigured`, naming the CRD, when it serves no version.
 */
export function schemaFromCrd(crd: KubeObject): ConsumerSchema {
  const { group, names, scope, versions, preserveUnknownFields } = crdSpec(crd);
  const kept = versionToKeep(crd.metadata.name, versions);
  const spec = {
    group,
    names: pick(names, NAME_FIELDS),
    scope,
    conversion: { strategy: 'None' },
    versions: [consumerVersion(kept, preserveUnknownFields === true)],
  };
  return {
    name: crd.metadata.name,
    spec,
    hash: hashJson(spec),
    version: kept.name,
    scope,
    droppedVersions: versions.filter((version) => version !== kept).map((version) => version.name),
    annotations: pick(crd.metadata.annotations ?? {}, [API_APPROVED_ANNOTATION]) as Record<string, string>,
  };
}

/** The storage version when it is served, else the served one that discovery prefers (spec §3, C10). */
function versionToKeep(name: string, versions: readonly CrdVersion[]): CrdVersion {
  const served = versions.filter((version) => version.served);
  const kept = served.find((version) => version.storage) ?? served.sort(byVersionPriority)[0];
  if (kept === undefined) {
    throw new KbindError('misconfigured', `CustomResourceDefinition ${name} of the provider serves no version`, {
      api: name,
      side: 'provider',
    });
  }
  return kept;
}

const NAME_FIELDS = ['plural', 'singular', 'shortNames', 'kind', 'listKind', 'categories'] as const;

/**
 * What travels of a version. `selectableFields` belongs to the schema (field selectors are of no use without it); an API
 * server that does not know it drops it, as it does newer schema fields.
 */
const VERSION_FIELDS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;

function consumerVersion(version: CrdVersion, preservesUnknown: boolean): Json {
  const { schema, ...others } = pick(version, VERSION_FIELDS);
  return {
    name: version.name,
    served: true,
    storage: true,
    schema: preservesUnknown || schema === undefined ? withUnknownFields(schema) : schema,
    ...others,
  };
}

/**
 * CRDs that were made through v1beta1 may have no schema, or `preserveUnknownFields: true`, which v1 refuses: the same is
 * said in the schema itself.
 */
function withUnknownFields(schema: Json | undefined): Json {
  const root = (schema as { openAPIV3Schema?: Readonly<Record<string, Json>> } | undefined)?.openAPIV3Schema;
  return { openAPIV3Schema: { type: 'object', ...root, 'x-kubernetes-preserve-unknown-fields': true } };
}

function pick(from: Readonly<Record<string, unknown>>, fields: readonly string[]): Record<string, Json> {
  const present = fields.filter((field) => from[field] !== undefined && from[field] !== null);
  return Object.fromEntries(present.map((field) => [field, from[field] as Json]));
}
