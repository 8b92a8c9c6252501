/** Every label, annotation, finalizer and field manager, as spec §1 lists them. Names are shared with the Go konnector. */

/** Label on a provider CRD: it is offered to consumers. Only the exact value `"true"` counts. */
export const EXPORTED_LABEL = 'core.kbind.io/exported';
/** Label on a consumer CRD, provider copy, created namespace, related copy or Lease: written by us. */
export const MANAGED_LABEL = 'core.kbind.io/managed';
/** Annotation on a consumer CRD: the Connection it came from; pins the provider for that API. */
export const CONNECTION_ANNOTATION = 'core.kbind.io/connection';
/** Annotation on a consumer CRD: hash of the spec that was sent when it was installed. */
export const SCHEMA_HASH_ANNOTATION = 'core.kbind.io/schema-hash';
/** Annotation (and, on copies, label) that names the consumer cluster that owns a provider copy. */
export const CONSUMER_CLUSTER_UID = 'core.kbind.io/consumer-cluster-uid';
/** Annotation on a provider copy: the consumer object that owns it. */
export const CONSUMER_OBJECT_UID = 'core.kbind.io/consumer-object-uid';
/** Annotation on a related copy: UID of the binding that made it. */
export const RELATED_BINDING_ANNOTATION = 'core.kbind.io/related-binding';
/**
 * Annotation on a binding (ours alone): the kinds and directions of which it may have related copies, written before the first
 * copy is made. So copies of an entry that was removed are found, and a binding that never had entries costs no request.
 */
export const RELATED_ROUTES_ANNOTATION = 'core.kbind.io/related-routes';
/** Annotation (the reason) and label (`"true"`) on a consumer instance in conflict. */
export const CONFLICT_MARKER = 'core.kbind.io/conflict';
/** Annotation on a provider copy: hash of the spec that was applied last. */
export const APPLIED_HASH_ANNOTATION = 'core.kbind.io/applied-hash';
/** Annotation on a consumer CRD: UID and generation of the binding that last turned Ready on it. */
export const BOUND_BY_ANNOTATION = 'core.kbind.io/bound-by';
/** Annotation on a consumer CRD: the watch plan (spec §6). */
export const WATCH_PLAN_ANNOTATION = 'core.kbind.io/watch-plan';
/** Annotation on a Connection or binding: which state its dependents were last told of. */
export const FANNED_OUT_ANNOTATION = 'core.kbind.io/fanned-out';
/**
 * Annotation on a Connection (ours alone): `namespace/name/key` of the Secret that it was made with. Holds the immutability of
 * kubeconfigSecretRef where the API server does not.
 */
export const SECRET_REF_ANNOTATION = 'core.kbind.io/kubeconfig-secret-ref';
/** Annotation on a consumer instance: `Orphan` keeps the provider copy when the instance is deleted. */
export const DELETION_POLICY_ANNOTATION = 'core.kbind.io/deletion-policy';
/** The one value of {@link DELETION_POLICY_ANNOTATION} that means something. */
export const ORPHAN = 'Orphan';
/** Protected API groups need it on a CRD; the only foreign annotation that travels. */
export const API_APPROVED_ANNOTATION = 'api-approved.kubernetes.io';

/** Finalizer on a consumer instance: released only when the provider copy is gone. */
export const SYNCER_FINALIZER = 'core.kbind.io/syncer';
/** Finalizer on a Connection, its Secret and bindings: released when what it made is unwound. */
export const CLEANUP_FINALIZER = 'core.kbind.io/cleanup';

/** Field manager of instance copies, consumer CRDs and everything else that is not a related copy. */
export const FIELD_MANAGER = 'kbind-konnector';
/** Field manager of related Secrets and ConfigMaps. */
export const RELATED_FIELD_MANAGER = 'kbind-konnector-related';

/** Value of the boolean labels above. */
export const TRUE = 'true';
