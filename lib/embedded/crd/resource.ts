import { ALL_VERBS, type Resource, type Strategy, type Version } from '../api/resource.ts';
import { withTypeMeta } from '../schema/meta.ts';
import type { Crd, CrdNames, CrdVersion } from './model.ts';

const CUSTOM: Strategy = { unconditionalUpdate: false, createOnUpdate: false, generation: true };

/** The resource that a CustomResourceDefinition defines; its names are those that were accepted. */
export function resourceOf(crd: Crd): Resource {
  const { spec } = crd;
  const names: CrdNames = { ...spec.names, ...crd.status?.acceptedNames };
  const deleting = crd.metadata.deletionTimestamp !== undefined;
  return {
    group: spec.group,
    plural: names.plural,
    singular: names.singular ?? '',
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: spec.scope === 'Namespaced',
    versions: spec.versions.filter((version) => version.served).map((version) => versionOf(version, crd)),
    storageVersion: spec.versions.find((version) => version.storage)?.name ?? '',
    custom: true,
    terminating: deleting,
    webhookConversion: spec.conversion?.strategy === 'Webhook',
    verbs: deleting ? ALL_VERBS.filter((verb) => !['create', 'patch', 'update'].includes(verb)) : ALL_VERBS,
    strategy: CUSTOM,
  };
}

function versionOf(version: CrdVersion, crd: Crd): Version {
  return {
    name: version.name,
    schema: withTypeMeta(version.schema?.openAPIV3Schema ?? { 'x-kubernetes-preserve-unknown-fields': true }),
    status: version.subresources?.status !== undefined,
    scale: version.subresources?.scale !== undefined,
    columns: version.additionalPrinterColumns ?? [],
    selectableFields: (version.selectableFields ?? []).map((field) => field.jsonPath),
    ...(version.deprecated && { deprecation: deprecationOf(version, crd) }),
  };
}

function deprecationOf(version: CrdVersion, { spec }: Crd): string {
  if (version.deprecationWarning) return version.deprecationWarning;
  const better = [...spec.versions]
    .filter((each) => each.served && !each.deprecated)
    .map((each) => each.name)
    .sort(comparePriority);
  const shown = `${spec.group}/${version.name} ${spec.names.kind} is deprecated`;
  return better[0] === undefined ? shown : `${shown}; use ${spec.group}/${better[0]} ${spec.names.kind}`;
}

/** Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name. */
export function comparePriority(left: string, right: string): number {
  const [a, b] = [rank(left), rank(right)];
  if (!a || !b) return a ? -1 : b ? 1 : left < right ? -1 : 1;
  for (let i = 0; i < a.length; i += 1) {
    const difference = (b[i] ?? 0) - (a[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function rank(version: string): number[] | undefined {
  const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (!found) return undefined;
  const stability = found[2] === undefined ? 2 : found[2] === 'beta' ? 1 : 0;
  return [stability, Number(found[1]), Number(found[3] ?? 0)];
}
