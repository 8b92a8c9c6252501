import { randomUUID } from 'node:crypto';
import type { SQSEvent, SQSRecord } from 'aws-lambda';
import { messageGroup } from '../../../lib/queue/ids.ts';
import { reconcileRequest, type ReconcileRequest, type Request } from '../../../lib/model/request.ts';

/** SQS events as Lambda delivers them. */

export const CLUSTER = '6b2f0f5e-1111-4222-8333-444455556666';

/** A key of the instances queue. */
export const instanceRequest = (name: string, extra: Partial<ReconcileRequest> = {}): ReconcileRequest => ({
  ...reconcileRequest(CLUSTER, 'instance', { namespace: 'default', name }, { api: 'widgets.example.org' }),
  ...extra,
});

export interface RecordOptions {
  readonly sentAt?: number;
  readonly firstReceivedAt?: number;
  readonly group?: string;
  readonly messageId?: string;
}

const SENT_AT = 1_700_000_000_000;

export function sqsRecord(body: string, options: RecordOptions = {}): SQSRecord {
  const { sentAt = SENT_AT, firstReceivedAt = sentAt + 5, group, messageId = randomUUID() } = options;
  return {
    messageId,
    receiptHandle: `receipt-${messageId}`,
    body,
    attributes: {
      ApproximateReceiveCount: '1',
      SentTimestamp: String(sentAt),
      SenderId: 'AIDATEST',
      ApproximateFirstReceiveTimestamp: String(firstReceivedAt),
      ...(group === undefined ? {} : { MessageGroupId: group, MessageDeduplicationId: messageId, SequenceNumber: '1' }),
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: 'arn:aws:sqs:eu-central-1:000000000000:queue',
    awsRegion: 'eu-central-1',
  };
}

/** A record that carries a request, in the request's own group. */
export function requestRecord(request: Request, options: RecordOptions = {}): SQSRecord {
  const group = request.type === 'reconcile' ? { group: messageGroup(request) } : {};
  return sqsRecord(JSON.stringify(request), { ...group, ...options });
}

export const sqsEvent = (...records: readonly SQSRecord[]): SQSEvent => ({ Records: [...records] });

/** A Lambda context with that much time left. */
export const withTime = (milliseconds: number): { getRemainingTimeInMillis(): number } => {
  const end = performance.now() + milliseconds;
  return { getRemainingTimeInMillis: () => Math.max(0, end - performance.now()) };
};
