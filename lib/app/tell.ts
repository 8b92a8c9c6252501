import type { Tell } from '../reconcile/world.ts';
import { reconcileMessage, sendAll, workMessage, type Queues } from '../queue/queues.ts';

/** Controllers' and sweeps' way to the queues. A tick's and a teller's change goes into every deduplication id. */
export function createTell(queues: Queues): Tell {
  return {
    reconcile: (requests, change) =>
      sendAll(
        queues,
        requests.map((request) => reconcileMessage(request, change)),
      ),
    sweep: (request) => sendAll(queues, [workMessage(request)]),
  };
}
