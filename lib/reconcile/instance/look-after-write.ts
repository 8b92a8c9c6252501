import { hasFinalizer, setMarkers } from '../object-writes.ts';
import { untilAnswered } from '../until-answered.ts';
import type { KubeObject } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { SYNCER_FINALIZER } from '../../model/markers.ts';
import { withoutMarkers } from './what-to-apply.ts';
import { carriesMarkersOf } from './who-owns-it.ts';
import { ownerOf, readCopy, readSource, type Pair, type Work } from './work.ts';

/** How a copy is undone whose source went away while it was made. */
export type Undo = 'delete' | 'unmark';

/** The object that a copy was made for still stands and holds our finalizer: the copy has a keeper. */
function keepsCopy(now: KubeObject | undefined, source: KubeObject): boolean {
  return (
    now !== undefined &&
    now.metadata.uid === source.metadata.uid &&
    now.metadata.deletionTimestamp === undefined &&
    hasFinalizer(now, SYNCER_FINALIZER)
  );
}

/**
 * The look after a create or an Adopt (design.md, Writes), made after any answer to it, none included. Between the read of
 * the consumer object and the write, its finalizer may have been released; what the write made would then outlive its
 * source. So both sides are looked at until both have answered. A copy without a keeper is deleted by uid and
 * resourceVersion; an adopted object loses our markers only.
 * @param made the write's answer, where it had one: that is the look at the target.
 * @returns the copy as it is; undefined when there is none.
 * @throws KbindError `conflict` after an undo, so that the reconcile starts over from what is there now.
 */
export async function lookAfterWrite(
  work: Work,
  pair: Pair,
  { made, undo }: { readonly made: KubeObject | undefined; readonly undo: Undo },
): Promise<KubeObject | undefined> {
  const copy = made ?? (await untilAnswered(work.world.signal, () => readCopy(work, pair.provider)));
  const now = await untilAnswered(work.world.signal, () => readSource(work));
  if (copy === undefined || !carriesMarkersOf(copy, ownerOf(work, pair.source)) || keepsCopy(now, pair.source)) {
    return copy;
  }
  // Absent counts only from the cluster that the object was read from.
  await untilAnswered(work.world.signal, () => work.world.consumer.confirmIdentity(0));
  work.world.trace.step('Look after the write', 'the source went away: undone');
  await undoCopy(work, pair, { copy, undo });
  throw new KbindError('conflict', 'the consumer object went away while its copy was made', {
    api: work.api.name,
    key: work.name.key,
  });
}

async function undoCopy(
  work: Work,
  pair: Pair,
  { copy, undo }: { readonly copy: KubeObject; readonly undo: Undo },
): Promise<void> {
  const owner = ownerOf(work, pair.source);
  let current: KubeObject | undefined = copy;
  while (
    current !== undefined &&
    carriesMarkersOf(current, owner) &&
    current.metadata.deletionTimestamp === undefined
  ) {
    const undone = current;
    try {
      await untilAnswered(work.world.signal, () => undoOnce(work, pair, { copy: undone, undo }));
      return;
    } catch (error) {
      // Somebody wrote in between, or it is gone: what stands now decides. Anything else is thrown.
      if (!isError(error, 'conflict', 'absent')) throw error;
    }
    current = await untilAnswered(work.world.signal, () => readCopy(work, pair.provider));
  }
}

async function undoOnce(
  work: Work,
  { provider }: Pair,
  { copy, undo }: { readonly copy: KubeObject; readonly undo: Undo },
): Promise<void> {
  const { world, api, providerKey } = work;
  const { uid, resourceVersion } = copy.metadata;
  const options = { signal: world.signal };
  if (undo === 'unmark') {
    await setMarkers(provider.client, { ref: api.ref, object: copy }, withoutMarkers, options);
  } else {
    await provider.client.delete(api.ref, providerKey, { uid, resourceVersion }, options);
  }
}
