import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { appFromEnvironment } from '../lib/app/app-from-environment.ts';

/** Reconciles instances: specs to the provider, status back, deletions and drains. */
export const handler = middy<SQSEvent, SQSBatchResponse>({
  // middy would answer in the handler's place while reconciles still run; the batch loop keeps the time.
  timeoutEarlyInMillis: 0,
}).handler((event, context) => appFromEnvironment().handlers.instances(event, context));
