import type { ChainedRequest } from '../queue/dead-letters.ts';
import { reconcileMessage, workMessage, type Addressed } from '../queue/queues.ts';

/**
 * What a dead request is enqueued as: a fresh chain of the same key, which begins now. The replay's id goes into deduplication
 * ids, so that what was sent and not yet removed when a replay was interrupted is not done twice by the one that goes on.
 * @param nowMs first failure of the chain: if it fails again, its letter is not the one that the replay removes
 */
export function replayMessage(request: ChainedRequest, replayId: string, nowMs: number): Addressed {
  if (request.type === 'reconcile') {
    const { waited: _, ...rest } = request;
    return reconcileMessage({ ...rest, attempt: 0, retry: true, firstFailure: nowMs }, `replay/${replayId}`);
  }
  // From its beginning: the lists that its tokens belong to are long gone.
  const { firstFailure: _, waited: __, attempt: ___, cursor: ____, ...rest } = request;
  return workMessage({ ...rest, id: `replay/${replayId}`, retry: true });
}
