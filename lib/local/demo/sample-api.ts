import type { ObjectKey, ResourceRef } from '../../model/api.ts';
import type { SentObject } from '../../kube/types.ts';
import { apiName } from '../../model/api.ts';
import { EXPORTED_LABEL, TRUE } from '../../model/markers.ts';

/** The sample API that the demonstration's provider offers: databases, as a platform team might. */
export const databases: ResourceRef = {
  group: 'demo.example.org',
  version: 'v1',
  resource: 'databases',
  kind: 'Database',
  namespaced: true,
};

/** Its CRD on the provider; the label offers it to consumers. */
export const databasesCrd: SentObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: apiName(databases), labels: { [EXPORTED_LABEL]: TRUE } },
  spec: {
    group: databases.group,
    scope: 'Namespaced',
    names: {
      plural: 'databases',
      singular: 'database',
      kind: 'Database',
      listKind: 'DatabaseList',
      shortNames: ['db'],
    },
    versions: [
      {
        name: databases.version,
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['engine'],
                properties: {
                  engine: { type: 'string', enum: ['postgres', 'mysql'], description: 'What kind of database.' },
                  sizeGb: { type: 'integer', minimum: 1, default: 10, description: 'Disk, in gigabytes.' },
                },
              },
              status: {
                type: 'object',
                properties: {
                  phase: { type: 'string' },
                  endpoint: { type: 'string' },
                  sizeGb: { type: 'integer' },
                },
              },
            },
          },
        },
        additionalPrinterColumns: [
          { name: 'Engine', type: 'string', jsonPath: '.spec.engine' },
          { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGb' },
          { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
          { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
        ],
      },
    ],
  },
};

/** A database as a developer orders it. */
export const database = (key: ObjectKey, engine: string, sizeGb: number): SentObject => ({
  apiVersion: `${databases.group}/${databases.version}`,
  kind: databases.kind,
  metadata: { name: key.name, namespace: key.namespace },
  spec: { engine, sizeGb },
});
