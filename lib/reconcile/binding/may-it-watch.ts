import type { ResourceRef } from '../../model/api.ts';
import { findCondition } from '../../model/conditions.ts';
import { isError, isFillingCache, KbindError } from '../../model/errors.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { CONSUMER_CLUSTER_UID } from '../../model/markers.ts';
import { bindingIsReady } from '../../model/may-act.ts';
import { forbiddenMessage } from '../connection/what-was-found.ts';
import type { KubeClient, ListOptions } from '../../kube/types.ts';
import type { Side, World } from '../world.ts';

/** The forwarder's watch writes nothing and may not speak up in the consumer: what it lacks is found out here. */

const CONSEQUENCE = ', without which statuses come down only when the objects of this cluster change';

/**
 * Asked while a binding is set up and for as long as something is denied, so that a pass over a Ready one costs nothing: a
 * permission that is taken away later shows with the next set-up.
 */
export const isAskedNow = (binding: AnyBinding): boolean =>
  !bindingIsReady(binding) || findCondition(binding.status.conditions, 'PermissionDenied')?.status === 'True';

/** Why copies of an API may not be listed or watched on the provider; undefined: they may, or it cannot be told now. */
export async function whyNotWatched(world: World, { client }: Side, ref: ResourceRef): Promise<string | undefined> {
  const ours = { labelSelector: `${CONSUMER_CLUSTER_UID}=${world.consumer.uid}` };
  const opened = new AbortController();
  const signal = AbortSignal.any([world.signal, opened.signal]);
  try {
    const resourceVersion = await versionToWatchFrom(client, ref, { ...ours, signal: world.signal });
    const onOpen = (): void => opened.abort();
    const stream = client.watch(ref, {
      ...ours,
      resourceVersion,
      metadataOnly: true,
      timeoutSeconds: 1,
      signal,
      onOpen,
    });
    for await (const _ of stream) break;
  } catch (error) {
    if (!(error instanceof KbindError) || world.signal.aborted) throw error;
    // Anything but a denial is for those to judge who need the answer: the instances' own reconciles.
    if (isError(error, 'forbidden')) return forbiddenMessage(error, CONSEQUENCE);
  }
  return undefined;
}

/**
 * Of a collection whose cache is being filled nothing is listed or watched yet, but whether it may be is decided before: the watch
 * is tried all the same. Otherwise a new API's denial would be overlooked, and a Ready binding does not ask again.
 */
async function versionToWatchFrom(client: KubeClient, ref: ResourceRef, options: ListOptions): Promise<string> {
  try {
    return (await client.listMetadata(ref, { ...options, limit: 1 })).resourceVersion;
  } catch (error) {
    if (isFillingCache(error)) return '0';
    throw error;
  }
}
