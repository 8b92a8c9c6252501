import { ensureNamespace } from '../ensure-namespace.ts';
import type { KubeObject } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { nodes } from './chart.ts';
import { lookAfterWrite } from './look-after-write.ts';
import { copyOf } from './what-to-apply.ts';
import { believing, ownerOf, type Pair, type Work } from './work.ts';

/**
 * Makes a new copy with POST: an apply would take over what another consumer made a moment ago. A name that is taken by
 * now (class `conflict`) starts the reconcile over.
 */
export async function createCopy(work: Work, pair: Pair): Promise<KubeObject> {
  work.world.trace.step(nodes.namespace, 'when the server misses it');
  // The address may lead to another cluster by now: that it holds no copy says nothing, and nothing is to be made there.
  await pair.provider.confirmIdentity(0);
  return thenLook(work, pair, () => postWithNamespace(work, pair));
}

async function thenLook(work: Work, pair: Pair, post: () => Promise<KubeObject>): Promise<KubeObject> {
  let made: KubeObject | undefined;
  let failure: KbindError | undefined;
  try {
    made = await post();
  } catch (error) {
    // `stale`: nothing was sent. What is not ours (a dry run's stop) means the same.
    if (!(error instanceof KbindError) || error.errorClass === 'stale') throw error;
    failure = error;
  }
  const copy = await lookAfterWrite(work, pair, { made, undo: 'delete' });
  if (failure !== undefined) throw failure;
  if (copy === undefined) throw new KbindError('internal', 'a create was answered without an object');
  return copy;
}

async function postWithNamespace(work: Work, pair: Pair): Promise<KubeObject> {
  try {
    return await post(work, pair);
  } catch (error) {
    const { namespace } = work.providerKey;
    if (!isError(error, 'namespace-missing') || namespace === undefined) throw error;
    // Another cluster misses it as well.
    await pair.provider.confirmIdentity(0);
    await ensureNamespace(pair.provider.client, namespace, believing(work, pair.belief));
    return post(work, pair);
  }
}

function post(work: Work, { source, provider, belief }: Pair): Promise<KubeObject> {
  const { api, providerKey } = work;
  const copy = copyOf(source, { ref: api.ref, key: providerKey }, ownerOf(work, source));
  return provider.client.create(api.ref, copy, { ...believing(work, belief), strict: true });
}
