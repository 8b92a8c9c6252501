import type { Belief } from '../../kube/types.ts';
import type { ResourceRef } from '../../model/api.ts';
import { KbindError } from '../../model/errors.ts';
import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { RELATED_ROUTES_ANNOTATION } from '../../model/markers.ts';
import { entriesOf, routes, type Route } from '../../model/related.ts';
import { setMarkers } from '../object-writes.ts';
import type { Side, World } from '../world.ts';
import { Ground, sidesOf, type RoutePass } from './pass.ts';
import { collisionMessage, emptyReport, firstFew, type RelatedReport } from './report.ts';
import { syncRoute } from './sync-route.ts';

/** A binding whose related resources are synchronized: its Connection is Ready and its APIs are set up. */
export interface RelatedTarget {
  readonly ref: ResourceRef;
  readonly binding: AnyBinding;
  readonly connection: Connection;
  readonly provider: Side;
  readonly belief: Belief;
}

/** The binding as it stands after the pass, and what there is to say. */
export interface RelatedResult {
  /** The object of the binding: rewritten where the annotation changed. */
  readonly raw: AnyBinding['raw'];
  readonly report: RelatedReport;
}

/** Routes of which a binding may have copies: those of its entries, and those that its annotation still names. */
export function routesOf(binding: AnyBinding): readonly Route[] {
  const noted = new Set((binding.metadata.annotations?.[RELATED_ROUTES_ANNOTATION] ?? '').split(','));
  return routes.filter((route) => noted.has(route.name) || entriesOf(binding, route).length > 0);
}

/**
 * Sync selected related Secrets and ConfigMaps, remove copies that no longer match (spec §5).
 *
 * 1. The binding's annotation names every route that may have copies before the first one is made: removed entries are found.
 * 2. Each route: complete lists of both sides, then one object at a time, then what nothing asks for is deleted.
 * 3. The annotation forgets a route without entries once a complete list has shown no copy of it.
 *
 * Reads of an unchanged pass: for each route, one list per name of its entries and one per entry without names; of copies one
 * list on the consumer, two on the provider; one for each name that is in the way. A page more per 8 MB. No write.
 * A new copy costs six requests and an update at most five beside them; who both clusters are is asked before each write,
 * and shared by those that are written side by side.
 * @throws KbindError for what is to be retried, after everything else was done.
 */
export async function syncRelated(world: World, target: RelatedTarget): Promise<RelatedResult> {
  const { binding, connection, belief } = target;
  const report = emptyReport();
  const concerned = routesOf(binding);
  const ground = new Ground(world, binding, connection, belief);
  let raw = await noteRoutes(world, target, { raw: binding.raw, concerned, belief: await ground.believe() });
  const over = new Set<Route>();
  const failures: unknown[] = [];
  for (const route of concerned) {
    try {
      const pass = routePass(world, target, { route, ground });
      if ((await syncRoute(pass, report)) && pass.entries.length === 0) {
        // Another cluster has no copy of ours either, and nobody looks again at a route that is forgotten.
        await pass.target.confirmIdentity(0);
        over.add(route);
      }
    } catch (error) {
      if (!isRetryable(error)) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  const left = concerned.filter((route) => !over.has(route));
  raw = await noteRoutes(world, target, { raw, concerned: left, belief: await ground.believe() });
  await tell(world, raw, report);
  return { raw, report };
}

/** A route that fails holds the others up no more than an object does; a stop of the whole pass does. */
const isRetryable = (error: unknown): boolean => error instanceof KbindError && error.errorClass !== 'aborted';

function routePass(
  world: World,
  { binding, provider }: RelatedTarget,
  { route, ground }: { readonly route: Route; readonly ground: Ground },
): RoutePass {
  return {
    world,
    binding,
    owner: { cluster: world.cluster, binding: binding.metadata.uid },
    route,
    entries: entriesOf(binding, route),
    ...sidesOf(route, world.consumer, provider),
    namespace: binding.kind === 'Binding' ? binding.metadata.namespace : undefined,
    ground,
  };
}

/** Writes the annotation where it says something else; its answer is the binding as it is then. */
function noteRoutes(
  { consumer, signal }: World,
  { ref }: RelatedTarget,
  {
    raw,
    concerned,
    belief,
  }: { readonly raw: AnyBinding['raw']; readonly concerned: readonly Route[]; readonly belief: Belief },
): Promise<AnyBinding['raw']> {
  const value = concerned.length === 0 ? undefined : concerned.map(({ name }) => name).join(',');
  const change = { annotations: { [RELATED_ROUTES_ANNOTATION]: value } };
  return setMarkers(consumer.client, { ref, object: raw }, change, { signal, belief });
}

async function tell({ events }: World, raw: AnyBinding['raw'], report: RelatedReport): Promise<void> {
  const { collisions, refused, denied } = report;
  if (collisions.length > 0) await events.warn(raw, 'RelatedConflict', collisionMessage(collisions));
  if (refused.length > 0) await events.warn(raw, 'RelatedRefused', firstFew(refused));
  if (denied.length > 0) await events.warn(raw, 'Forbidden', firstFew(denied));
}
