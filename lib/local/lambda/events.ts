import { randomUUID } from 'node:crypto';
import type { Message } from '@aws-sdk/client-sqs';
import type { ScheduledEvent, SQSEvent, SQSRecord, SQSRecordAttributes } from 'aws-lambda';
import { LOCAL_ACCOUNT } from '../queues.ts';

/** Received messages as the event that Lambda makes of them. */
export function sqsEvent(
  messages: readonly Message[],
  source: { readonly arn: string; readonly region: string },
): SQSEvent {
  return { Records: messages.map((message) => sqsRecord(message, source)) };
}

function sqsRecord(message: Message, source: { readonly arn: string; readonly region: string }): SQSRecord {
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    // The emulator and SQS name them alike: SentTimestamp, ApproximateReceiveCount, MessageGroupId and so on.
    attributes: { ...message.Attributes } as unknown as SQSRecordAttributes,
    messageAttributes: Object.fromEntries(
      Object.entries(message.MessageAttributes ?? {}).map(([name, attribute]) => [
        name,
        {
          dataType: attribute.DataType as 'String',
          ...(attribute.StringValue === undefined ? {} : { stringValue: attribute.StringValue }),
          ...(attribute.BinaryValue === undefined
            ? {}
            : { binaryValue: Buffer.from(attribute.BinaryValue).toString('base64') }),
          stringListValues: [],
          binaryListValues: [],
        },
      ]),
    ),
    md5OfBody: message.MD5OfBody ?? '',
    eventSource: 'aws:sqs',
    eventSourceARN: source.arn,
    awsRegion: source.region,
  };
}

/** The event of an EventBridge rule that fires on a schedule. `time` has whole seconds, as there. */
export function scheduledEvent(
  rule: { readonly name: string; readonly region: string },
  nowMs: number,
): ScheduledEvent {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: LOCAL_ACCOUNT,
    time: `${new Date(nowMs).toISOString().slice(0, 19)}Z`,
    region: rule.region,
    resources: [`arn:aws:events:${rule.region}:${LOCAL_ACCOUNT}:rule/${rule.name}`],
    detail: {},
  };
}
