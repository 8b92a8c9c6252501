import { toKbindError, type ErrorClass, type KbindError } from '../model/errors.ts';
import type { SweepRequest } from '../model/request.ts';
import type { World } from '../reconcile/world.ts';

/** SQS bodies are bounded, and so is a sweep's id; its end tells two of them apart. */
const MAX_ID = 512;

/** Whatever the server said, it is we who cannot go on with it. */
const OUR_OWN: ReadonlySet<ErrorClass> = new Set(['internal', 'invalid', 'misconfigured']);
/** Answers to the list of one API. */
const ITS_LIST: ReadonlySet<ErrorClass> = new Set(['forbidden', 'unserved', 'expired']);

/**
 * True for an error that says nothing about the APIs beside this one: a list that is forbidden or broken, an object that no
 * code was written for. Not for a cluster that does not answer or asks for patience, a queue that takes nothing, time that
 * is up.
 */
function isOfOneApi({ errorClass, details }: KbindError, api: string): boolean {
  if (OUR_OWN.has(errorClass)) return true;
  if (details.api !== api) return false;
  return ITS_LIST.has(errorClass) || (errorClass === 'unavailable' && details.status === 500);
}

/**
 * An API that cannot be swept must not keep those after it from it: it gets a sweep of its own, which is retried by itself; a
 * backstop leaves it to the next one.
 * @throws what was thrown, where it ends the whole sweep
 */
export async function leaveApart(
  { tell, log, metrics }: World,
  { cluster, namespace, id, retry }: SweepRequest,
  { api, thrown }: { readonly api: string; readonly thrown: unknown },
): Promise<void> {
  const error = toKbindError(thrown);
  if (!isOfOneApi(error, api)) throw thrown;
  log.warn('an API could not be swept', { api, errorClass: error.errorClass, error: error.message });
  metrics.count('SweepApiFailed', 1);
  if (!retry) return;
  const where = namespace === undefined ? {} : { namespace };
  await tell.sweep({ v: 1, type: 'sweep', cluster, apis: [api], ...where, id: `${id}/${api}`.slice(-MAX_ID), retry });
}
