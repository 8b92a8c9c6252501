import type { ErrorClass } from '../../../lib/model/errors.ts';
import type { ReconcileRequest, SweepRequest } from '../../../lib/model/request.ts';
import { encodeDeadLetter, type DeadLetter } from '../../../lib/queue/dead-letters.ts';
import { instanceRequest } from './events.ts';

/** A dead letter's body. */
export function letter(
  name: string,
  extra: Partial<DeadLetter> & { readonly class?: ErrorClass; readonly message?: string } = {},
): string {
  const { class: errorClass = 'invalid', message = 'admission says no', ...rest } = extra;
  const request: ReconcileRequest | SweepRequest = { ...instanceRequest(name), attempt: 9, firstFailure: 1_000 };
  return encodeDeadLetter({
    v: 1,
    type: 'dead-letter',
    request,
    firstFailure: 1_000,
    lastFailure: 2_000,
    attempts: 10,
    error: { class: errorClass, message },
    trace: ['Consumer object exists? → yes'],
    versions: { kbind: '0.1.0' },
    ...rest,
  });
}
