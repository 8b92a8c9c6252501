import { randomUUID } from 'node:crypto';
import type { Message } from '@aws-sdk/client-sqs';
import type { APIGatewayProxyEventV2, ScheduledEvent, SQSEvent, SQSRecord, SQSRecordAttributes } from 'aws-lambda';
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

/** A request as it came over the wire. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly sourceIp: string;
}

/** Types whose bodies the HTTP API hands over as text; all others come in base64. */
const TEXT_TYPE = /^(text\/|application\/(json|javascript|xml)\b)/i;

/** The event (payload 2.0) that an HTTP API makes of a request. */
export function httpApiEvent(
  route: { readonly method: string; readonly path: string },
  { method, url, headers, body, sourceIp }: HttpRequest,
  nowMs: number,
): APIGatewayProxyEventV2 {
  const [rawPath = '/', rawQueryString = ''] = url.split('?', 2);
  const routeKey = `${route.method} ${route.path}`;
  const isBase64Encoded = !TEXT_TYPE.test(headers['content-type'] ?? '');
  return {
    version: '2.0',
    routeKey,
    rawPath,
    rawQueryString,
    headers: { ...headers },
    requestContext: {
      accountId: LOCAL_ACCOUNT,
      apiId: 'local',
      domainName: 'localhost',
      domainPrefix: 'local',
      http: { method, path: rawPath, protocol: 'HTTP/1.1', sourceIp, userAgent: headers['user-agent'] ?? '' },
      requestId: randomUUID(),
      routeKey,
      stage: '$default',
      time: new Date(nowMs).toISOString(),
      timeEpoch: nowMs,
    },
    ...(body.length === 0 ? {} : { body: body.toString(isBase64Encoded ? 'base64' : 'utf8') }),
    isBase64Encoded,
  };
}
