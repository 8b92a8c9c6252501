import * as z from 'zod/mini';
import type { KubeObject } from './api.ts';
import { WATCH_PLAN_ANNOTATION } from './markers.ts';

/**
 * The watch plan of a managed CRD (spec §6): the decision to watch one API at one version, for one CRD generation, against
 * one engaged provider. The managed-CRD controller records it, the forwarder starts, stops and rebuilds watches to match,
 * the backstop removes it once no instance carries our finalizer.
 */
export const watchPlanSchema = z.object({
  v: z.literal(1),
  /** `metadata.generation` of the CRD that was planned for. */
  generation: z.number(),
  /** The storage version, else the first served one. */
  version: z.string().check(z.minLength(1)),
  scope: z.enum(['Namespaced', 'Cluster']),
  /** Name of the Connection that the CRD is pinned to. */
  connection: z.string(),
  /** UID of the consumer cluster. */
  cluster: z.string(),
  /** The provider's epoch (lib/model/may-act.ts); empty when `provider` is false. */
  epoch: z.string(),
  /** False: only the consumer is watched. */
  provider: z.boolean(),
});
export type WatchPlan = Readonly<z.infer<typeof watchPlanSchema>>;

/** The plan as it stands in the annotation: one order of fields, so that equal plans are equal texts. */
export function printWatchPlan(plan: WatchPlan): string {
  const { v, generation, version, scope, connection, cluster, epoch, provider } = plan;
  return JSON.stringify({ v, generation, version, scope, connection, cluster, epoch, provider });
}

/** The plan in an annotation; undefined where there is none, or one that this release cannot read and so replaces. */
export function parseWatchPlan(text: string | undefined): WatchPlan | undefined {
  if (text === undefined) return undefined;
  try {
    const parsed = z.safeParse(watchPlanSchema, JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The plan recorded on a managed CRD. */
export const watchPlanOf = (crd: Pick<KubeObject, 'metadata'>): WatchPlan | undefined =>
  parseWatchPlan(crd.metadata.annotations?.[WATCH_PLAN_ANNOTATION]);

/** True when two plans ask for the same watches. */
export const samePlan = (left: WatchPlan | undefined, right: WatchPlan | undefined): boolean =>
  (left === undefined ? undefined : printWatchPlan(left)) === (right === undefined ? undefined : printWatchPlan(right));
