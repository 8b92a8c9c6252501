import { pathOf } from './servers.ts';

const GROUP = 'example.org';

/** The schema that most cases use: every merge type, a default, an enum, free-form parts. */
const SPEC_SCHEMA = {
  type: 'object',
  properties: {
    size: { type: 'string', enum: ['small', 'large', 'xlarge'] },
    replicas: { type: 'integer', minimum: 0, maximum: 10 },
    color: { type: 'string', default: 'blue' },
    note: { type: 'string', pattern: '^[a-z ]*$', maxLength: 20 },
    big: { type: 'integer', format: 'int64' },
    ratio: { type: 'number' },
    nothing: { type: 'string', nullable: true },
    port: { 'x-kubernetes-int-or-string': true },
    frozen: {
      type: 'string',
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'frozen is immutable' }],
    },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    granular: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
    atomic: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: { type: 'string' } },
    tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    steps: { type: 'array', items: { type: 'string' } },
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          port: { type: 'integer' },
          protocol: { type: 'string', default: 'TCP' },
        },
      },
    },
  },
};

const STATUS_SCHEMA = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** Options of {@link widgetCrd}. */
export interface CrdOptions {
  plural?: string;
  kind?: string;
  group?: string;
  scope?: string;
  status?: boolean;
  spec?: object;
}

/** A CRD of widgets: namespaced, one version, with a status subresource. */
export function widgetCrd(options: CrdOptions = {}): CrdBody {
  const {
    plural = 'widgets',
    kind = 'Widget',
    group = GROUP,
    scope = 'Namespaced',
    status = true,
    spec = SPEC_SCHEMA,
  } = options;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { plural, kind },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: STATUS_SCHEMA } } },
          ...(status && { subresources: { status: {} } }),
          additionalPrinterColumns: [{ name: 'Size', type: 'string', jsonPath: '.spec.size' }],
        },
      ],
    },
  };
}

/** A CRD as the cases change it. */
export interface CrdBody {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    annotations?: Record<string, string>;
    resourceVersion?: string;
    labels?: Record<string, string>;
  };
  spec: {
    group: string;
    scope: string;
    names: {
      plural: string;
      kind: string;
      singular?: string;
      listKind?: string;
      shortNames?: string[];
      categories?: string[];
    };
    versions: CrdVersionBody[];
    conversion?: object;
    preserveUnknownFields?: boolean;
  };
}

/** A version of a CRD as the cases change it. */
export interface CrdVersionBody {
  name: string;
  served: boolean;
  storage: boolean;
  schema?: object;
  subresources?: object;
  additionalPrinterColumns?: object[];
  deprecated?: boolean;
  deprecationWarning?: string;
}

/** The path of widgets in a namespace. */
export const widgetPath = pathOf(GROUP, 'v1', 'widgets');

/** A widget. */
export function widget(
  name: string,
  spec: object = { size: 'small' },
  metadata: object = {},
): { apiVersion: string; kind: string; metadata: { name: string }; spec: object } {
  return { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name, ...metadata }, spec };
}

export const CRDS_PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
