import { ALL_VERBS, type Column, type Resource, type Schema, type Strategy } from '../api/resource.ts';
import { CRD_SCHEMA } from '../crd/schema.ts';
import { CRD_STRATEGY } from '../crd/strategy.ts';
import {
  CONFIG_MAP_COLUMNS,
  CRD_COLUMNS,
  EVENT_COLUMNS,
  LEASE_COLUMNS,
  NAMESPACE_COLUMNS,
  SECRET_COLUMNS,
} from './columns.ts';
import { CONFIG_MAP, EVENT, LEASE, NAMESPACE, SECRET } from './schemas.ts';
import {
  CONFIG_MAP_STRATEGY,
  EVENT_STRATEGY,
  LEASE_STRATEGY,
  NAMESPACE_STRATEGY,
  SECRET_STRATEGY,
} from './strategies.ts';

interface Builtin {
  group?: string;
  plural: string;
  kind: string;
  shortNames?: string[];
  categories?: string[];
  namespaced?: boolean;
  status?: boolean;
  verbs?: readonly string[];
  schema: Schema;
  columns: Column[];
  strategy: Strategy;
}

function builtin(options: Builtin): Resource {
  const { group = '', plural, kind, schema, columns, strategy } = options;
  return {
    group,
    plural,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    shortNames: options.shortNames ?? [],
    categories: options.categories ?? [],
    namespaced: options.namespaced ?? true,
    versions: [{ name: 'v1', schema, status: options.status ?? false, columns }],
    storageVersion: 'v1',
    custom: false,
    webhookConversion: false,
    terminating: false,
    verbs: options.verbs ?? ALL_VERBS,
    strategy,
  };
}

/** The built-in kinds that this server serves. */
export function builtinResources(): Resource[] {
  return [
    builtin({
      plural: 'namespaces',
      kind: 'Namespace',
      shortNames: ['ns'],
      namespaced: false,
      status: true,
      verbs: ALL_VERBS.filter((verb) => verb !== 'deletecollection'),
      schema: NAMESPACE,
      columns: NAMESPACE_COLUMNS,
      strategy: NAMESPACE_STRATEGY,
    }),
    builtin({ plural: 'secrets', kind: 'Secret', schema: SECRET, columns: SECRET_COLUMNS, strategy: SECRET_STRATEGY }),
    builtin({
      plural: 'configmaps',
      kind: 'ConfigMap',
      shortNames: ['cm'],
      schema: CONFIG_MAP,
      columns: CONFIG_MAP_COLUMNS,
      strategy: CONFIG_MAP_STRATEGY,
    }),
    builtin({
      plural: 'events',
      kind: 'Event',
      shortNames: ['ev'],
      schema: EVENT,
      columns: EVENT_COLUMNS,
      strategy: EVENT_STRATEGY,
    }),
    builtin({
      group: 'coordination.k8s.io',
      plural: 'leases',
      kind: 'Lease',
      schema: LEASE,
      columns: LEASE_COLUMNS,
      strategy: LEASE_STRATEGY,
    }),
    customResourceDefinitions(),
  ];
}

function customResourceDefinitions(): Resource {
  return builtin({
    group: 'apiextensions.k8s.io',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    namespaced: false,
    status: true,
    schema: CRD_SCHEMA,
    columns: CRD_COLUMNS,
    strategy: CRD_STRATEGY,
  });
}
