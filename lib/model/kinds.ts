import * as z from 'zod/mini';
import type { Condition } from './conditions.ts';
import type { KubeObject, ObjectMeta } from './api.ts';

/**
 * The kinds of `core.kbind.io/v1alpha1` (spec §1). A test holds these schemas against the YAML under infra/crds/.
 * Objects read from a cluster are parsed with them, so that defaults hold on servers that never stored one.
 */

export const secretRefSchema = z.object({
  namespace: z.string().check(z.minLength(1)),
  name: z.string().check(z.minLength(1)),
  key: z._default(z.string().check(z.minLength(1)), 'kubeconfig'),
});

export const schemaSources = ['Auto', 'CRD', 'OpenAPI'] as const;
export const pullPolicies = ['Bound', 'All', 'None'] as const;
export const updatePolicies = ['Always', 'Once'] as const;
export const conflictPolicies = ['Fail', 'Adopt'] as const;
export const relatedKinds = ['secrets', 'configmaps'] as const;
export const directions = ['FromProvider', 'FromConsumer'] as const;

export const schemaPolicySchema = z.object({
  source: z._default(z.enum(schemaSources), 'Auto'),
  pullPolicy: z._default(z.enum(pullPolicies), 'Bound'),
  updatePolicy: z._default(z.enum(updatePolicies), 'Always'),
});

export const connectionSpecSchema = z.object({
  kubeconfigSecretRef: secretRefSchema,
  schema: z._default(schemaPolicySchema, { source: 'Auto', pullPolicy: 'Bound', updatePolicy: 'Always' }),
  autoBind: z._default(z.boolean(), false),
});

export const labelSelectorSchema = z.object({
  matchLabels: z.optional(z.record(z.string(), z.string())),
  matchExpressions: z.optional(
    z.array(
      z.object({
        key: z.string(),
        operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
        values: z.optional(z.array(z.string())),
      }),
    ),
  ),
});

export const relatedResourceSchema = z.object({
  group: z._default(z.literal(''), ''),
  resource: z.enum(relatedKinds),
  direction: z.enum(directions),
  selector: z.optional(
    z.object({
      labelSelector: z.optional(labelSelectorSchema),
      names: z.optional(z.array(z.string())),
    }),
  ),
});

export const bindingSpecSchema = z.object({
  connectionRef: z.object({ name: z.string().check(z.minLength(1)) }),
  apis: z.array(z.object({ name: z.string().check(z.minLength(1)) })).check(z.minLength(1)),
  conflictPolicy: z._default(z.enum(conflictPolicies), 'Fail'),
  relatedResources: z._default(z.array(relatedResourceSchema), []),
});

export type ConnectionSpec = z.infer<typeof connectionSpecSchema>;
export type BindingSpec = z.infer<typeof bindingSpecSchema>;
export type RelatedResource = z.infer<typeof relatedResourceSchema>;
export type LabelSelector = z.infer<typeof labelSelectorSchema>;

export interface ExportedApi {
  /** `<plural>.<group>`. */
  readonly name: string;
  readonly group: string;
  readonly resource: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly versions: readonly string[];
}

export interface ConnectionStatus {
  readonly remoteClusterUID?: string;
  readonly localClusterUID?: string;
  readonly activeSchemaSource?: 'CRD' | 'OpenAPI';
  readonly exportedAPIs?: readonly ExportedApi[];
  /** RFC 3339: since when the provider's list of exports is empty (spec §2.6). */
  readonly exportsEmptySince?: string;
  /** Hash of the Secret's uid and the kubeconfig's bytes (spec §2.8). */
  readonly secretVersion?: string;
  readonly conditions?: readonly Condition[];
}

export interface BoundApi {
  readonly name: string;
  readonly crdHash?: string;
  readonly conflictCount: number;
  /** These three are written by the ten-minute backstop and by nothing else. */
  readonly instances?: number;
  readonly synced?: number;
  readonly pending?: number;
}

export interface BindingStatus {
  readonly boundAPIs?: readonly BoundApi[];
  readonly conditions?: readonly Condition[];
}

interface Parsed {
  readonly metadata: ObjectMeta;
  /** The object as it was read, for writes that keep everything else. */
  readonly raw: KubeObject;
}

export interface Connection extends Parsed {
  readonly kind: 'Connection';
  readonly spec: ConnectionSpec;
  readonly status: ConnectionStatus;
}

export interface AnyBinding extends Parsed {
  readonly kind: 'ClusterBinding' | 'Binding';
  readonly spec: BindingSpec;
  readonly status: BindingStatus;
  /**
   * Why the stored spec does not parse (on a server whose CRD was loosened, say). Then `spec` holds only connectionRef and
   * apis: such a binding counts as one that lists those APIs, is never Ready and is never reconciled.
   */
  readonly unreadable?: string;
}

/** A Connection with its defaults filled in. Throws the zod error of a spec that the CRD would not admit. */
export function parseConnection(object: KubeObject): Connection {
  return {
    kind: 'Connection',
    metadata: object.metadata,
    spec: connectionSpecSchema.parse(object.spec),
    status: (object.status ?? {}) as ConnectionStatus,
    raw: object,
  };
}

/** A ClusterBinding or Binding with its defaults filled in. Throws the zod error of a spec that the CRD would not admit. */
export function parseBinding(object: KubeObject, kind: AnyBinding['kind']): AnyBinding {
  return {
    kind,
    metadata: object.metadata,
    spec: bindingSpecSchema.parse(object.spec),
    status: (object.status ?? {}) as BindingStatus,
    raw: object,
  };
}
