import type { Message } from '@aws-sdk/client-sqs';
import * as z from 'zod/mini';

const responseShape = z.object({ batchItemFailures: z.array(z.object({ itemIdentifier: z.string() })) });

/**
 * The ids that stay in the queue after an answer with ReportBatchItemFailures. As in Lambda: no answer, or an empty list,
 * is success; an answer that is none, or that names an unknown id, fails the whole batch.
 */
export function failedIds(answer: unknown, messages: readonly Message[]): ReadonlySet<string> {
  const all = new Set(messages.map((message) => message.MessageId ?? ''));
  if (answer === undefined || answer === null || isEmpty(answer)) return new Set();
  const parsed = responseShape.safeParse(answer);
  if (!parsed.success) return all;
  const failed = new Set(parsed.data.batchItemFailures.map((failure) => failure.itemIdentifier));
  return failed.isSubsetOf(all) ? failed : all;
}

/** `{}` and `{"batchItemFailures": null}` count as success too. */
function isEmpty(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && Object.values(answer).every((value) => value === null);
}
