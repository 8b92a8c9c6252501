import { setTimeout as sleep } from 'node:timers/promises';
import { isDeleting } from '../../model/crd.ts';
import { inService, type InstallRequest, type SchemaResult } from '../schema-result.ts';
import type { World } from '../world.ts';

/** How long is waited before each further look, ms. */
const PAUSES_MS: readonly number[] = [25, 50, 100, 200, 400];

/**
 * An API server takes a moment to establish a CRD and to serve it. That is waited for on the spot: another round through the
 * queue, with a status, a sweep and the events of both, costs tens of requests. What takes longer (some seconds where several
 * API servers share a cluster) is left to the ordinary wait.
 * @param look counts or lists what only a served API answers; says `establishing` where it does not yet
 */
export async function untilServed<Result extends SchemaResult>(
  world: World,
  request: InstallRequest,
  { first, look }: { readonly first: SchemaResult; readonly look: (result: SchemaResult) => Promise<Result> },
): Promise<Result> {
  let result = await look(first);
  for (const pause of PAUSES_MS) {
    if (result.state !== 'establishing' || !(await pauseFor(pause, world.signal))) break;
    const { value: crd } = await world.reads.crd(request.api, { fresh: true });
    // Another CRD, or one on its way out: the next reconcile decides anew what that means.
    if (crd === undefined || isDeleting(crd) || crd.metadata.uid !== first.crd?.metadata.uid) break;
    result = await look({ ...inService(request, crd), droppedVersions: first.droppedVersions });
  }
  return result;
}

/** False where the time of the invocation was up first. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
