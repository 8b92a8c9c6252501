import { labelProblems, subdomainProblems } from '../api/names.ts';
import { fieldForbidden, invalidValue, required, unsupported, type Cause } from '../api/status.ts';
import { equal } from '../json/json.ts';
import type { Crd, CrdVersion } from './model.ts';
import { isTrue } from './model.ts';
import { structuralProblems } from './structural.ts';

const APPROVAL = 'api-approved.kubernetes.io';
const VERSION = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** Everything wrong with a CustomResourceDefinition. */
export function validateCrd(crd: Crd): Cause[] {
  const { group, names, scope, versions } = crd.spec;
  const causes: Cause[] = [];
  if (names.plural && group && crd.metadata.name !== `${names.plural}.${group}`) {
    causes.push(invalidValue('metadata.name', crd.metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  causes.push(...validateGroup(crd), ...validateNames(crd));
  if (!scope) causes.push(required('spec.scope', ''));
  else if (scope !== 'Namespaced' && scope !== 'Cluster')
    causes.push(unsupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  causes.push(...validateVersions(versions), ...validateConversion(crd));
  if (crd.spec.preserveUnknownFields === true) {
    causes.push(
      invalidValue(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  return causes;
}

function validateGroup(crd: Crd): Cause[] {
  const { group } = crd.spec;
  if (!group) return [required('spec.group', '')];
  const causes = subdomainProblems(group).map((problem) => invalidValue('spec.group', group, problem));
  if (group.split('.').length < 2)
    causes.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'));
  const isProtected = /(^|\.)(k8s|kubernetes)\.io$/.test(group);
  if (isProtected && crd.metadata.annotations?.[APPROVAL] === undefined) {
    causes.push(
      required(
        `metadata.annotations[${APPROVAL}]`,
        `protected groups must have approval annotation "${APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    );
  }
  return causes;
}

function validateNames({ spec: { names } }: Crd): Cause[] {
  const causes: Cause[] = [];
  for (const key of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const value = names[key] ?? '';
    const field = `spec.names.${key}`;
    if (!value) causes.push(required(field, ''));
    else
      for (const problem of labelProblems(value.toLowerCase()))
        causes.push(
          invalidValue(
            field,
            value,
            key.toLowerCase().endsWith('kind')
              ? `may have mixed case, but should otherwise match: ${problem}`
              : problem,
          ),
        );
  }
  if (names.kind && names.kind === names.listKind)
    causes.push(invalidValue('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'));
  for (const key of ['shortNames', 'categories'] as const) {
    (names[key] ?? []).forEach((name, i) => {
      for (const problem of labelProblems(name)) causes.push(invalidValue(`spec.names.${key}[${i}]`, name, problem));
    });
  }
  return causes;
}

function validateVersions(versions: CrdVersion[]): Cause[] {
  const causes: Cause[] = [];
  const seen = new Set<string>();
  const shared = versions.every((version) => equal(version.schema, versions[0]?.schema));
  versions.forEach((version, i) => {
    const field = `spec.versions[${i}]`;
    if (!VERSION.test(version.name ?? ''))
      causes.push(
        invalidValue(
          `${field}.name`,
          version.name ?? '',
          "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
      );
    if (seen.has(version.name))
      causes.push(
        invalidValue(
          'spec.versions',
          versions.map((each) => each.name),
          'must contain unique version names',
        ),
      );
    seen.add(version.name);
    // One schema for all versions is reported once, under its old name.
    const ownField = shared
      ? i === 0
        ? 'spec.validation.openAPIV3Schema'
        : undefined
      : `${field}.schema.openAPIV3Schema`;
    causes.push(...validateVersion(version, field, ownField));
  });
  const stored = versions.filter((version) => version.storage).length;
  if (stored !== 1)
    causes.push(invalidValue('spec.versions', versions, 'must have exactly one version marked as storage version'));
  return causes;
}

function validateVersion(version: CrdVersion, field: string, schemaField: string | undefined): Cause[] {
  const schema = version.schema?.openAPIV3Schema;
  if (!schema) return [required(`${field}.schema.openAPIV3Schema`, '')];
  const causes = schemaField === undefined ? [] : structuralProblems(schema, schemaField);
  if (version.deprecationWarning !== undefined && !version.deprecated) {
    causes.push(
      invalidValue(
        `${field}.deprecationWarning`,
        version.deprecationWarning,
        'can only be set for deprecated versions',
      ),
    );
  }
  (version.additionalPrinterColumns ?? []).forEach((column, i) => {
    const place = `${field}.additionalPrinterColumns[${i}]`;
    if (!column.name) causes.push(required(`${place}.name`, ''));
    if (!column.jsonPath) causes.push(required(`${place}.jsonPath`, ''));
    const types = ['boolean', 'date', 'integer', 'number', 'string'];
    if (!types.includes(column.type)) causes.push(unsupported(`${place}.type`, column.type ?? '', types));
  });
  return causes;
}

function validateConversion({ spec: { conversion } }: Crd): Cause[] {
  if (!conversion) return [];
  const { strategy, webhook } = conversion;
  if (strategy === 'Webhook')
    return webhook ? [] : [required('spec.conversion.webhookClientConfig', 'required when strategy is set to Webhook')];
  if (strategy !== 'None') return [unsupported('spec.conversion.strategy', strategy, ['None', 'Webhook'])];
  return webhook
    ? [fieldForbidden('spec.conversion.webhookClientConfig', 'should not be set when strategy is not set to Webhook')]
    : [];
}

/** What an update of an established CustomResourceDefinition may not change. */
export function validateCrdUpdate(crd: Crd, old: Crd): Cause[] {
  const causes: Cause[] = [];
  const frozen = (field: string, value: unknown, before: unknown): void => {
    if (value !== before) causes.push(invalidValue(field, value, 'field is immutable'));
  };
  frozen('spec.group', crd.spec.group, old.spec.group);
  frozen('spec.names.plural', crd.spec.names.plural, old.spec.names.plural);
  if (isTrue(old, 'Established')) {
    frozen('spec.scope', crd.spec.scope, old.spec.scope);
    frozen('spec.names.kind', crd.spec.names.kind, old.spec.names.kind);
  }
  (crd.status?.storedVersions ?? []).forEach((stored, i) => {
    if (crd.spec.versions.some((version) => version.name === stored)) return;
    causes.push(
      invalidValue(
        `status.storedVersions[${i}]`,
        stored,
        `missing from spec.versions; ${stored} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${stored} and removes ${stored} from status.storedVersions`,
      ),
    );
  });
  return causes;
}
