/** The CRD of field case 36: all that was lost, or broke the synthesis, elsewhere. Served in two versions. */

const port = { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] };

const spec = {
  type: 'object',
  required: ['size'],
  'x-kubernetes-validations': [{ rule: 'self.replicas <= 100', message: 'too many' }],
  properties: {
    size: { type: 'string', enum: ['small', 'large'], description: 'How large.' },
    replicas: { type: 'integer', format: 'int32', minimum: 0, maximum: 1000, default: 1 },
    quota: { type: 'integer', format: 'int64', default: 9007199254740991 },
    ratio: { type: 'number', nullable: true },
    port,
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, target: port } },
    },
    tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string', pattern: '^[a-z]+$' } },
    matrix: { type: 'array', items: { type: 'array', items: { type: 'integer' } } },
    byName: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { weight: { type: 'integer' } }, required: ['weight'] },
    },
    template: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    anything: { 'x-kubernetes-preserve-unknown-fields': true },
    startAt: { type: 'string', format: 'date-time' },
    source: {
      type: 'object',
      properties: { url: { type: 'string' }, inline: { type: 'string' } },
      oneOf: [{ required: ['url'] }, { required: ['inline'] }],
    },
  },
};

const schema = {
  openAPIV3Schema: {
    type: 'object',
    required: ['spec'],
    properties: { spec, status: { type: 'object', properties: { phase: { type: 'string' } } } },
  },
};

export const fidelityCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'fidelities.odd.example.org' },
  spec: {
    group: 'odd.example.org',
    scope: 'Namespaced',
    names: {
      plural: 'fidelities',
      singular: 'fidelity',
      kind: 'Fidelity',
      listKind: 'FidelityList',
      shortNames: ['fid'],
      categories: ['oddities'],
    },
    versions: [
      { name: 'v1beta1', served: true, storage: false, schema, subresources: { status: {} } },
      { name: 'v1', served: true, storage: true, schema, subresources: { status: {} } },
    ],
  },
};

/** An object that uses all of it. */
export const fidelitySpec = {
  size: 'large',
  replicas: 3,
  quota: 9007199254740991,
  ratio: null,
  port: 'http',
  ports: [
    { name: 'a', target: 80 },
    { name: 'b', target: 'b' },
  ],
  tags: ['x', 'y'],
  matrix: [[1, 2], [], [3]],
  byName: { one: { weight: 1 }, __proto__x: { weight: 2 } },
  template: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'inner' }, data: { a: 'b' } },
  anything: { at: ['all', 1] },
  startAt: '2024-01-01T00:00:00+02:00',
  source: { url: 'https://example.org' },
};
