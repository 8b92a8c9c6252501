import type { Json, KubeObject, ResourceRef } from '../../model/api.ts';
import { hasStatusSubresource, instanceResource, isDeleting, usableVersion } from '../../model/crd.ts';
import { KbindError } from '../../model/errors.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, TRUE } from '../../model/markers.ts';

/** What a reconcile of instances needs to know of their consumer CRD. */
export interface InstanceApi {
  /** `<plural>.<group>`. */
  readonly name: string;
  /** The consumer's API; the provider's is the same one, because the CRD came from there with its version kept. */
  readonly ref: ResourceRef;
  /** Carries our managed label and is not being deleted: instances may be synchronized. */
  readonly syncs: boolean;
  /** Name of the Connection that the CRD is pinned to. */
  readonly connection: string | undefined;
  /** True when status is written through the status subresource, false when through the main resource. */
  readonly statusSubresource: boolean;
  /** Schema of the whole object in that version. */
  readonly schema: SchemaNode;
}

/** One node of a structural schema, as far as it decides what a server stores. */
export type SchemaNode = Readonly<Record<string, Json | undefined>>;

/**
 * The API of a consumer CRD.
 * @throws KbindError `misconfigured` for a CRD without a served version.
 */
export function instanceApi(crd: KubeObject): InstanceApi {
  const { name, labels, annotations } = crd.metadata;
  const ref = instanceResource(crd);
  if (ref === undefined) {
    throw new KbindError('misconfigured', `CustomResourceDefinition ${name} has no served version`, { api: name });
  }
  const { openAPIV3Schema } = (usableVersion(crd)?.['schema'] ?? {}) as { readonly openAPIV3Schema?: SchemaNode };
  return {
    name,
    ref,
    syncs: labels?.[MANAGED_LABEL] === TRUE && !isDeleting(crd),
    connection: annotations?.[CONNECTION_ANNOTATION],
    statusSubresource: hasStatusSubresource(crd),
    schema: openAPIV3Schema ?? {},
  };
}
