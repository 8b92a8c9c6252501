import type { ErrorClass } from '../model/errors.ts';

/**
 * THE table: which error class does what, how long, how often (design.md, rule 5; docs/retries.md shows it). The class is
 * decided where the knowledge is; settle.ts acts on it.
 */
export type Policy =
  /** A failed attempt: 1 s doubling to 300 s, ± 20 %, Retry-After honoured up to 900 s; a dead letter after ten. */
  | { readonly action: 'retry'; readonly why: string }
  /** No attempt: looked at again for as long as it lasts, never a dead letter. */
  | { readonly action: 'wait'; readonly firstSeconds: number; readonly maxSeconds: number; readonly why: string }
  /** A dead letter at once: repeating the same cannot help. */
  | { readonly action: 'dead-letter'; readonly why: string };

const retry = (why: string): Policy => ({ action: 'retry', why });
const wait = (firstSeconds: number, maxSeconds: number, why: string): Policy => ({
  action: 'wait',
  firstSeconds,
  maxSeconds,
  why,
});
const deadLetter = (why: string): Policy => ({ action: 'dead-letter', why });

export const retryPolicy: Readonly<Record<ErrorClass, Policy>> = {
  absent: retry('something that was there a moment ago is gone: the next read says what that means'),
  unserved: retry('the server does not serve this version now; discovery is asked again'),
  conflict: retry('three starts on the spot met another writer each'),
  forbidden: wait(30, 30, 'permission is given by people; asked again for as long as it lacks'),
  'namespace-missing': retry('the namespace went between its creation and the write'),
  'namespace-terminating': wait(2, 60, 'the namespace is on its way out; then it can be made again'),
  unauthorized: retry('the credential was dropped; the next attempt reads it again'),
  invalid: deadLetter('the object itself is refused; the same object will be refused again'),
  expired: retry('a list or watch has to start over'),
  throttled: retry('the server asked for patience; Retry-After counts'),
  unavailable: retry('the server does not answer as a healthy one does'),
  identity: retry('another cluster answers at this address: as good as no answer'),
  stale: retry('three starts on the spot took longer than what they rest on is believed'),
  aborted: retry('the time of the invocation was up'),
  credential: wait(30, 300, "the Connection's condition names the field; its readiness sweeps"),
  held: wait(60, 600, 'another installation holds the cluster; taking over is an explicit act'),
  misconfigured: retry('people fix it'),
  malformed: deadLetter('no reconcile can serve this message'),
  internal: retry('a bug of ours, perhaps one of timing'),
};
