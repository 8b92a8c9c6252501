/** Standard `metav1.Condition`s. */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  /** RFC 3339, whole seconds; moves only when `status` changes. */
  readonly lastTransitionTime: string;
}

export const conditionReasons = [
  'AsExpected',
  'Pending',
  'SecretNotFound',
  'ClusterIdentityChanged',
  'APINotExported',
  'ForeignObjectExists',
  'OwnedByAnother',
  'Forbidden',
  'DrainingBindings',
] as const;
export type ConditionReason = (typeof conditionReasons)[number];

/** A condition as a reconcile decides it; time and generation are added when it is merged. */
export interface WantedCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: ConditionReason;
  readonly message: string;
}

/** RFC 3339 with whole seconds, as Kubernetes prints times. */
export const kubeTime = (epochMs: number): string => `${new Date(epochMs).toISOString().slice(0, 19)}Z`;

/** The longest message that a condition may hold (metav1.Condition's own limit is 32,768). */
const MAX_MESSAGE_CHARACTERS = 2048;

/**
 * Merges wanted conditions over present ones: keeps order and foreign types, moves `lastTransitionTime` only when the
 * status changes.
 */
export function mergeConditions(
  present: readonly Condition[],
  wanted: readonly WantedCondition[],
  at: { readonly generation: number; readonly nowMs: number },
): Condition[] {
  const merged = new Map(present.map((condition) => [condition.type, condition]));
  for (const { type, status, reason, message } of wanted) {
    const before = merged.get(type);
    merged.set(type, {
      type,
      status,
      reason,
      message: message.slice(0, MAX_MESSAGE_CHARACTERS),
      observedGeneration: at.generation,
      lastTransitionTime: before?.status === status ? before.lastTransitionTime : kubeTime(at.nowMs),
    });
  }
  return [...merged.values()];
}

/** The condition of that type, if any. */
export const findCondition = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find((condition) => condition.type === type);
