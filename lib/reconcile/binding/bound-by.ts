import { resources } from '../../model/api.ts';
import { BOUND_BY_ANNOTATION } from '../../model/markers.ts';
import { bindingIsReady } from '../../model/may-act.ts';
import type { Belief } from '../../kube/types.ts';
import { setMarkers } from '../object-writes.ts';
import type { World } from '../world.ts';
import type { ApiResult } from './process-apis.ts';
import type { Target } from './target.ts';

/**
 * Before a status write that turns a binding Ready, its UID and generation go onto every consumer CRD that it relies on. A
 * deletion of such a CRD that is under way has read the CRD before it listed the bindings, and deletes the resourceVersion
 * that it read: so either its list shows this binding, or this write stops it (spec §4). If the CRD is already being deleted,
 * the resourceVersion test here fails, and the reconcile reads again.
 */
export async function announce(
  world: World,
  { binding }: Target,
  results: readonly ApiResult[],
  belief: Belief,
): Promise<void> {
  if (bindingIsReady(binding)) return;
  const value = `${binding.metadata.uid}/${binding.metadata.generation ?? 0}`;
  for (const { state, crd } of results) {
    if (state !== 'installed' || crd === undefined) continue;
    await setMarkers(
      world.consumer.client,
      { ref: resources.crds, object: crd },
      { annotations: { [BOUND_BY_ANNOTATION]: value } },
      { signal: world.signal, belief },
    );
  }
}
